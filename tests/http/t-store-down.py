#!/usr/bin/env python3
"""The store becomes unavailable and recovers: 503 and a failing /ready, never a hang or a wrong
answer; the server recovers by itself."""
import configparser
import contextlib
import glob
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time

import lib


class Servers:
    """A PostgreSQL and a Redis of our own, which can be stopped and started again (tools/test-servers)."""

    def __enter__(self):
        self.above = tempfile.mkdtemp(prefix="interlock-down-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
        os.chmod(self.above, 0o755)
        self.dir = self.above + "/servers"
        out = self.tool("start")
        self.postgres = re.search(r"IL_TEST_POSTGRES='(.*)'", out)
        self.redis = re.search(r"IL_TEST_REDIS='(.*)'", out)
        return self

    def __exit__(self, *_):
        self.tool("stop")
        shutil.rmtree(self.above, ignore_errors=True)

    def tool(self, what):
        got = subprocess.run([lib.SOURCE + "/tools/test-servers", what, self.dir], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL,
                             text=True, check=True)
        return got.stdout

    @staticmethod
    def has_text(path):
        return os.path.exists(path) and os.path.getsize(path) > 0

    def pid(self, path):
        with open(path, encoding="ascii") as file:
            return int(file.readline())

    def stop_postgres(self):
        pid = self.pid(self.dir + "/postgres/data/postmaster.pid")
        os.kill(pid, signal.SIGQUIT)
        lib.eventually(lambda: not alive(pid), 20, "the end of PostgreSQL")

    def start_postgres(self, wait=True):
        self.n_log = os.path.getsize(self.dir + "/postgres/log")
        with open(self.dir + "/postgres/data/postmaster.opts", encoding="utf-8") as file:
            words = re.findall(r'"([^"]*)"', file.read())
        control = sorted(glob.glob("/usr/lib/postgresql/*/bin/pg_ctl"))[-1]
        owner = os.stat(self.dir + "/postgres/data")
        command = [control, "start", "-w" if wait else "-W", "-t", "60",
                   "-D", self.dir + "/postgres/data", "-l", self.dir + "/postgres/log", "-o",
                   " ".join(word for word in words if word not in ("-D", self.dir + "/postgres/data"))]
        if os.geteuid() == 0:
            command = ["setpriv", f"--reuid={owner.st_uid}", f"--regid={owner.st_gid}", "--clear-groups"] + command
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, cwd="/")

    def start_postgres_unasked(self):
        """The same, when it cannot be asked whether it is ready: until it listens."""
        self.start_postgres(wait=False)
        log = self.dir + "/postgres/log"

        def listens():
            with open(log, encoding="utf-8", errors="replace") as file:
                return "ready to accept" in file.read()[self.n_log:]
        lib.eventually(listens, 60, "PostgreSQL")

    def stop_redis(self):
        # Redis listens before it writes the file.
        lib.eventually(lambda: self.has_text(self.dir + "/redis/pid"), 20, "the process id of Redis")
        pid = self.pid(self.dir + "/redis/pid")
        os.kill(pid, signal.SIGKILL)
        lib.eventually(lambda: not alive(pid), 20, "the end of Redis")
        os.unlink(self.dir + "/redis/s")

    def start_redis(self):
        folder = self.dir + "/redis"
        subprocess.run(["redis-server", "--port", "0", "--unixsocket", folder + "/s", "--dir", folder, "--logfile", folder + "/log", "--pidfile",
                        folder + "/pid", "--save", "", "--appendonly", "no", "--daemonize", "yes"], check=True, stdin=subprocess.DEVNULL,
                       stdout=subprocess.DEVNULL)
        lib.eventually(lambda: os.path.exists(folder + "/s"), 10, "Redis")


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
        return file.read().rsplit(")", 1)[1].split()[0] != "Z"


def acquire(server, client=None, key="k", **more):
    return (client or server).post("/api/v1/locks/acquire", {"key": key, "holder": "h", "ttl_ms": 1000, **more})


