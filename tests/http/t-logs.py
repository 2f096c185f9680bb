"""The log: one JSON object per line, fixed names, fixed fields; never a secret or a payload."""
import contextlib
import fcntl
import glob
import json
import os
import re
import resource
import signal
import subprocess
import tempfile
import threading
import time

import lib

EVENTS = {}
for table in ("/src/http/log.def", "/src/apps/runner/events.def"):
    with open(lib.SOURCE + table, encoding="utf-8") as file:
        EVENTS.update((name, level.lower()) for level, name in re.findall(r'^X\(\w+, (\w+), "([^"]+)"', file.read(), re.M))


def events(s, name=None):
    found = []
    for line in list(s.lines):
        row = json.loads(line)
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", row["ts"]), row
        assert EVENTS[row["event"]] == row["level"], row
        if name is None or row["event"] == name:
            found.append(row)
    return found


def wait_event(s, name, n=1):
    return lib.eventually(lambda: len(events(s, name)) >= n and events(s, name), 10, name)


def test_fields_of_lock_events():
    """acquire, conflict, release, failed release, expiry, break."""
    with lib.Server(args=["--log-format", "json"]) as s:
        with s.new_client(s.key_for("acme", "operator")) as c:
            got = c.post("/api/v1/locks/acquire", {"key": "pipeline:etl", "holder": "h1"}, headers={"X-Request-Id": "req-1"}).expect(200).json
            c.post("/api/v1/locks/acquire", {"key": "pipeline:etl", "holder": "h2", "wait_ms": 200}).expect(409)
            time.sleep(0.1)
            c.post("/api/v1/locks/release", {"key": "pipeline:etl", "holder": "h1", "fence": got["fence"]}).expect(200)
            c.post("/api/v1/locks/renew", {"key": "pipeline:etl", "holder": "h1", "fence": got["fence"]}).expect(409)
            c.post("/api/v1/locks/release", {"key": "pipeline:etl", "holder": "h1", "fence": got["fence"] + 1})
            c.post("/api/v1/locks/acquire", {"key": "plain", "holder": "h3"}).expect(200)
            c.post("/api/v1/locks/break", {"key": "plain", "reason": "because", "now": True}).expect(200)
            run = c.post("/api/v1/runs", {"key": "import:runs"}).expect(201).json
            c.post(f"/api/v1/runs/{run['id']}/finish", {"holder": run["id"], "fence": run["fence"], "state": "COMPLETED"}).expect(200)
        acquired = wait_event(s, "lock.acquired", 3)
        first = acquired[0]
        assert first["request_id"] == "req-1" and first["tenant_id"] == "acme" and first["pipeline_id"] == "etl", first
        assert first["key"] == "pipeline:etl" and first["holder"] == "h1" and first["fence"] == got["fence"] and first["lock_wait_ms"] == 0, first
        assert "pipeline_id" not in acquired[1] and acquired[1]["key"] == "plain"
        assert acquired[2]["run_id"] == run["id"] and "pipeline_id" not in acquired[2]
        conflict = wait_event(s, "lock.conflict")[0]
        assert conflict["holder"] == "h2" and 150 <= conflict["lock_wait_ms"] < 2000 * lib.SLOW and conflict["code"] == "LOCK_HELD", conflict
        released = wait_event(s, "lock.released", 2)
        assert 300 <= released[0]["lock_hold_ms"] < 5000 * lib.SLOW and released[0]["pipeline_id"] == "etl", released
        assert released[1]["run_id"] == run["id"] and "lock_hold_ms" in released[1], released
        failed = wait_event(s, "lock.release_failed")[0]
        assert failed["level"] == "warn" and failed["code"], failed
        broken = wait_event(s, "lock.broken")[0]
        assert broken["reason"] == "because" and broken["key"] == "plain", broken
        wait_event(s, "lock.lost")


def test_a_clients_mistake_is_no_error():
    """An acquire that could not be meant so is answered 400; it is neither an error of the server in the log, nor an attempt."""
    with lib.Server() as s:
        s.post("/api/v1/locks/acquire", {"key": "a\nb"}).expect(400, "BAD_REQUEST")
        s.post("/api/v1/batch", {"ops": [{"op": "acquire", "key": "a\nb"}]})
        s.post("/api/v1/locks/acquire", {"key": "good"}).expect(200)
        wait_event(s, "lock.acquired")
        assert not events(s, "lock.error"), s.log
        assert re.search(r'interlock_lock_acquisitions_total\{result="error"\} 0\b', s.get("/metrics").body.decode())


