"""What the server gives to an app: grants, runs, rate buckets, metrics, log lines, the pool of threads, streamed lists, row locks.

The server is interlock-toy, whose only app is the toy.
"""
import http.client
import json
import os
import re
import select
import socket
import subprocess
import tempfile
import time

import fleet
import lib

THREADS = 16  # of the pool's 32: the share of a tenant that is alone
WAITING = 128  # of 256 places in the queue


class Server(lib.Server):
    def metric(self, name):
        found = re.search("^" + re.escape(name) + r" (\S+)$", self.get("/metrics").body.decode(), re.M)
        assert found, f"/metrics has no {name}"
        return float(found.group(1))

    def until(self, name, value):
        lib.eventually(lambda: self.metric(name) == value, what=f"{name} = {value}")


class Call:
    """A request on a connection of its own, whose answer is read later."""

    def __init__(self, server, path, method="POST", key=None):
        self.conn = server.connection(60)
        headers = {"X-API-Key": key or server.key}
        self.conn.request(method, "/api/v1" + path, headers=headers)

    def answer(self):
        with self.conn.getresponse() as got:
            return lib.Answer(got.status, got.headers, got.read())

    def hang_up(self):
        self.conn.sock.shutdown(socket.SHUT_RDWR)
        self.conn.close()


def hold_all(s, n=THREADS, key=None, how="?stubborn=true"):
    """Requests that keep n threads of the pool until /toy/release."""
    before = s.metric("toy_holding")
    calls = [Call(s, "/toy/hold" + how, key=key) for _ in range(n)]
    s.until("toy_holding", before + n)
    return calls


# ---- starting


def pass_gate(path, word):
    with open(path, "w", encoding="ascii") as gate:  # waits until the toy reads it
        gate.write(word)


def test_start():
    """an app that is not in use starts with a request for it; one that cannot start holds up nobody else"""
    with tempfile.TemporaryDirectory() as folder:
        gate = folder + "/gate"
        os.mkfifo(gate)
        with Server(env={"TOY_GATE": gate}) as s:
            calls = [Call(s, "/toy/read", "GET") for _ in range(2)]
            s.until("interlock_http_pool_busy", 2)
            pass_gate(gate, "shut")
            # one has failed, the other is at the gate
            ready = select.select([call.conn.sock for call in calls], [], [], 20 * lib.SLOW)[0]
            assert len(ready) == 1, "no answer while the other start is under way"
            calls.sort(key=lambda call: call.conn.sock not in ready)
            got = calls[0].answer().expect(503, "STORE_UNAVAILABLE")
            assert got.json["error"]["message"] == "the store is unavailable", got
            assert got.json["error"]["source"] == "toy", got
            assert json.loads(s.wait_log("app.failed"))["message"] == f"toy: toy: the gate {gate} is shut"
            s.post("/api/v1/locks/acquire", {"key": "a", "holder": "me"}).expect(200)
            pass_gate(gate, "open")
            calls[1].answer().expect(200)
            s.get("/api/v1/toy/read").expect(200)


# ---- permissions


def test_grants():
    """who has admin:toy and admin:toy:write: the role admin, and keys that were given them"""
    with Server() as s:
        keys = {role: s.key_for("t", role) for role in ("read", "write", "operator")}
        for permission in ("admin:toy", "admin:toy:write", "admin:toy:write:more", "admin", "admin:toyland", "admin:to",
                           "toy:read", "toy_read", "toy_write"):
            keys[permission] = s.key_for("t", "none", permissions=[permission])
        keys["the permission admin"] = keys.pop("admin")
        keys["admin"] = s.key_for("t", "admin")
        keys["several"] = s.key_for("t", "none", permissions=["lock:get", "admin:toy"])
        readers = {"admin", "admin:toy", "admin:toy:write", "admin:toy:write:more", "several"}
        writers = {"admin", "admin:toy:write", "admin:toy:write:more"}
        for name, key in keys.items():
            for method, path, has in (("GET", "/toy/read", readers), ("POST", "/toy/write", writers)):
                got = s.ask(method, "/api/v1" + path, key=key)
                wanted = 200 if name in has else 403
                assert got.status == wanted, (name, path, got)
                if wanted == 403:
                    needed = "admin:toy" if path == "/toy/read" else "admin:toy:write"
                    assert got.json["error"]["details"]["permission"] == needed, got
                    assert needed in got.json["error"]["message"], got