def down_and_up(server, stop, start, keys_too=False):
    acquire(server).expect(200)
    server.get("/ready").expect(200)
    waiting = []

    def wait():
        with server.new_client() as client:
            waiting.append(client.post("/api/v1/queues/q/claim", {"worker": "w", "wait_ms": 20000}))

    server.put("/api/v1/queues/q", {})
    waiter = threading.Thread(target=wait)
    waiter.start()
    lib.eventually(lambda: server.get("/api/v1/status").json["waiters"] == 1, what="a waiter")
    stop()
    began = time.monotonic()
    got = lib.eventually(lambda: (a := acquire(server)).status != 200 and a, 20, "the store is missed")
    assert got.status == 503, got
    assert got.headers["Retry-After"] is not None
    assert got.json["success"] is False and got.json["error"]["code"] in ("STORE_UNAVAILABLE",), got
    for word in ("postgres", "redis", "socket", "sqlite", ".c:", "/servers"):
        assert word not in got.body.decode(), got  # no internals
    if keys_too:  # a key that is not known: told the same as one that still is, which it will not be for long
        random = server.key[-20:]
        with server.new_client(key=server.key[:-20] + random[1:] + random[:1]) as stranger:
            answer = acquire(server, stranger)
            assert answer.status == 503 and answer.json == got.json, (answer, got)
    lib.eventually(lambda: server.get("/ready").status == 503, 10, "/ready is red")
    server.get("/health").expect(200)
    assert time.monotonic() - began < 40 * lib.SLOW
    server.wait_log(r"store\.down")
    start()
    lib.eventually(lambda: server.get("/ready").status == 200, 30, "/ready is green again")
    lib.eventually(lambda: acquire(server, key="other").status == 200, 30, "it works again")
    server.wait_log(r"store\.up")
    waiter.join()
    assert waiting and waiting[0].status in (200, 204, 404, 503), waiting  # 404: it came back empty


def test_postgres():
    """PostgreSQL is stopped and started, with the data store in it"""
    with Servers() as servers:
        if servers.postgres is None:
            raise lib.Skip("no PostgreSQL")
        with lib.Server(store=servers.postgres.group(1)) as server:
            down_and_up(server, servers.stop_postgres, servers.start_postgres, keys_too=True)


def test_redis():
    """Redis is killed and started empty, with the data store in SQLite"""
    with Servers() as servers:
        if servers.redis is None:
            raise lib.Skip("no Redis")
        # A Redis that comes back without what it knew gives no leases for as long as one could have lasted.
        with lib.Server(store="redis+unix://" + servers.redis.group(1) + "?max_ttl=2", start=False) as server:
            server.args = ["--data", f"sqlite:{server.folder}/data.db"]
            server.start()
            down_and_up(server, servers.stop_redis, servers.start_redis)


def health_of(server, path="/health"):
    with lib.Client(server) as client:
        return client.get(path)


def is_ready(server):
    with contextlib.suppress(ConnectionError):  # the sockets were just handed over
        return health_of(server, "/ready").status == 200
    return False


def started_before(server, start):
    """Started while its store is away, the server is alive, and ready by itself later."""
    server.key = "sk_none_yet"
    server.start()
    server.wait_log(r"(store|data)\.down.*waiting for the")
    alive_body = health_of(server).expect(200).body
    health_of(server, "/api/v1/health").expect(200)
    for method, path in (("GET", "/ready"), ("GET", "/"), ("GET", "/api/v1/ready"),
                         ("POST", "/api/v1/locks/acquire"), ("POST", "/health")):
        with lib.Client(server) as client:
            got = client.ask(method, path, {"key": "k"} if method == "POST" else None)
            got.expect(503, "STORE_UNAVAILABLE")
            assert got.headers["Retry-After"] is not None and got.json["success"] is False, got
    address = server.address
    start()
    lib.eventually(lambda: is_ready(server), 30, "/ready is green")
    assert health_of(server).expect(200).body == alive_body
    assert server.address == address and server.process.poll() is None
    server.key = lib.eventually(server._first_key, 10, "the first key")
    server.client = server.new_client()
    acquire(server).expect(200)
    server.wait_log(r"(store|data)\.up")
    n_listeners = 2 if "--metrics-listen" in server.args else 1
    assert server.log.count("server.listening") == n_listeners, server.log


def test_postgres_later():
    """PostgreSQL is started after the server"""
    with Servers() as servers:
        if servers.postgres is None:
            raise lib.Skip("no PostgreSQL")
        servers.stop_postgres()
        with lib.Server(store=servers.postgres.group(1), start=False) as server:
            server.args = ["--metrics-listen", "127.0.0.1:0"]
            started_before(server, servers.start_postgres)


def test_redis_later():
    """Redis is started after the server"""
    with Servers() as servers:
        if servers.redis is None:
            raise lib.Skip("no Redis")
        servers.stop_redis()
        url = "redis+unix://" + servers.redis.group(1) + "?max_ttl=2"
        with lib.Server(store=url, listen="unix", start=False) as server:
            server.args = ["--data", f"sqlite:{server.folder}/data.db"]
            started_before(server, servers.start_redis)


def test_data_later():
    """the store is there, the data store is started later"""
    with Servers() as servers:
        if servers.postgres is None:
            raise lib.Skip("no PostgreSQL")
        servers.stop_postgres()
        args = ["--data", servers.postgres.group(1)]
        with lib.Server(store="sqlite", args=args, start=False) as server:
            started_before(server, servers.start_postgres)
            server.wait_log(r"data\.down")


