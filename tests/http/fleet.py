"""Servers with pipelines, on any engine: shared by the tests of the runner.

    with Fleet("sqlite", {"hello": command("echo", "hello")}) as f:
        run = f.a.post("/pipelines/run/hello").expect(200).json
        f.wait(run["pipeline_logging_id"])
"""
import atexit
import json
import os
import shlex
import shutil
import subprocess
import tempfile
import uuid

import lib

HERE = os.path.dirname(os.path.abspath(__file__))
LIVE = ("PENDING", "RUNNING")


def servers():
    """PostgreSQL and Redis: those that tools/run-tests has started, or ones of our own."""
    if "IL_TEST_POSTGRES" in os.environ and "IL_TEST_REDIS" in os.environ:
        return
    tool = os.path.join(HERE, "..", "..", "tools", "test-servers")
    folder = tempfile.mktemp(prefix="interlock-servers-")
    made = subprocess.run([tool, "start", folder], capture_output=True, text=True, check=True, timeout=120)
    atexit.register(lambda: subprocess.run([tool, "stop", folder], check=False, timeout=60))
    for word in shlex.split(made.stdout.replace("export ", " ").replace(";", " ")):
        name, found, value = word.partition("=")
        if found and name.startswith("IL_TEST_"):
            os.environ[name] = value


def command(*argv, step="one", **more):
    """A step that runs a command."""
    return {"step_id": step, "type": "command", "run": list(argv), **more}


def script(text, step="one", **more):
    """A step that is a shell script."""
    return {"step_id": step, "type": "command", "shell": True, "run": text, **more}


def pipeline(name, *steps, **more):
    """The text of a file: JSON is YAML."""
    return json.dumps({"pipeline_id": name, "timeout": "120s", **more, "steps": list(steps)}, indent=1)


def until(path):
    """A script that goes on until a file is there; what it started is told by its argument, so that it can be found."""
    return f"while ! [ -e {shlex.quote(path)} ]; do sleep 0.05; done"


class Place:
    """A folder, and a store for servers: self.store is its URL, self.data_args the options for where they keep their data. engine: memory, sqlite,
    postgres, redis, classic (Redis with clients of the classic form), or a URL. With PostgreSQL, self.name is the schema."""

    def __init__(self, engine, what):
        self.folder = tempfile.mkdtemp(prefix=f"interlock-{what}-")
        self.name = f"il_{what}_{uuid.uuid4().hex[:12]}"
        self.data = f"sqlite:{self.folder}/data.db"
        self.data_args = []
        if engine == "memory":
            self.store = "memory:"
        elif engine == "sqlite":
            self.store = f"sqlite:{self.folder}/store.db"
        elif engine == "postgres":
            servers()
            self.store = os.environ["IL_TEST_POSTGRES"] + f"&schema={self.name}"
        elif engine in ("redis", "classic"):
            servers()
            self.store = f"redis+unix://{os.environ['IL_TEST_REDIS']}?prefix={self.name}{'&classic=yes' if engine == 'classic' else ''}"
            self.data_args = ["--data", self.data]
        else:
            self.store = engine


class Fleet(Place):
    """n servers on one store, with one folder of pipelines."""

    def __init__(self, engine="sqlite", pipelines=None, n=1, args=(), env=None, tenant="default", start=True):
        super().__init__(engine, "fleet")
        self.dir = self.folder + "/pipelines"
        self.args = ["--pipelines", self.dir, *args, *self.data_args]
        self.env = {"INTERLOCK_PIPELINE_TTL": "3s", "INTERLOCK_LIMIT_TRIGGERS_PER_MINUTE": "0", "INTERLOCK_LIMIT_TRIGGERS_PER_HOUR": "0",
                    "INTERLOCK_LIMIT_RUNS": "50", "INTERLOCK_RUNS_SHUTDOWN": "2s", "TMPDIR": self.folder, **(env or {})}
        os.makedirs(self.dir)
        self.put(tenant, pipelines or {})
        self.all = []
        try:
            for _ in range(n if start else 0):
                self.add()
        except BaseException:
            self.end()
            raise

    def put(self, tenant, pipelines):
        """Files: name → text, or a list of steps."""
        os.makedirs(f"{self.dir}/{tenant}", exist_ok=True)
        for name, what in pipelines.items():
            if isinstance(what, dict):
                what = [what]
            text = what if isinstance(what, str) else pipeline(name, *what)
            path = f"{self.dir}/{tenant}/{name}.yml"
            with open(path + ".new", "w", encoding="utf-8") as file:
                file.write(text)
            os.rename(path + ".new", path)

    def add(self, **more):
        server = lib.Server(store=self.store, args=self.args, env={**self.env, **more.pop("env", {})}, key=self.all[0].key if self.all else None, **more)
        self.all.append(server)
        return server

    @property
    def a(self):
        return self.all[0]

    @property
    def b(self):
        return self.all[1]

    def path(self, name):
        return f"{self.folder}/{name}"

    def quoted(self, name):
        """The same for a shell."""
        return shlex.quote(self.path(name))

    def open(self, name):
        """Make the file that a script waits for."""
        with open(self.path(name), "w", encoding="utf-8"):
            pass

    def get(self, run, server=None, query=""):
        return (server or self.a).get(f"/pipelines/runs/{run}{query}").expect(200).json

    def wait(self, run, status=None, seconds=30, server=None):
        """Until the run has ended (or is `status`); what it is then."""
        def look():
            got = self.get(run, server)
            return got if (got["status"] == status if status else got["status"] not in LIVE) else None
        return lib.eventually(look, seconds, f"the end of run {run}" if status is None else f"{status} of run {run}")

    def trigger(self, name, body=None, server=None, status=200, **more):
        return (server or self.a).post(f"/pipelines/run/{name}", body, **more).expect(status).json

    def run(self, name, body=None, **more):
        """Trigger it and wait for its end."""
        return self.wait(self.trigger(name, body)["pipeline_logging_id"], **more)

    def end(self):
        for server in self.all:
            server.end()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *how):
        try:
            for server in reversed(self.all):
                server.__exit__(*how)
        finally:
            self.end()


def marked(word):
    """Processes whose command line has this word: pids."""
    found = []
    for pid in os.listdir("/proc"):
        if not pid.isdigit() or int(pid) == os.getpid():
            continue
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                line = file.read()
            with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
                state = file.read().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if word.encode() in line and state != "Z":
            found.append(int(pid))
    return found
