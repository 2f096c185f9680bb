"""A PostgreSQL server for a test, and connections to it."""
import os
import pwd
import shutil
import subprocess
import sys
import tempfile

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + "/harness")
import memory  # noqa: E402  pylint: disable=wrong-import-position

memory.use()  # a cluster and its databases: half the CPU time
LIMIT_S = 60
SKIP = 77  # the exit status of a test that cannot run
LOCALE = "C.UTF-8"


class Failure(Exception):
    """What is wrong, with file and line."""


class Skipped(Exception):
    """Why nothing can be run."""


def program(name):
    """The newest that is installed: Debian keeps them out of the PATH."""
    for version in range(30, 12, -1):
        path = f"/usr/lib/postgresql/{version}/bin/{name}"
        if os.access(path, os.X_OK):
            return path
    return shutil.which(name)


class Server:
    """A PostgreSQL server on a socket in a folder of its own. It does not run as root."""

    def __init__(self, folder):
        self.folder, self.process = folder, None
        self.data = os.path.join(folder, "data")
        self.user = {}
        if os.geteuid() == 0:
            names = {entry.pw_name for entry in pwd.getpwall()}
            entry = pwd.getpwnam("postgres" if "postgres" in names else "nobody")
            os.chown(folder, entry.pw_uid, entry.pw_gid)
            self.user = {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
        os.chmod(folder, 0o755)

    def __enter__(self):
        log = os.path.join(self.folder, "log")
        made = subprocess.run([program("initdb"), "-D", self.data, "-U", "postgres", "-A", "trust", "-E", "UTF8",
                               f"--locale={LOCALE}", "--no-sync", "--no-instructions"],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=self.folder, check=False, **self.user)
        if made.returncode != 0:
            raise Failure("initdb: " + made.stdout)
        with open(log, "w", encoding="utf-8") as output:
            self.process = subprocess.Popen(
                [program("postgres"), "-D", self.data, "-k", self.folder, "-h", "", "-c", "fsync=off"],
                stdout=output, stderr=output, cwd=self.folder, **self.user)
        ready = subprocess.run([program("pg_isready"), "-q", "-h", self.folder, "-t", "30"], check=False)
        for _ in range(300):
            if ready.returncode == 0 or self.process.poll() is not None:
                break
            try:
                self.process.wait(0.1)
            except subprocess.TimeoutExpired:
                pass
            ready = subprocess.run([program("pg_isready"), "-q", "-h", self.folder, "-t", "30"], check=False)
        if ready.returncode != 0:
            with open(log, encoding="utf-8") as output:
                raise Failure("the server does not start: " + output.read())
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(LIMIT_S)


def python_with_psycopg():
    for python in (sys.executable, "/usr/bin/python3"):
        if os.access(python, os.X_OK) and subprocess.run([python, "-c", "import psycopg"], capture_output=True,
                                                         check=False).returncode == 0:
            return python
    raise Skipped("psycopg 3 is not installed (Debian: python3-psycopg)")


def need_psycopg():
    """The module; if this Python has none, the test begins anew with one that has it."""
    try:
        python = python_with_psycopg()
    except Skipped as skipped:
        print(f"skipped: {skipped}")
        sys.exit(SKIP)
    if python != sys.executable:
        os.execv(python, [python] + sys.argv)
    import psycopg
    return psycopg


# ---- tests in Python -----------------------------------------------------------------------------------------------


class Test:
    """A server with an empty database `app`, the binary, and connections."""

    def __init__(self, server, home, binary):
        self.server, self.home, self.binary = server, home, os.path.abspath(binary)
        self.connections = []
        self.env = {name: value for name, value in os.environ.items()
                    if not name.startswith(("INTERLOCK_", "XDG_", "PG"))}
        self.env.update(HOME=home, LC_ALL=LOCALE, NO_COLOR="1", TERM="dumb", PGHOST=server.folder,
                        PGUSER="postgres", PGDATABASE="app")

    def connect(self, user="postgres", database="app", **options):
        """A connection with implicit transactions, unless autocommit=True. Waiting for a lock is an error
        after some seconds: what is not held up does not come near that."""
        import psycopg
        connection = psycopg.connect(host=self.server.folder, user=user, dbname=database,
                                     options="-c lock_timeout=10s", **options)
        self.connections.append(connection)
        return connection

    def run(self, *command, status=0, env=None):
        done = subprocess.run(command, cwd=self.home, env={**self.env, **(env or {})}, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=LIMIT_S, check=False)
        if status is not None and done.returncode != status:
            raise Failure(f"{' '.join(command)}: exit status {done.returncode}, not {status}:\n{done.stdout}")
        return done.stdout

    def interlock(self, *arguments, status=0, user="postgres", database="app", **options):
        url = f"postgres://{user}@/{database}?host={self.server.folder}"
        return self.run(self.binary, *arguments, "--store", options.pop("store", url), status=status, **options)

    def new_database(self, name="app"):
        with self.connect(database="postgres", autocommit=True) as db:
            db.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
            db.execute(f"CREATE DATABASE {name}")


def main(tests):
    """Run functions that take a Test, each with a new database: t-x.py BINARY [NAME...]."""
    if not program("initdb") or not shutil.which("psql"):
        print("skipped: PostgreSQL is not installed")
        return SKIP
    n_failed = 0
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as home:
        with Server(folder) as server:
            for test in tests:
                if len(sys.argv) > 2 and test.__name__ not in sys.argv[2:]:
                    continue
                case = Test(server, home, sys.argv[1])
                try:
                    case.new_database()
                    test(case)
                    print("ok", test.__name__, flush=True)
                except Exception:  # pylint: disable=broad-except
                    import traceback
                    traceback.print_exc()
                    print("FAILED", test.__name__, flush=True)
                    n_failed += 1
                for connection in case.connections:
                    connection.close()
    return 1 if n_failed else 0


def run(tests):
    sys.exit(main(tests))