def test_stop_while_waiting():
    """SIGTERM stops a server that waits for its store, SIGHUP does not; systemd is told"""
    url = "postgres://nobody@/none?host=/nonexistent"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd, \
            lib.Server(store=url, key="none", start=False) as server:
        systemd.bind(server.folder + "/notify")
        systemd.settimeout(20 * lib.SLOW)
        server.env["NOTIFY_SOCKET"] = server.folder + "/notify"
        server.start()
        server.wait_log(r"store\.down.*waiting for the store")
        assert systemd.recv(1000) == b"READY=1\nSTATUS=waiting for the store"
        server.send(signal.SIGHUP)
        health_of(server).expect(200)
        assert server.stop() == 0, server.log
        server.wait_log(r"server\.stopped")
        assert systemd.recv(1000) == b"STOPPING=1"


def test_unit_never_gives_up():
    """systemd starts the server again however often it has ended"""
    unit = configparser.ConfigParser(strict=False)  # some keys stand there twice
    unit.read(lib.SOURCE + "/deploy/systemd/interlock.service.in", encoding="utf-8")
    assert unit["Unit"]["StartLimitIntervalSec"] == "0"
    assert unit["Service"]["Restart"] == "on-failure"


def refused(store, words, *more):
    """Another try would change nothing: exit status 69 at once, and a sentence."""
    got = lib.run("serve", "--allow-root", "--listen", "127.0.0.1:0", "--store", store, *more)
    assert got.returncode == 69 and words in got.stderr and "waiting" not in got.stderr, got
    got = lib.run("queue", "work", "q", "--store", store, "--", "true")
    assert got.returncode == 69 and words in got.stderr and "waiting" not in got.stderr, got


def test_refused():
    """a server that answers and refuses is not waited for: password, role, database, permission"""
    with Servers() as servers, tempfile.TemporaryDirectory() as tmp:
        if servers.postgres is None or servers.redis is None:
            raise lib.Skip("no PostgreSQL or no Redis")
        url = servers.postgres.group(1)
        refused(url.replace("postgres@", "somebody@"), 'role "somebody" does not exist')
        refused(url.replace("/postgres?", "/nowhere?"), 'database "nowhere" does not exist')
        refused(f"sqlite:{tmp}/no/such/folder.db", "no/such")
        rules = servers.dir + "/postgres/data/pg_hba.conf"
        with open(rules, "w", encoding="ascii") as file:
            file.write("local all all scram-sha-256\n")
        servers.stop_postgres()
        servers.start_postgres_unasked()
        refused(url.replace("postgres@", "postgres:wrong@"), "password authentication failed")
        refused(url, "no password supplied")
        place = servers.redis.group(1)
        data = ["--data", f"sqlite:{tmp}/data.db"]
        subprocess.run(["redis-cli", "-s", place, "config", "set", "requirepass", "right"],
                       check=True, stdout=subprocess.DEVNULL)
        refused("redis+unix://" + place, "the server requires a password", *data)
        refused(f"redis+unix://:wrong@{place}", "WRONGPASS", *data)


class Polish:
    """A server of PostgreSQL that refuses every connection, in Polish."""

    def __init__(self, folder, sqlstate, text):
        fields = {"S": "WA\u017bNE", "V": "FATAL", "C": sqlstate, "M": text}
        body = b"".join(name.encode() + value.encode() + b"\0" for name, value in fields.items()) + b"\0"
        self.answer = b"E" + (len(body) + 4).to_bytes(4, "big") + body
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.bind(folder + "/.s.PGSQL.5432")
        self.socket.listen()
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            client, _ = self.socket.accept()
            with client:
                client.recv(4096)
                client.sendall(self.answer)


def test_any_language():
    """what a refusal means does not depend on the server's language"""
    with tempfile.TemporaryDirectory() as tmp:
        os.mkdir(tmp + "/a")
        Polish(tmp + "/a", "57P03", "system bazy danych si\u0119 uruchamia")
        worker = Worker(f"postgres://u@/db?host={tmp}/a")
        worker.said("waiting for the store")
        assert worker.stop() == 0
        os.mkdir(tmp + "/b")
        Polish(tmp + "/b", "28P01", "autoryzacja has\u0142em nie powiod\u0142a si\u0119 dla u\u017cytkownika \"u\"")
        refused(f"postgres://u@/db?host={tmp}/b", "WA\u017bNE:  autoryzacja")