def test_grant_is_documented():
    """/openapi.json shows the grant and the rate of a route"""
    with Server() as s:
        paths = s.get("/openapi.json").expect(200).json["paths"]
        assert paths["/api/v1/toy/read"]["get"]["x-permission"] == "admin:toy"
        assert paths["/api/v1/toy/write"]["post"]["x-permission"] == "admin:toy:write"
        limited = paths["/api/v1/toy/limited"]["post"]
        assert limited["x-permission"] == "write"
        assert limited["x-rate-limit"] == {"quota": "toys", "limit": 2, "period_ms": 3600000}, limited
        assert "x-rate-limit" not in paths["/api/v1/toy/hold"]["post"]


def test_reserved_runs():
    """only runs with the app's class are reserved; its locks, and the keys that other apps use, are ordinary"""
    with Server() as s:
        s.post("/api/v1/runs", {"key": "toy:1"}).expect(403, "KEY_RESERVED")
        s.post("/api/v1/runs", {"key": "toys:1"}).expect(201)
        for key in ("toy:1", "event:1", "tournament:1", "usage_day:2026-01-01", "pipeline:x"):
            got = s.post("/api/v1/locks/acquire", {"key": key, "holder": "me"}).expect(200).json
            s.post("/api/v1/locks/release", {"key": key, "holder": "me", "fence": got["fence"]}).expect(200)
        for key in ("event:1", "tournament:1", "usage_day:2026-01-01"):
            s.post("/api/v1/runs", {"key": key}).expect(201)


def ended_run(s, run):
    """The run, once it has ended."""
    return lib.eventually(lambda: (got := s.get(f"/api/v1/runs/{run}").expect(200).json)["ended_at"] and got, what="end of the run")


def test_runs():
    """a route of the app starts runs, which its server executes one after the other; each is recorded and counted once"""
    with Server() as s:
        runs = [s.post(f"/api/v1/toy/runs?n={n}").expect(200).json["text"] for n in (1, 10, 100)]
        ended = [ended_run(s, run) for run in runs]
        assert [got["state"] for got in ended] == ["COMPLETED"] * 3 and {got["key"] for got in ended} == {"toy:play"}, ended
        s.until("toy_runs_counted_total", 111)
        bad = ended_run(s, s.post("/api/v1/toy/runs?n=1000&break=true").expect(200).json["text"])
        assert bad["state"] == "FAILED" and "the toy is broken" in bad["error"], bad
        assert s.metric("toy_runs_counted_total") == 111
        s.post("/api/v1/toy/runs", key=s.key_for("default", "read")).expect(403)


# ---- rates