def test_expiry():
    for store in ("memory:", "sqlite"):
        with lib.Server(store=store) as s:
            s.post("/api/v1/locks/acquire", {"key": "pipeline:etl", "holder": "gone", "ttl_ms": 1000}).expect(200)
            kept = s.post("/api/v1/locks/acquire", {"key": "kept", "holder": "alive", "ttl_ms": 1000}).expect(200).json
            back = s.post("/api/v1/locks/acquire", {"key": "back", "holder": "tidy", "ttl_ms": 1000}).expect(200).json
            s.post("/api/v1/locks/release", {"key": "back", "holder": "tidy", "fence": back["fence"]}).expect(200)
            deadline = time.monotonic() + 6 * lib.SLOW
            while not events(s, "lock.expired") and time.monotonic() < deadline:
                s.post("/api/v1/locks/renew", {"key": "kept", "holder": "alive", "fence": kept["fence"], "ttl_ms": 1000}).expect(200)
                time.sleep(0.2)
            rows = events(s, "lock.expired")
            assert [(r["key"], r["holder"], r["pipeline_id"], r["tenant_id"]) for r in rows] == [("pipeline:etl", "gone", "etl", "default")], rows
            assert 900 <= rows[0]["lock_hold_ms"] <= 1100, rows
            text = s.get("/metrics").body.decode()
            assert 'pipeline_lock_expirations_total{tenant_id="default",pipeline_id="etl"} 1' in text


def test_ended_through_another_server_is_no_expiry():
    with lib.Server(store="sqlite") as a, lib.Server(store=a.store, key=a.key) as b:
        got = a.post("/api/v1/locks/acquire", {"key": "k", "holder": "h", "ttl_ms": 1000}).expect(200).json
        long = a.post("/api/v1/locks/acquire", {"key": "long", "holder": "h", "ttl_ms": 1000}).expect(200).json
        broken = a.post("/api/v1/locks/acquire", {"key": "broken", "holder": "h", "ttl_ms": 1000}).expect(200).json
        lost = a.post("/api/v1/locks/acquire", {"key": "lost", "holder": "h", "ttl_ms": 1000}).expect(200).json
        assert lost["fence"]
        b.post("/api/v1/locks/break", {"key": "broken", "fence": broken["fence"], "reason": "stuck", "now": True}).expect(200)
        b.post("/api/v1/locks/release", {"key": "k", "holder": "h", "fence": got["fence"]}).expect(200)
        b.post("/api/v1/locks/renew", {"key": "long", "holder": "h", "fence": long["fence"], "ttl_ms": 60000}).expect(200)
        rows = wait_event(a, "lock.expired")
        assert [r["key"] for r in rows] == ["lost"], rows


def test_more_leases_than_are_shown_stay():
    """The check for expired leases must not end those of a key that has more than one answer shows."""
    with lib.Server(store="sqlite") as a, lib.Server(store=a.store, key=a.key) as b:
        ttl_ms = int(8000 * lib.SLOW)  # long enough for two large batches on a busy machine
        many = [{"op": "acquire", "key": "many", "holder": f"h{i}", "mode": "shared", "ttl_ms": ttl_ms} for i in range(1100)]
        fences = [got["fence"] for got in a.post("/api/v1/batch", {"ops": many}).expect(200).json["results"]]
        renewals = [{"op": "renew", "key": "many", "holder": f"h{i}", "fence": fence, "ttl_ms": 600000} for i, fence in enumerate(fences)]
        b.post("/api/v1/batch", {"ops": renewals}).expect(200)
        # It expires after them, so it is checked after them.
        a.post("/api/v1/locks/acquire", {"key": "last", "holder": "h", "ttl_ms": ttl_ms}).expect(200)
        assert [r["key"] for r in lib.eventually(lambda: events(a, "lock.expired"), 30, "lock.expired")] == ["last"]
        got = b.post("/api/v1/batch", {"ops": renewals}).expect(200).json["results"]
        assert [r["status"] for r in got] == ["OK"] * len(fences), [i for i, r in enumerate(got) if r["status"] != "OK"]


