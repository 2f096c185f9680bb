#!/usr/bin/env python3
"""Passwords in the environment of a server do not reach the steps of its pipelines.

Neither in the environment of a step nor in what it can read in /proc."""
import os
import shutil
import signal
import socket
import subprocess

import fleet
import lib

# A step looks for it with an expression that does not match itself on its command line.
CANARY = "canary-4711"
PATTERN = "can[a]ry-4711"
NOBODY = 65534

# Every variable that the documentation names for a secret, one of url_env, and one of others.
SECRETS = {
    "PGPASSWORD": CANARY,
    "INTERLOCK_API_KEY": CANARY,
    "INTERLOCK_CONNECTION_WAREHOUSE": f"postgres://u:{CANARY}@127.0.0.1:1/db",
    "LEDGER_URL": f"postgres://u:{CANARY}@127.0.0.1:1/db",
    "AWS_SECRET_ACCESS_KEY": CANARY,
}

# Processes may end while they are looked at; those above the step are named by pid.
LOOK = f"""
spawner=$(sed 's/.*) . //; s/ .*//' /proc/$PPID/stat)
server=$(sed 's/.*) . //; s/ .*//' /proc/$spawner/stat)
echo "above: $(cat /proc/$PPID/comm) $(cat /proc/$spawner/comm) $server"
for pid in $PPID $spawner $server; do
    cat /proc/$pid/environ 2>/dev/null | wc -c | sed 's/^/environ: /'
    head -c 1 /proc/$pid/mem 2>&1 | grep -c denied | sed 's/^/denied: /'
done
env | grep -c '{PATTERN}' | sed 's/^/own: /'
cat /proc/$PPID/environ /proc/*/environ /proc/*/cmdline 2>/dev/null |
    grep -a -c '{PATTERN}' | sed 's/^/seen: /'
"""


class Server(lib.Server):
    """With pipelines and its secrets, as this user or as another one."""

    def __init__(self, uid=None, store="memory:", env=None, **more):
        super().__init__(store=store, env={**SECRETS, **(env or {})}, start=False, **more)
        self.uid, self.binary = uid, lib.BINARY
        os.makedirs(self.folder + "/pipelines/default")
        os.makedirs(self.folder + "/config/interlock")
        with open(self.folder + "/pipelines/default/look.yml", "w", encoding="utf-8") as file:
            file.write(fleet.pipeline("look", fleet.script(LOOK)))
        with open(self.folder + "/config/interlock/config.yml", "w", encoding="utf-8") as file:
            file.write("connections:\n  ledger: {url_env: LEDGER_URL}\n")
        self.env.update(INTERLOCK_PIPELINES=self.folder + "/pipelines", TMPDIR=self.folder)
        if uid is not None:
            self.binary = self.folder + "/interlock"  # others may not be allowed to see the build
            shutil.copy(lib.BINARY, self.binary)
            for top, folders, files in os.walk(self.folder):
                for name in [top, *(f"{top}/{name}" for name in folders + files)]:
                    os.chown(name, uid, uid)
        self.start()

    def command(self):
        other = []
        if self.uid is not None:
            other = ["setpriv", f"--reuid={self.uid}", f"--regid={self.uid}", "--clear-groups"]
        store = [] if "INTERLOCK_STORE" in self.env else ["--store", self.store]
        serve = [self.binary, "serve", "--allow-root", "--listen", self.listen]
        return other + serve + store + self.args


def look(server):
    """What a step has seen."""
    run = server.post("/pipelines/run/look").expect(200).json["pipeline_logging_id"]

    def ended():
        got = server.get(f"/pipelines/runs/{run}").expect(200).json
        return got if got["status"] not in fleet.LIVE else None
    got = lib.eventually(ended, 30, "the end of the run")
    assert got["status"] == "COMPLETED", got
    out = server.get(f"/pipelines/runs/{run}/steps/one/output").expect(200).json["stdout"]
    assert f"above: il-reaper il-spawner {server.pid}\n" in out, out
    return out


def check(server):
    out = look(server)
    assert "own: 0\n" in out and "seen: 0\n" in out, out
    return out


def test_this_user():
    """a step finds no secret in an environment or on a command line, even if it is root"""
    with Server() as server:
        if os.geteuid() == 0:
            with open(f"/proc/{server.pid}/environ", "rb") as file:
                assert file.read().strip(b"\0") == b""
        check(server)


def test_other_user():
    """a step of an ordinary user cannot read environment or memory of the processes above it"""
    if os.geteuid() == 0:
        with Server(uid=NOBODY) as server:
            out = check(server)
    else:
        with Server() as server:
            out = check(server)
    assert out.count("environ: 0\n") == 3, out
    assert out.count("denied: 1\n") == 3, out


def test_still_used():
    """what is hidden still counts: the store's URL, the time zone, variables for pipelines"""
    fleet.servers()
    url = os.environ["IL_TEST_POSTGRES"].replace("@", f":{CANARY}@", 1)
    assert CANARY in url, url
    env = {"INTERLOCK_STORE": url + "&schema=il_secrets", "INTERLOCK_PIPELINE_ENV": "SHOWN",
           "SHOWN": "yes", "TZ": "Asia/Tokyo"}
    text = 'test "$SHOWN $TZ" = "yes Asia/Tokyo" && test "$(date +%z)" = +0900'
    with Server(env=env) as server:
        check(server)
        with open(server.folder + "/pipelines/default/env.yml", "w", encoding="utf-8") as file:
            file.write(fleet.pipeline("env", fleet.script(text)))
        server.post("/pipelines/reload").expect(200)
        run = server.post("/pipelines/run/env").expect(200).json["pipeline_logging_id"]
        lib.eventually(lambda: server.get(f"/pipelines/runs/{run}").json["status"] == "COMPLETED",
                       30, "the end of the run")


def test_command_line():
    """a password that was given on the command line all the same is overwritten there"""
    with socket.create_server(("127.0.0.1", 0)) as silent:  # takes connections, and says nothing
        place = f"127.0.0.1:{silent.getsockname()[1]}/db"
        for url in (f"postgres://u:{CANARY}@{place}",
                    f"postgres://{place}?user=u&password={CANARY}"):
            for words in (["serve", "--allow-root", "--listen", "127.0.0.1:0", "--store", url],
                          ["queue", "work", "q", "--store", url, "--", "true"],
                          ["run", "k", "--store", url, "--", "true"]):
                with subprocess.Popen([lib.BINARY, *words], stdin=subprocess.DEVNULL,
                                      stderr=subprocess.DEVNULL) as process:
                    try:
                        taken, _ = silent.accept()  # it knows the URL
                        with taken, open(f"/proc/{process.pid}/cmdline", "rb") as file:
                            line = file.read()
                        assert CANARY.encode() not in line and b"postgres://" in line, line
                    finally:
                        process.send_signal(signal.SIGKILL)


lib.main(globals())
