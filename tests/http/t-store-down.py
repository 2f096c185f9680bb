#!/usr/bin/env python3
"""The store goes away and comes back: 503 and a red /ready, never a hang or a lie; it heals by itself."""
import glob
import os
import re
import shutil
import signal
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

    def pid(self, path):
        with open(path, encoding="ascii") as file:
            return int(file.readline())

    def stop_postgres(self):
        pid = self.pid(self.dir + "/postgres/data/postmaster.pid")
        os.kill(pid, signal.SIGQUIT)
        lib.eventually(lambda: not alive(pid), 20, "the end of PostgreSQL")

    def start_postgres(self):
        with open(self.dir + "/postgres/data/postmaster.opts", encoding="utf-8") as file:
            words = re.findall(r'"([^"]*)"', file.read())
        control = sorted(glob.glob("/usr/lib/postgresql/*/bin/pg_ctl"))[-1]
        owner = os.stat(self.dir + "/postgres/data")
        command = [control, "start", "-w", "-t", "60", "-D", self.dir + "/postgres/data", "-l", self.dir + "/postgres/log", "-o",
                   " ".join(word for word in words if word not in ("-D", self.dir + "/postgres/data"))]
        if os.geteuid() == 0:
            command = ["setpriv", f"--reuid={owner.st_uid}", f"--regid={owner.st_gid}", "--clear-groups"] + command
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, cwd="/")

    def stop_redis(self):
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


def down_and_up(server, stop, start):
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
            down_and_up(server, servers.stop_postgres, servers.start_postgres)


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


def test_postgres_not_there():
    """a store that cannot be reached at the start: exit status 69, and a sentence"""
    got = lib.run("serve", "--allow-root", "--listen", "127.0.0.1:0", "--store", "postgres://nobody@/none?host=/nonexistent")
    assert got.returncode == 69, got
    assert "interlock: " in got.stderr, got


lib.main(globals())