def test_a_refused_release_is_nobodys_end():
    """A release that is refused, of the same tenant or another, changes nothing about how the lease's end is told."""
    with lib.Server() as s:
        got = s.post("/api/v1/locks/acquire", {"key": "pipeline:etl", "holder": "gone", "ttl_ms": 1000}).expect(200).json
        release = {"key": "pipeline:etl", "holder": "other", "fence": got["fence"]}
        assert s.post("/api/v1/locks/release", release).status >= 400
        with s.new_client(s.key_for("acme")) as acme:
            assert acme.post("/api/v1/locks/release", {**release, "holder": "gone"}).status >= 400
        rows = wait_event(s, "lock.expired")
        assert rows[0]["fence"] == got["fence"] and rows[0]["lock_hold_ms"] >= 900, rows


def test_levels():
    for level, lines in (("debug", True), ("info", False)):
        with lib.Server(args=["--log-level", level]) as s:
            s.get("/api/v1/locks").expect(200)
            s.post("/api/v1/locks/acquire", {"key": "k", "holder": "h"}).expect(200)
            s.get("/health").expect(200)
            assert s.stop() == 0
            names = {r["event"] for r in events(s)}
            assert ("http.request" in names) == lines, names
            assert "lock.acquired" in names, names
    with lib.Server(start=False, listen="unix", args=["--log-level", "error"]) as s:
        process = subprocess.Popen(s.command(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, cwd=s.folder)
        lib.eventually(lambda: os.path.exists(s.listen[len("unix:"):]), 20, "the socket")
        process.send_signal(signal.SIGTERM)
        log = process.communicate(timeout=20)[1]
        assert b'"event"' not in log and process.returncode == 0, log


def test_slow_requests():
    """A request is told at info if it took long by the server's fault, not if it asked to wait."""
    with lib.Server(store="sqlite", args=["--log-level", "info"]) as s:
        s.post("/api/v1/locks/acquire", {"key": "k", "holder": "h"}).expect(200)
        s.post("/api/v1/locks/acquire", {"key": "k", "holder": "i", "wait_ms": 1200}, headers={"X-Request-Id": "waits"}).expect(409)
        with open(s.store.removeprefix("sqlite:") + "-lock", "rb") as lock, contextlib.ExitStack() as stack:
            fcntl.flock(lock, fcntl.LOCK_EX)
            free = threading.Timer(1.3, fcntl.flock, (lock, fcntl.LOCK_UN))
            stack.callback(free.join)
            free.start()
            s.post("/api/v1/locks/acquire", {"key": "slow", "holder": "h"}, headers={"X-Request-Id": "slow-1"}).expect(200)
        rows = wait_event(s, "http.request_slow")
        assert [r["request_id"] for r in rows] == ["slow-1"] and rows[0]["took_ms"] >= 1000 and rows[0]["status"] == 200, rows
        assert not events(s, "http.request")


def test_request_lines():
    with lib.Server(args=["--log-level", "debug"]) as s:
        s.get("/api/v1/locks/get?key=secret-query", headers={"X-Request-Id": "abc-1"}).expect(404)
        row = [r for r in wait_event(s, "http.request") if r.get("request_id") == "abc-1"][0]
        assert row["status"] == 404 and row["route"] == "lock_get" and row["tenant_id"] == "default" and row["took_ms"] >= 0 and row["bytes"] > 50, row
        assert row["path"] == "/api/v1/locks/get" and len(row["key_id"]) == 36 and "secret-query" not in s.log


def test_nobody_can_write_lines_of_his_own():
    evil = 'x"\n{"event":"forged"}\x1b[2J\x9b1m\u2028\u0085'
    with lib.Server(args=["--log-level", "debug"]) as s:
        s.post("/api/v1/locks/acquire", {"key": evil, "holder": "h"})
        s.post("/api/v1/locks/acquire", {"key": 'quote"back\\slash', "holder": 'h"h'}).expect(200)
        s.get("/api/v1/%0a%22forged%22", headers={"X-Request-Id": 'a"b'})
        s.get("/api/v1/runs/%C3%28%FF")
        with s.socket() as sock:
            sock.sendall(b"GET /api/v1/\xff\xfe\x9b HTTP/1.1\r\nHost: x\r\nX-Request-Id: \xff\xfe\r\n\r\n")
            sock.recv(4096)
        assert s.stop() == 0
        assert "forged" not in {r["event"] for r in events(s)}
        rows = [r for r in events(s, "lock.acquired")]
        assert rows[0]["key"] == 'quote"back\\slash' and rows[0]["holder"] == 'h"h'
        for line in s.lines:
            assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", line.rstrip("\n")), repr(line)


def test_text_format():
    with lib.Server(args=["--log-format", "text", "--log-level", "debug"]) as s:
        s.post("/api/v1/locks/acquire", {"key": "two words", "holder": 'a"b'}).expect(200)
        line = s.wait_log("lock.acquired")
        assert re.match(r"\d{4}-\d\d-\d\dT[\d:.]+Z info  lock\.acquired ", line), line
        assert 'key="two words"' in line and 'holder="a\\"b"' in line and "tenant_id=default" in line, line
        assert all(re.match(r"\d{4}-\d\d-\d\dT", line) for line in s.lines)


def test_a_reader_that_does_not_read_does_not_stop_the_server():
    with tempfile.TemporaryDirectory(prefix="interlock-log-") as folder:
        path = folder + "/socket"
        process = subprocess.Popen([lib.BINARY, "serve", "--allow-root", "--store", "memory:", "--listen", "unix:" + path, "--log-level", "debug",
                                    "--log-format", "json"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
                                   env={"PATH": os.environ["PATH"], "HOME": folder})
        try:
            lib.eventually(lambda: os.path.exists(path), 20, "the socket")
            conn = lib.UnixConnection(path, 20)
            slowest = 0.0
            for i in range(6000):
                began = time.monotonic()
                conn.request("GET", "/health", headers={"X-Request-Id": f"{i:064}"})
                assert conn.getresponse().read()
                slowest = max(slowest, time.monotonic() - began)
            assert slowest < 5 * lib.SLOW, slowest
            conn.close()
            # now somebody reads: what fits was kept, whole lines, and the rest is counted
            process.send_signal(signal.SIGTERM)
            lines = process.stderr.read().decode().splitlines()
            assert process.wait(20) == 0
            rows = [json.loads(line) for line in lines]
            assert 100 < len(rows) < 6002 + 20, len(rows)
        finally:
            process.kill()
            process.wait()
            process.stderr.close()


def test_nobody_can_fill_the_disk_with_wrong_keys():
    with lib.Server(env={"INTERLOCK_LOGIN_FAILURES": "1000000"}) as s:
        for _ in range(4000):
            s.get("/api/v1/locks", key="sk_default_" + "B" * 43).expect(401)
        s.post("/api/v1/locks/acquire", {"key": "k", "holder": "h"}).expect(200)
        wait_event(s, "lock.acquired")
        assert wait_event(s, "log.dropped")[0]["lines"] > 0
        assert len(events(s, "auth.failed")) < 2000, len(events(s, "auth.failed"))


# ---- secrets

def plant(s):
    """Something secret in every place that takes one."""
    secrets = {name: f"canary-{name}-{os.urandom(6).hex()}" for name in
               ("payload", "result", "error-of-job", "value", "meta", "log-of-run", "idempotent", "cron", "authorization", "cookie", "query")}
    c = s.new_client(s.key_for("acme", "operator"))
    c.post("/api/v1/locks/acquire", {"key": "k", "holder": "h", "meta": secrets["meta"]}).expect(200)
    c.post("/api/v1/locks/acquire", {"key": "k", "holder": "h2", "meta": secrets["meta"]}).expect(409)
    c.post("/api/v1/queues/q/jobs", {"payload": secrets["payload"]}, headers={"Idempotency-Key": "i-1"}).expect(201)
    c.post("/api/v1/queues/q/jobs", {"payload": {"x": secrets["idempotent"]}}, headers={"Idempotency-Key": "i-1"}).expect(422)
    job = c.post("/api/v1/queues/q/claim", {}).expect(200).json["items"][0]
    c.post(f"/api/v1/jobs/{job['id']}/finish", {"token": job["token"], "result": secrets["result"]}).expect(200)
    c.post(f"/api/v1/jobs/{job['id']}/fail", {"token": job["token"], "error": secrets["error-of-job"]})
    led = c.post("/api/v1/cache/lookup", {"key": "c", "holder": "h"}).expect(202).json
    c.post("/api/v1/cache/fill", {"key": "c", "holder": "h", "token": led["token"], "value": secrets["value"], "ttl_ms": 60000}).expect(200)
    run = c.post("/api/v1/runs", {"key": "r", "meta": secrets["meta"]}).expect(201).json
    c.post(f"/api/v1/runs/{run['id']}/stage", {"holder": run["id"], "fence": run["fence"], "log": secrets["log-of-run"]}).expect(200)
    c.put("/api/v1/crons/n", {"queue": "q", "schedule": "0 0 1 1 *", "payload": secrets["cron"]}).expect(200)
    c.get("/api/v1/locks", key=None, headers={"Authorization": "Bearer sk_acme_" + secrets["authorization"], "Cookie": "s=" + secrets["cookie"]}).expect(401)
    c.get("/api/v1/locks", key=None, headers={"Authorization": "Basic " + secrets["authorization"]}).expect(401)
    c.get("/api/v1/locks?prefix=" + secrets["query"]).expect(200)
    c.post("/api/v1/queues/q/jobs", {"payload": secrets["payload"], "nonsense": secrets["payload"]}).expect(400)
    c.ask("POST", "/api/v1/queues/q/jobs", raw=('{"payload": "' + secrets["payload"] + '", ').encode()).expect(400)
    secrets["key"] = c.key
    secrets["secret-of-key"] = c.key[-43:]
    secrets["admin"] = s.key
    secrets["secret-of-admin"] = s.key[-43:]
    c.close()
    return secrets


def test_no_secret_is_ever_logged():
    for level in ("debug", "info"):
        with lib.Server(store="sqlite", args=["--log-level", level]) as s:
            secrets = plant(s)
            secrets["value-of-nothing"] = "canary-"
            metrics = s.get("/metrics").body.decode()
            audit = s.get("/api/v1/admin/audit?limit=1000").body.decode()
            assert s.stop() == 0
            for name, secret in secrets.items():
                assert secret not in s.log, name
                assert secret not in metrics, name
                assert secret not in audit, name
            # Keys are nowhere in the files, nor is anything of them in the folder.
            for path in glob.glob(s.folder + "/**", recursive=True):
                if os.path.isfile(path):
                    with open(path, "rb") as file:
                        data = file.read()
                    for name in ("key", "secret-of-key", "admin", "secret-of-admin", "authorization", "cookie"):
                        assert secrets[name].encode() not in data, (name, path)


def test_errors_at_the_start_tell_no_password():
    for url in ("postgres://user:canary-password@127.0.0.1:1/db", "redis://:canary-password@127.0.0.1:1"):
        with lib.Server(store=url, key="none", start=False) as s:
            s.start()  # it waits for the store
            s.wait_log(r"store\.down")
            told = s.get("/ready").expect(503).body.decode()
            assert s.stop() == 0
            assert "canary-password" not in told + s.log + "".join(s.out), s.log
    with tempfile.TemporaryDirectory() as folder:
        with open(folder + "/pepper", "w", encoding="ascii") as file:
            file.write("canary-pepper-that-is-long-enough")
        os.chmod(folder + "/pepper", 0o600)
        with lib.Server(store="sqlite", args=["--pepper-file", folder + "/pepper", "--log-level", "debug"]) as s:
            s.get("/api/v1/locks").expect(200)
            assert s.stop() == 0
            assert "canary-pepper" not in s.log + "".join(s.out)
            for path in glob.glob(s.folder + "/*"):
                if os.path.isfile(path):
                    with open(path, "rb") as file:
                        assert b"canary-pepper" not in file.read(), path


def test_a_crash_leaves_no_core_with_keys():
    old = resource.getrlimit(resource.RLIMIT_CORE)
    try:
        resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    except ValueError:
        pass
    try:
        with lib.Server() as s:
            s.get("/api/v1/locks").expect(200)
            with open(f"/proc/{s.pid}/cmdline", "rb") as file:
                assert b"sk_" not in file.read()
            with contextlib.suppress(PermissionError):  # only root can read it
                with open(f"/proc/{s.pid}/environ", "rb") as file:
                    assert b"sk_" not in file.read()
            s.send(signal.SIGSEGV)
            s.process.wait(20)
            assert not [path for path in glob.glob(s.folder + "/*core*")], os.listdir(s.folder)
    finally:
        resource.setrlimit(resource.RLIMIT_CORE, old)


lib.main(globals())