class Worker:
    """`interlock queue work` on a store, with what it says."""

    def __init__(self, store):
        self.process = subprocess.Popen([lib.BINARY, "queue", "work", "--create", "--store", store,
                                         "q", "--", "sh", "-c", "echo done >&2"],
                                        stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.lines = []
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stderr:
            self.lines.append(line)

    def said(self, text):
        lib.eventually(lambda: any(text in line for line in self.lines), 30, f"{text!r}")

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(20 * lib.SLOW)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.reader.join()
        self.process.stderr.close()


def worker_first(store, start):
    got = lib.run("queue", "work", "--once", "--create", "--store", store, "q", "--", "true")
    assert got.returncode == 69 and "waiting" not in got.stderr, got
    with Worker(store) as stopped, Worker(store) as worker:
        stopped.said("q: waiting for the store: ")
        assert stopped.stop() == 0
        worker.said("q: waiting for the store: ")
        start()
        worker.said("q: the store is available again")
        assert lib.run("queue", "push", "--store", store, "q", "x").returncode == 0
        worker.said("done")
        assert worker.stop() == 0


def test_deleted():
    """a SQLite store that is deleted is missed; nothing is created in its place"""
    with lib.Server(store="sqlite") as server:
        acquire(server).expect(200)
        path = server.store.removeprefix("sqlite:")
        for name in glob.glob(path + "*"):
            os.unlink(name)
        got = acquire(server, key="k2").expect(503)
        assert got.json["error"]["code"] == "STORE_UNAVAILABLE", got
        assert path not in got.body.decode(), got
        server.get("/api/v1/locks").expect(503)
        lib.eventually(lambda: server.get("/ready").status == 503, 10, "/ready is red")
        server.get("/health").expect(200)
        server.wait_log(r"store\.down")
        assert not glob.glob(path + "*"), glob.glob(path + "*")
        # Another store in its place, with a wake file of its own, does not keep the server.
        assert lib.run("run", "--store", server.store, "k", "--", "true").returncode == 0

        def has_new_one():
            acquire(server, key="k2").expect(503)
            with open(f"/proc/{server.pid}/maps", encoding="utf-8") as maps:
                return path + "-wake\n" in maps.read()
        if os.geteuid() == 0:  # nobody else can read the maps of a server
            lib.eventually(has_new_one, 20, "the new wake file")
        assert server.stop() == 0, server.log


def long_poll(server):
    """A claim that waits and finds nothing; the limit is that of a test, far below a minute."""
    with server.new_client(timeout=20 * lib.SLOW) as client:
        client.post("/api/v1/queues/q/claim", {"worker": "w", "wait_ms": 100}).expect(200)


def without_wake_file(damage):
    """The watcher sleeps for up to a minute, on the file that is damaged then."""
    with lib.Server(store="sqlite") as server:
        server.put("/api/v1/queues/q", {})
        fence = acquire(server, ttl_ms=600000).expect(200).json["fence"]  # held: there are sweeps
        long_poll(server)
        path = server.store.removeprefix("sqlite:") + "-wake"
        size = os.path.getsize(path)
        blocked = []

        def wait():
            with server.new_client(timeout=20 * lib.SLOW) as client:
                blocked.append(acquire(server, client, holder="h2", wait_ms=60000))

        damage(path)

        def mended():
            acquire(server, key="k2").expect(200)
            return os.path.exists(path) and os.path.getsize(path) == size
        lib.eventually(mended, 20, "a new wake file")
        long_poll(server)
        waiter = threading.Thread(target=wait)
        waiter.start()
        lib.eventually(lambda: server.get("/api/v1/status").json["waiters"] == 1, what="a waiter")
        damage(path)
        lib.eventually(mended, 20, "another wake file")
        held = {"key": "k", "holder": "h", "fence": fence}
        server.post("/api/v1/locks/release", held).expect(200)
        waiter.join()
        blocked[0].expect(200)
        damage(path)
        assert server.stop() == 0, server.log


def test_wake_file_deleted():
    """the wake file is deleted in use: long polls and SIGTERM are answered as before"""
    without_wake_file(os.unlink)


def test_wake_file_cut():
    """the same when it is cut short"""
    without_wake_file(lambda path: os.truncate(path, 0))


def test_worker_postgres_later():
    """a worker waits for PostgreSQL, and can be stopped meanwhile"""
    with Servers() as servers:
        if servers.postgres is None:
            raise lib.Skip("no PostgreSQL")
        servers.stop_postgres()
        worker_first(servers.postgres.group(1), servers.start_postgres)


def test_worker_redis_later():
    """the same with Redis"""
    with Servers() as servers:
        if servers.redis is None:
            raise lib.Skip("no Redis")
        servers.stop_redis()
        worker_first("redis+unix://" + servers.redis.group(1) + "?max_ttl=2", servers.start_redis)


def test_worker_server_later():
    """the same with a server"""
    with lib.Server(store="sqlite", listen="unix") as server:
        assert server.stop() == 0
        os.environ["INTERLOCK_API_KEY"] = server.key
        try:
            with Worker("http+unix:" + server.listen[5:]) as worker:
                worker.said("q: waiting for the store: ")
                server.start()
                worker.said("q: the store is available again")
                assert worker.stop() == 0
        finally:
            del os.environ["INTERLOCK_API_KEY"]


lib.main(globals())