def test_bucket():
    """two calls an hour and tenant; the third is refused"""
    with Server() as s:
        one, other = s.key_for("one"), s.key_for("other")
        for _ in range(2):
            s.post("/api/v1/toy/limited", key=one).expect(200)
        got = s.post("/api/v1/toy/limited", key=one).expect(429, "RATE_LIMITED")
        details = got.json["error"]["details"]
        assert details["quota"] == "toys" and details["limit"] == 2, got
        # the next token comes after half an hour, less the time of these calls
        assert 0 < details["retry_after_ms"] <= 1800000, got
        assert int(got.headers["Retry-After"]) == -(-details["retry_after_ms"] // 1000), got
        s.post("/api/v1/toy/limited", key=other).expect(200)
        s.post("/api/v1/toy/measure?n=1", key=one).expect(200)
        assert s.metric("interlock_rate_limited_total") == 1


def test_refund():
    """a request that did no work gives its token back; a repeated answer takes none"""
    with Server() as s:
        for _ in range(10):
            s.post("/api/v1/toy/limited?refund=true").expect(200)
        s.post("/api/v1/toy/limited?refund=maybe").expect(400)  # took one: only its handler could know better
        for _ in range(5):
            s.post("/api/v1/toy/limited", headers={"Idempotency-Key": "a"}).expect(200)
        s.post("/api/v1/toy/limited").expect(429)
        s.post("/api/v1/toy/limited", headers={"Idempotency-Key": "a"}).expect(200)


# ---- metrics and log


def test_metrics():
    """a counter, a gauge, a histogram, and a counter with a label"""
    with Server() as s:
        s.post("/api/v1/toy/measure?n=3").expect(200)
        s.post("/api/v1/toy/measure?n=4").expect(200)
        text = s.get("/metrics").body.decode()
        for line in ("# HELP toy_plays_total plays", "# TYPE toy_plays_total counter", "toy_plays_total 7",
                     "# TYPE toy_last gauge", "toy_last 4", "# TYPE toy_play_seconds histogram",
                     'toy_play_seconds_bucket{le="1"} 0', 'toy_play_seconds_bucket{le="2.5"} 2',
                     'toy_play_seconds_bucket{le="+Inf"} 2', "toy_play_seconds_sum 4", "toy_play_seconds_count 2",
                     'toy_holds_total{outcome="released"} 0', 'toy_holds_total{outcome="gone"} 0'):
            assert line in text.split("\n"), f"no {line!r} in:\n" + "\n".join(x for x in text.split("\n") if "toy" in x)


def test_log():
    """a line from another thread, with its fields"""
    with Server() as s:
        s.post("/api/v1/toy/measure?n=5").expect(200)
        line = json.loads(s.wait_log("toy.played"))
        del line["ts"]
        assert line == {"level": "info", "event": "toy.played", "tenant_id": "toy \"land\"", "plays": 5, "took_ms": 1.5}, line


def test_callbacks():
    """the server calls tick, print_metrics and stop"""
    with Server(env={"INTERLOCK_TOY_SOURCE_RETRIES": "7"}) as s:
        assert s.metric("toy_retries") == 7
        lib.eventually(lambda: s.metric("toy_ticks_total") >= 2, what="two ticks")
        assert s.stop() == 0, s.log
        assert json.loads(s.wait_log("toy.stopping"))["reloads"] == 0


def test_log_flood():
    """lines that come too fast are dropped, counted and reported"""
    with Server() as s:
        s.post("/api/v1/toy/flood?n=100").expect(200)
        lib.eventually(lambda: s.log.count("toy.flood") == 100, what="100 lines")
        s.post("/api/v1/toy/flood?n=5000").expect(200)
        lib.eventually(lambda: s.log.count("toy.flood") == 100 + 1024, what="as many lines as may be on their way")
        assert s.metric("interlock_log_dropped_total") == 5000 - 1024
        assert json.loads(s.wait_log("log.dropped"))["lines"] == 5000 - 1024
        s.post("/api/v1/toy/flood?n=1").expect(200)
        lib.eventually(lambda: s.log.count("toy.flood") == 100 + 1024 + 1, what="one more line")


# ---- the pool


def test_pool_shares():
    """a tenant gets its share of threads and places; more is refused; others are not held up"""
    with Server() as s:
        other = s.key_for("other")
        calls = hold_all(s)
        calls += [Call(s, "/toy/hold") for _ in range(WAITING)]
        s.until("interlock_http_pool_waiting", WAITING)
        got = s.post("/api/v1/toy/hold").expect(503, "SERVER_BUSY")
        assert got.headers["Retry-After"] == "1" and got.json["error"]["details"]["retry_after_ms"] == 1000, got
        assert s.metric("interlock_http_pool_refused_total") == 1
        assert s.metric("interlock_http_pool_busy") == THREADS
        s.post("/api/v1/toy/measure?n=1", key=other).expect(200)
        # and routes without the pool do not notice
        s.post("/api/v1/locks/acquire", {"key": "a", "holder": "me"}).expect(200)
        s.post("/api/v1/toy/release").expect(200)
        for call in calls:
            assert call.answer().expect(200).json["text"] == "released"
        s.until("interlock_http_pool_busy", 0)
        assert s.metric("interlock_http_pool_waiting") == 0


def test_pool_turns():
    """a tenant that comes later gets its turn before those that another has queued"""
    with Server() as s:
        keys = [s.key_for(f"t{i}") for i in range(6)]
        calls = []
        # 16, 8, 4, 2, 1 threads: as many as are left
        for i, n in enumerate((16, 8, 4, 2, 1)):
            calls += hold_all(s, n, keys[i])
        calls += [Call(s, "/toy/hold", key=keys[0]) for _ in range(20)]
        s.until("interlock_http_pool_waiting", 20)
        late = hold_all(s, 1, keys[5])  # the last thread: it is nobody's share but a newcomer's
        assert s.metric("interlock_http_pool_busy") == 32
        s.post("/api/v1/toy/release").expect(200)
        for call in calls + late:
            assert call.answer().expect(200).json["text"] == "released"


def test_pool_deadline():
    """running work sees its deadline; work that waits until then is refused and never begins"""
    with Server(env={"INTERLOCK_REQUEST_TIMEOUT": "300ms"}) as s:
        got = s.post("/api/v1/toy/hold").expect(200).json
        assert got["text"] == "deadline" and got["n"] == 1, got  # 0 ms would be no limit for a transaction
        calls = hold_all(s)
        s.post("/api/v1/toy/hold").expect(503, "SERVER_BUSY")
        assert s.metric("interlock_http_pool_expired_total") == 1
        assert s.metric("toy_holding") == THREADS
        s.post("/api/v1/toy/release").expect(200)
        for call in calls:
            call.answer().expect(200)
        assert s.metric('toy_holds_total{outcome="released"}') == THREADS


def test_pool_client_gone():
    """the client hangs up: running work is cancelled, waiting work never begins"""
    with Server() as s:
        call = Call(s, "/toy/hold")
        s.until("toy_holding", 1)
        call.hang_up()
        s.until('toy_holds_total{outcome="gone"}', 1)
        calls = hold_all(s, how="")
        waiting = Call(s, "/toy/hold")
        s.until("interlock_http_pool_waiting", 1)
        waiting.hang_up()
        s.until("interlock_http_pool_waiting", 0)
        s.post("/api/v1/toy/release").expect(200)
        for one in calls:
            assert one.answer().expect(200).json["text"] == "released"
        assert s.metric('toy_holds_total{outcome="released"}') == THREADS
        s.until("interlock_http_pool_busy", 0)


def query_client_gone(store):
    """The client hangs up during a query that would take forever: it ends at once."""
    with Server(store=store) as s:
        for n in (1, 2):
            call = Call(s, "/toy/query?n=1")
            s.until("toy_querying", 1)
            call.hang_up()
            s.until('toy_queries_total{how="cancelled"}', n)
            s.until("toy_querying", 0)
        s.post("/api/v1/toy/rows?n=1").expect(200)  # other transactions of the handle go on


def test_query_client_gone_sqlite():
    """a query of a client that hangs up is cancelled, SQLite"""
    with tempfile.TemporaryDirectory() as folder:
        query_client_gone(f"sqlite:{folder}/x.db")


def test_query_client_gone_postgres():
    """a query of a client that hangs up is cancelled, PostgreSQL"""
    fleet.servers()
    query_client_gone(os.environ["IL_TEST_POSTGRES"] + f"&schema=il_toy_{os.getpid()}")
    left = subprocess.run(["psql", "-XAtc", "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep(600)%' AND state = 'active'",
                           os.environ["IL_TEST_POSTGRES"]], capture_output=True, text=True, check=True)
    assert left.stdout.strip() == "0", left.stdout


def test_pool_stop():
    """a stop lets running work end until its time is over, then cancels it"""
    with Server(env={"INTERLOCK_SHUTDOWN": "300ms"}) as s:
        calls = hold_all(s)  # stubborn: only cancelling ends them
        waiting = Call(s, "/toy/hold")
        s.until("interlock_http_pool_waiting", 1)
        assert s.stop() == 0, s.log
        for call in calls + [waiting]:
            call.conn.close()


# ---- lists


def get_list(s, query, **more):
    return s.get("/api/v1/toy/list?" + query, **more)


def test_list_short():
    """a short list is an ordinary answer"""
    with Server() as s:
        assert get_list(s, "n=0").expect(200).json == {"items": [], "next": None}
        got = get_list(s, "n=7").expect(200)
        assert int(got.headers["Content-Length"]) == len(got.body)
        assert [item["n"] for item in got.json["items"]] == list(range(7)) and got.json["next"] == "8", got
        assert s.ask("HEAD", "/api/v1/toy/list?n=7").expect(200).body == b""
        get_list(s, "n=7&fail_at=1").expect(503, "TOY_BROKEN")
        get_list(s, "n=7&fail_at=5").expect(503, "TOY_BROKEN")


def high_water(s):
    """The most memory that the server has had, in bytes."""
    with open(f"/proc/{s.pid}/status", encoding="ascii") as file:
        return int(re.search(r"VmHWM:\s*(\d+) kB", file.read()).group(1)) * 1024


def test_list_long():
    """200,000 items: all of them arrive, the connection stays, the server's memory stays flat"""
    with Server() as s:
        get_list(s, "n=2000").expect(200)
        before = high_water(s)
        got = get_list(s, "n=200000").expect(200)
        assert got.headers["Transfer-Encoding"] == "chunked"
        assert len(got.body) > 40 << 20
        assert [item["n"] for item in got.json["items"]] == list(range(200000)) and got.json["next"] is None
        grown = high_water(s) - before
        assert grown < 4 << 20, f"{grown} bytes more"
        get_list(s, "n=1").expect(200)
        assert s.metric("interlock_http_connections_total") == 1


def test_list_slow_client():
    """a client that does not read stops its own list only, and gets the rest when it reads again"""
    with Server() as s:
        get_list(s, "n=2000").expect(200)
        before = high_water(s)
        slow = [Call(s, "/toy/list?n=100000", "GET") for _ in range(4)]
        s.until("interlock_http_pool_busy", 4)
        s.post("/api/v1/toy/measure?n=1").expect(200)
        for call in slow:
            body = call.answer().expect(200).body  # test_list_long parses one
            assert body.count(b'"n":') == 100000 and body.endswith(b'],"next":null}'), body[-100:]
        assert high_water(s) - before < (8 if lib.SLOW == 1 else 64) << 20  # a sanitizer keeps what was freed
        s.until("interlock_http_pool_busy", 0)


def expect_broken(call):
    try:
        got = call.answer()
    except (http.client.IncompleteRead, ConnectionResetError):
        return
    raise AssertionError(f"expected a broken connection, got {got.status} with {len(got.body)} bytes")


def test_list_breaks():
    """a failure in the middle breaks the connection"""
    with Server() as s:
        for at in (2000, 49999):
            expect_broken(Call(s, f"/toy/list?n=50000&fail_at={at}", "GET"))
        get_list(s, "n=3").expect(200)
        s.until("interlock_http_pool_busy", 0)


def test_list_deadline():
    """a client that does not take the list until the deadline loses it"""
    with Server(env={"INTERLOCK_REQUEST_TIMEOUT": "300ms"}) as s:
        call = Call(s, "/toy/list?n=200000", "GET")
        s.until("toy_lists_stopped_total", 1)
        expect_broken(call)
        s.until("interlock_http_pool_busy", 0)


def test_list_slow_producer():
    """a list that is not produced until the deadline is stopped, even if nothing could be sent so far"""
    with Server(env={"INTERLOCK_REQUEST_TIMEOUT": "100ms"}) as s:
        get_list(s, "n=250&idle=true").expect(503, "TOY_BROKEN")  # less than a chunk, in at least 250 ms
        assert s.metric("toy_lists_stopped_total") == 1
        s.until("interlock_http_pool_busy", 0)


def test_list_client_gone():
    """the client hangs up in the middle: the producer stops"""
    with Server() as s:
        for n in range(1, 4):
            call = Call(s, "/toy/list?n=4000000000", "GET")
            s.until("interlock_http_pool_busy", 1)
            call.hang_up()
            s.until("toy_lists_stopped_total", n)
        # while the server is sending at full speed
        call = Call(s, "/toy/list?n=4000000000", "GET")
        for _ in range(50):
            call.conn.sock.recv(1 << 16)
        call.hang_up()
        s.until("toy_lists_stopped_total", 4)
        s.until("interlock_http_pool_busy", 0)
        s.until("interlock_http_connections", 1)


def test_list_stop():
    """a stop with lists on their way"""
    with Server(env={"INTERLOCK_SHUTDOWN": "300ms"}) as s:
        calls = [Call(s, "/toy/list?n=4000000000", "GET") for _ in range(3)]
        s.until("interlock_http_pool_busy", 3)
        assert s.stop() == 0, s.log
        for call in calls:
            expect_broken(call)


def test_speed_of_others():
    """a full pool does not slow down what does not use it"""
    with Server() as s:
        calls = hold_all(s)
        began = time.monotonic()
        for i in range(200):
            s.post("/api/v1/locks/acquire", {"key": f"k{i}", "holder": "me"}).expect(200)
        assert time.monotonic() - began < 10 * lib.SLOW
        s.post("/api/v1/toy/release").expect(200)
        for call in calls:
            call.answer().expect(200)


# ---- row locks


LABELS = '{pipeline="toy",entity="course"}'


def lock_rows(s, n, more=""):
    return s.post(f"/api/v1/toy/lock?n={n}{more}")


def report(s, *args):
    """`locks --report` of the server: its exit status and its JSON."""
    done = subprocess.run([lib.BINARY, "locks", "--report", "--json", "--server", f"http://{s.address}", *args],
                          env={"PATH": "/usr/bin:/bin", "HOME": s.folder, "INTERLOCK_API_KEY": s.key},
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout, done
    return done.returncode, json.loads(done.stdout)


def test_row_lock():
    """a row lock is in /metrics, in the log at level debug, in /admin/row-locks and in `locks --report`"""
    with Server(env={"INTERLOCK_LOG_LEVEL": "debug"}) as s:
        assert s.get("/api/v1/admin/row-locks").expect(200).json == {"items": [], "next": None}
        s.post("/api/v1/toy/rows?n=1").expect(200)
        lock_rows(s, 1, "&slow=true").expect(200)
        s.until("interlock_row_lock_hold_seconds_count" + LABELS, 1)
        s.until("interlock_row_lock_wait_seconds_count" + LABELS, 1)
        assert s.metric("interlock_row_lock_hold_seconds_sum" + LABELS) >= 0.005
        assert s.metric("interlock_row_lock_violations_total" + LABELS) == 0
        line = json.loads(s.wait_log('"row.lock_'))
        assert line["pipeline"] == "toy" and line["entity"] == "course" and line["outcome"] == "committed", line
        assert line["lock_hold_ms"] >= 5 and line["lock_wait_ms"] >= 0, line
        # one that took 2 s, on a machine that stood still, is a warning
        assert line["level"] == ("debug" if max(line["lock_hold_ms"], line["lock_wait_ms"]) < 2000 else "warn"), line
        (item,) = s.get("/api/v1/admin/row-locks").expect(200).json["items"]
        lock = item["lock"]
        assert item["seq"] == 1 and lock["event"] == "toy.lock_acquired" and lock["caller"] == "lock", item
        assert lock["table"] == "course" and lock["key"] == "default,c00000" and lock["place"].count("rows.c:") == 1, item
        s.get("/api/v1/admin/row-locks", key=s.key_for("t", "operator")).expect(403)

        status, got = report(s, "--critical", "1h")
        assert status == 0 and got["status"] == "ok" and got["locks"] == 1, (status, got)
        (group,) = got["groups"]
        assert (group["pipeline"], group["entity"], group["caller"], group["count"]) == ("toy", "course", "lock", 1), group
        status, got = report(s, "--critical", "1ms")
        assert status == 2 and got["status"] == "critical", (status, got)


def test_row_lock_violation():
    """a constraint refuses the transaction: its row lock is counted as a violation"""
    with Server() as s:
        s.post("/api/v1/toy/rows?n=1").expect(200)
        lock_rows(s, 1, "&break=true").expect(409, "TOY_REFUSED")
        s.until("interlock_row_lock_violations_total" + LABELS, 1)
        (item,) = s.get("/api/v1/admin/row-locks").expect(200).json["items"]
        assert item["lock"]["outcome"] == "violation", item
        assert "row.lock_acquired" not in s.log  # the level is info
        status, got = report(s, "--critical", "1h")
        assert status == 1 and got["groups"][0]["integrity_rollbacks"] == 1, (status, got)


def test_row_locks_kept():
    """of 5,000 row locks the newest 4,096 are kept, in pages without gaps"""
    with Server() as s:
        s.post("/api/v1/toy/rows?n=250").expect(200)
        for n in range(250, 5001, 250):
            lock_rows(s, 250).expect(200)
            s.until("interlock_row_lock_hold_seconds_count" + LABELS, n)  # so that none is dropped on its way
        assert s.metric("interlock_row_locks_dropped_total") == 0
        seen, cursor, sizes = [], "", []
        while cursor is not None:
            page = s.get("/api/v1/admin/row-locks" + (f"?cursor={cursor}" if cursor else "")).expect(200).json
            seen += page["items"]
            sizes.append(len(page["items"]))
            cursor = page["next"]
        assert sizes == [1000, 1000, 1000, 1000, 96], sizes
        assert [item["seq"] for item in seen] == list(range(5000, 5000 - 4096, -1))
        # the events of a transaction: each of its rows once
        assert {item["lock"]["key"] for item in seen[:250]} == {f"default,c{i:05}" for i in range(250)}
        page = s.get("/api/v1/admin/row-locks?limit=2&cursor=4999").expect(200).json
        assert [item["seq"] for item in page["items"]] == [4998, 4997] and page["next"] == "4997", page
        assert s.get("/api/v1/admin/row-locks?cursor=905").expect(200).json == {"items": [], "next": None}
        s.get("/api/v1/admin/row-locks?cursor=0").expect(400)
        assert report(s, "--critical", "1h")[1]["locks"] == 4096


lib.main(globals())
