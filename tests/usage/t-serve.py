"""The usage cache in servers: one build for many callers, permissions, validation, ranges, exports, rebuilds, sources."""
import contextlib
import csv
import datetime
import fcntl
import http.server
import io
import json
import os
import re
import shutil
import sqlite3
import subprocess
import tempfile
import threading

import fleet
import lib

U = "/api/v1/admin/usage"
METRICS = ("api_requests", "total_tokens", "prompt_tokens", "completion_tokens", "spend", "successful_requests", "failed_requests")
TODAY = datetime.datetime.now(datetime.timezone.utc).date()


def day(n):
    """n days ago."""
    return (TODAY - datetime.timedelta(days=n)).isoformat()


def figures(n=1, users=("ann",)):
    """A day as a source gives it."""
    one = {"api_requests": n, "spend": n / 4}
    return {"metrics": {"api_requests": n * len(users), "spend": n / 4 * len(users)}, "by_user": {u: one for u in users},
            "by_model": {"m": one}, "by_provider": {"p": one}}


class Rig(fleet.Place):
    """Servers on one store, with a source that is a command: it appends a line per fetch to a file and prints another one."""

    def __init__(self, engine, n=1, source=True, **env):
        super().__init__(engine, "usage")
        self.all, self.n = [], n
        self.args = ["--log-format", "json", *self.data_args]
        # far from UTC, and dates in another order: neither may matter
        self.env = {"INTERLOCK_USAGE_LEASE": "1s", "TMPDIR": self.folder, "TZ": "Pacific/Kiritimati", "PGTZ": "America/Los_Angeles",
                    "PGDATESTYLE": "SQL, DMY", **env}
        if source:
            script = self.path("source")
            with open(script, "w", encoding="utf-8") as file:
                file.write(f'echo "$1" >>{self.path("fetched")}\nwhile [ -e {self.path("closed")} ]; do sleep 0.02; done\n'
                           f'if [ -e {self.path("broken")} ]; then yes noise | head -n 4000 >&2; echo "it is broken" >&2; exit 3; fi\ncat {self.path("day.json")}\n')
            self.env.update(INTERLOCK_USAGE_SOURCE_TYPE="command", INTERLOCK_USAGE_SOURCE_COMMAND=f"/bin/sh {script}")
        self.put(figures())

    def path(self, name):
        return f"{self.folder}/{name}"

    def put(self, what):
        with open(self.path("day.json.new"), "w", encoding="utf-8") as file:
            json.dump(what, file)
        os.rename(self.path("day.json.new"), self.path("day.json"))

    def flag(self, name, on=True):
        if on:
            with open(self.path(name), "w", encoding="utf-8"):
                pass
        else:
            os.unlink(self.path(name))

    def fetched(self):
        if not os.path.exists(self.path("fetched")):
            return []
        with open(self.path("fetched"), encoding="utf-8") as file:
            return file.read().split()

    def add(self):
        server = lib.Server(store=self.store, args=self.args, env=self.env, key=self.all[0].key if self.all else None)
        self.all.append(server)
        return server

    @property
    def a(self):
        return self.all[0]

    def counts(self, server=None):
        return (server or self.a).get(U + "/cache/metrics").expect(200).json

    def __enter__(self):
        try:
            for _ in range(self.n):
                self.add()
        except BaseException:
            self.end()
            raise
        return self

    def end(self):
        for server in self.all:
            server.end()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __exit__(self, *failure):
        """Servers that were left running must end well."""
        try:
            for server in self.all:
                server.__exit__(*failure)
        finally:
            self.end()


# ---- one build


def crowd(engine):
    """5, 10 and 200 callers of three servers: one build each, and all get it."""
    with Rig(engine, n=3) as r:
        for i, n in enumerate((5, 10, 200)):
            r.flag("closed")
            date = day(20 + i)
            clients = [r.all[k % 3].new_client() for k in range(n)]
            done = []
            thread = threading.Thread(target=lambda c=clients, d=date: done.extend(lib.together(len(c), lambda k: c[k].get(f"{U}/days/{d}"))))
            thread.start()
            lib.eventually(lambda d=date: d in r.fetched(), what="the build")
            r.flag("closed", False)
            thread.join()
            for client in clients:
                client.close()
            assert len(done) == n and all(a.status == 200 and a.json["metrics"]["api_requests"] == 1 for a in done), done
            assert r.fetched().count(date) == 1, r.fetched()
        assert sum(r.counts(s)["cacheRebuilds"] for s in r.all) == 3


def killed(engine):
    """The server that builds is killed: another one takes over, and its callers get the day."""
    with Rig(engine, n=2) as r:
        r.flag("closed")
        threading.Thread(target=ask_quietly, args=(r.a, day(9)), daemon=True).start()
        lib.eventually(lambda: len(r.fetched()) == 1, what="the build")
        answers = []
        thread = threading.Thread(target=lambda: answers.append(r.all[1].new_client().get(f"{U}/days/{day(9)}")))
        thread.start()
        r.a.kill()
        r.flag("closed", False)
        thread.join()
        answers[0].expect(200)
        assert r.fetched().count(day(9)) == 2, r.fetched()


def ask_quietly(server, date):
    with contextlib.suppress(Exception):
        server.new_client().get(f"{U}/days/{date}")


# ---- one server


def test_stale_and_failed():
    """A source that fails: 502 without figures, the old ones marked as stale, and nothing is overwritten."""
    with Rig("sqlite", INTERLOCK_USAGE_WAIT="300ms") as r:
        r.flag("broken")
        failed = r.a.get(f"{U}/days/{day(3)}").expect(502, "USAGE_SOURCE_FAILED")
        assert "it is broken" in failed.json["error"]["message"], failed
        r.flag("broken", False)
        fresh = r.a.get(f"{U}/days/{day(0)}").expect(200).json
        assert fresh["stale"] is False and fresh["is_complete"] is False and "error" not in fresh, fresh
        with sqlite3.connect(r.path("store-usage.db"), isolation_level=None) as db:
            db.execute("UPDATE daily_usage_cache SET updated_at = updated_at - 300000")  # its five minutes are over
            r.flag("broken")
            stale = r.a.post(f"{U}/refresh-today").expect(200).json
            assert stale["stale"] is True and "it is broken" in stale["error"], stale
            r.flag("broken", False)
            # the build takes longer than the request waits
            r.flag("closed")
            slow = r.a.get(f"{U}/days/{day(2)}").expect(503, "USAGE_BUILDING")
            assert slow.headers["Retry-After"] == "1", slow.headers
            r.flag("closed", False)
            lib.eventually(lambda: r.a.get(f"{U}/days/{day(2)}?build=no").status == 200, what="the build")
            rows = db.execute("SELECT date, is_complete, raw_data FROM daily_usage_cache ORDER BY date").fetchall()
            assert [(d, c) for d, c, _ in rows] == [(day(2), 1), (day(0), 0)] and json.loads(rows[0][2]) == figures(), rows
        lib.eventually(lambda: "usage.source_failed" in r.a.log, what="the log line")


def test_cut_off():
    """A stop without time for the requests that wait: their builds end after them, and reach for none of them."""
    with Rig("memory:", INTERLOCK_SHUTDOWN="0s", MALLOC_PERTURB_="165") as r:
        r.flag("closed")
        for n in (1, 2):
            threading.Thread(target=ask_quietly, args=(r.a, day(n)), daemon=True).start()
        lib.eventually(lambda: len(r.fetched()) == 2, what="both builds")
        assert r.a.stop() == 0, r.a.log


def test_never_builds():
    """?build=no answers 404, or what is stored."""
    with Rig("memory:") as r:
        r.a.get(f"{U}/days/{day(5)}?build=no").expect(404, "USAGE_DAY_NOT_FOUND")
        assert r.fetched() == []
        r.a.get(f"{U}/days/{day(5)}").expect(200)
        assert r.a.get(f"{U}/days/{day(5)}?build=no").expect(200).json["stale"] is False
        assert r.fetched() == [day(5)]


def test_refreshes_in_the_background():
    """A day near the end of its life is refreshed once, behind the answer; ?build=no does not even do that."""
    with Rig("sqlite", n=2) as r:
        at = r.a.get(f"{U}/days/{day(0)}").expect(200).json["updated_at"]
        with sqlite3.connect(r.path("store-usage.db"), isolation_level=None) as db:
            db.execute("UPDATE daily_usage_cache SET updated_at = updated_at - 270000")
        r.flag("closed")
        for server in r.all:
            server.kill()
            server.start()  # without a copy of the day
            for _ in range(3):
                assert server.get(f"{U}/days/{day(0)}?build=no").expect(200).json["stale"] is False
        assert len(r.fetched()) == 1, r.fetched()
        for _ in range(3):
            for server in r.all:
                old = server.get(f"{U}/days/{day(0)}").expect(200).json
                assert old["stale"] is False and old["updated_at"] < at, old
        lib.eventually(lambda: len(r.fetched()) == 2, what="the refresh")
        r.flag("closed", False)
        for server in r.all:
            lib.eventually(lambda s=server: s.get(f"{U}/days/{day(0)}?build=no").expect(200).json["updated_at"] > at, what="the new figures")
        assert len(r.fetched()) == 2, r.fetched()


def test_builds_do_not_hold_up_stored_days():
    """All threads that build are busy: a stored day is answered by a server that has no copy, and a stale one as such."""
    with Rig("sqlite", n=2, INTERLOCK_USAGE_PARALLEL="1", INTERLOCK_USAGE_WAIT="300ms") as r:
        r.a.get(f"{U}/days/{day(5)}").expect(200)
        r.a.get(f"{U}/days/{day(6)}").expect(200)
        with sqlite3.connect(r.path("store-usage.db"), isolation_level=None) as db:
            db.execute("UPDATE daily_usage_cache SET is_complete = 0, updated_at = 0 WHERE date = ?", (day(6),))
        r.flag("closed")
        b = r.all[1]
        b.get(f"{U}/days/{day(4)}").expect(503, "USAGE_BUILDING")
        assert b.get(f"{U}/days/{day(5)}").expect(200).json["stale"] is False
        assert b.get(f"{U}/days/{day(6)}?build=no").expect(200).json["error"] == "the stored figures are out of date"
        assert b.get(f"{U}/days/{day(6)}").expect(200).json["stale"] is True
        r.flag("closed", False)


def test_metrics():
    """150 hits and 10 misses are a hit rate of 0.9375; exactly these fields, without asking the store."""
    with Rig("memory:") as r:
        assert r.counts() == {"cacheHits": 0, "cacheMisses": 0, "cacheRebuilds": 0, "lockAcquisitionSuccesses": 0, "lockAcquisitionFailures": 0,
                              "gracePeriodApplications": 0, "cacheHitRate": 0, "lockContentionRate": 0}
        for i in range(10):
            for _ in range(16):
                r.a.get(f"{U}/days/{day(10 + i)}").expect(200)
        assert r.counts() == {"cacheHits": 150, "cacheMisses": 10, "cacheRebuilds": 10, "lockAcquisitionSuccesses": 10, "lockAcquisitionFailures": 0,
                              "gracePeriodApplications": 0, "cacheHitRate": 0.9375, "lockContentionRate": 0}
        text = r.a.get("/metrics").body.decode()
        assert "\ninterlock_usage_cache_hits_total 150\n" in text and "\ninterlock_usage_cache_misses_total 10\n" in text


def test_metrics_without_the_store():
    """The counters are answered while the store and the tables are locked by somebody else."""
    with Rig("sqlite") as r:
        r.counts()  # the key is known
        with contextlib.ExitStack() as stack:
            lock = stack.enter_context(open(r.path("store.db-lock"), "rb"))
            fcntl.flock(lock, fcntl.LOCK_EX)
            for name in ("store.db", "store-usage.db"):
                db = stack.enter_context(contextlib.closing(sqlite3.connect(r.path(name), isolation_level=None)))
                db.execute("BEGIN EXCLUSIVE")
            with r.a.new_client(timeout=5) as client:
                assert client.get(U + "/cache/metrics").expect(200).json["cacheHits"] == 0


def test_permissions():
    """admin:usage reads, admin:usage:write writes; tenants do not meet."""
    with Rig("memory:") as r:
        span = {"startDate": day(4), "endDate": day(2)}
        reader, writer = r.a.key_for("acme", "read", permissions=["admin:usage"]), r.a.key_for("acme", "read", permissions=["admin:usage:write"])
        operator, other = r.a.key_for("acme", "operator"), r.a.key_for("acme", "read", prefix="orders:", permissions=["admin:usage"])
        reads = [("GET", f"/days/{day(3)}", None), ("POST", "/analytics", span), ("POST", "/by-user", span), ("POST", "/by-model", span),
                 ("POST", "/by-provider", span), ("GET", "/cache/metrics", None), ("GET", f"/export?format=csv&startDate={day(4)}&endDate={day(2)}", None)]
        writes = [("POST", "/refresh-today", None, 200), ("POST", "/rebuild-cache", span, 202)]
        for method, path, body in reads:
            r.a.ask(method, U + path, body, key=operator).expect(403)
            r.a.ask(method, U + path, body, key=reader).expect(200)
            r.a.ask(method, U + path, body, key=writer).expect(200)
        r.a.get(f"{U}/days/{day(3)}", key=other).expect(403)
        for method, path, body, status in writes:
            r.a.ask(method, U + path, body, key=operator).expect(403)
            r.a.ask(method, U + path, body, key=reader).expect(403)
            r.a.ask(method, U + path, body, key=writer).expect(status)
        r.a.get(f"{U}/days/{day(3)}?build=no").expect(404)  # of the tenant default
        r.a.get(f"{U}/days/{day(3)}", key=None).expect(401)


def test_reserved_keys():
    """A client cannot take what elects the builder of a day, and so hold the build up."""
    with Rig("memory:") as r:
        writer = r.a.key_for("default", "write")
        key = f"usage_day:{day(3)}"
        for name in (key, "usage_rebuild", "usage:rebuild"):  # of a day, of the limit of rebuilds, and of their run
            r.a.post("/api/v1/locks/acquire", {"key": name, "holder": "x", "ttl_ms": 60000}, key=writer).expect(403, "KEY_RESERVED")
        batch = {"ops": [{"op": "acquire", "key": key, "holder": "x", "ttl_ms": 60000}]}
        assert r.a.post("/api/v1/batch", batch, key=writer).expect(200).json["results"][0]["status"] == "KEY_RESERVED"
        r.a.post("/api/v1/cache/lookup", {"key": key, "holder": "x"}, key=writer).expect(403, "KEY_RESERVED")
        r.a.post("/api/v1/cache/drop", {"key": key}, key=writer).expect(403, "KEY_RESERVED")
        r.a.post("/api/v1/locks/acquire", {"key": "usage_daily", "holder": "x", "ttl_ms": 60000}, key=writer).expect(200)
        r.a.get(f"{U}/days/{day(3)}").expect(200)


def test_validation():
    """Every mistake has its answer."""
    with Rig("memory:") as r:
        def refused(answer):
            return answer.expect(400).json["error"]

        def exactly(answer, source, message):
            assert refused(answer) == {"code": "BAD_REQUEST", "source": source, "message": message, "details": {}}, answer
        one = {"startDate": day(1), "endDate": day(1)}
        later = (TODAY + datetime.timedelta(days=2)).isoformat()
        future = refused(r.a.get(f"{U}/days/{later}"))["message"]
        assert re.fullmatch(rf"field 'date': {later} is in the future; today is \d{{4}}-\d\d-\d\d \(UTC\)", future), future
        exactly(r.a.get(f"{U}/days/2026-02-30"), "usage", "field 'date': expected a date such as 2026-01-15")
        exactly(r.a.post(f"{U}/by-user", {**one, "endDate": later}), "usage", future.replace("'date'", "'endDate'"))
        exactly(r.a.post(f"{U}/by-user", {"startDate": day(1), "endDate": day(2)}), "usage", f"field 'startDate': {day(1)} is after endDate, {day(2)}")
        exactly(r.a.post(f"{U}/by-user", {**one, "cursor": "x"}), "usage", "field 'cursor': invalid")
        exactly(r.a.post(f"{U}/by-user", {"endDate": day(1)}), "request", "field 'startDate' is missing")
        exactly(r.a.post(f"{U}/by-user", {**one, "limit": 0}), "request", "field 'limit': must be at least 1, not 0")
        exactly(r.a.get(f"{U}/days/{day(1)}?build=maybe"), "request", "field 'build': 'maybe' is not one of yes, no")
        exactly(r.a.get(f"{U}/export?startDate={day(1)}&endDate={day(1)}&format=xml"), "request", "field 'format': 'xml' is not one of json, csv")
        for path in ("analytics", "by-model", "rebuild-cache"):
            assert refused(r.a.post(f"{U}/{path}", {"startDate": "2025-01-01", "endDate": "2025-04-01"})) == {
                "code": "USAGE_RANGE_TOO_LARGE", "source": "usage", "message": "the range has 91 days, more than the maximum of 90",
                "details": {"requestedDays": 91, "maxAllowedDays": 90,
                            "suggestedRanges": [{"startDate": "2025-01-01", "endDate": "2025-03-31"},
                                                {"startDate": "2025-04-01", "endDate": "2025-04-01"}]}}
        assert r.fetched() == []
        r.a.post(f"{U}/by-model", {"startDate": "2025-01-01", "endDate": "2025-01-02"}).expect(200)


def test_ranges():
    """Sums, the period before, and days that are stale, missing or pending."""
    with Rig("sqlite", INTERLOCK_USAGE_WAIT="400ms") as r:
        span = {"startDate": day(5), "endDate": day(3)}
        found = r.a.post(f"{U}/analytics", span).expect(200).json
        assert found["metrics"]["api_requests"] == 3 and found["metrics"]["spend"] == 0.75 and found["metrics"]["spend_micros"] == 750000, found
        assert [d["date"] for d in found["days"]] == [day(5), day(4), day(3)] and {d["state"] for d in found["days"]} == {"fresh"}
        assert found["stale"] == found["missing"] == found["pending"] == [] and set(METRICS) < set(found["metrics"]), found
        before = found["comparison"]
        assert (before["startDate"], before["endDate"], before["missing"]) == (day(8), day(6), [day(8), day(7), day(6)]), before
        assert before["metrics"]["spend"] == 0 and before["change_percent"]["spend"] is None and sorted(set(r.fetched())) == [day(5), day(4), day(3)]
        r.put(figures(2))
        r.a.post(f"{U}/by-user", {"startDate": day(8), "endDate": day(7)}).expect(200)
        before = r.a.post(f"{U}/analytics", span).expect(200).json["comparison"]
        assert before["metrics"]["api_requests"] == 4 and before["missing"] == [day(6)] and before["change_percent"]["api_requests"] == -25, before

        r.flag("broken")
        with sqlite3.connect(r.path("store-usage.db"), isolation_level=None) as db:
            db.execute("UPDATE daily_usage_cache SET is_complete = 0, updated_at = 0 WHERE date = ?", (day(8),))
        gaps = r.a.post(f"{U}/analytics", {"startDate": day(9), "endDate": day(7)}).expect(200).json
        assert (gaps["stale"], gaps["missing"], gaps["pending"]) == ([day(8)], [day(9)], []) and "it is broken" in gaps["error"], gaps
        assert gaps["metrics"]["api_requests"] == 4, gaps
        assert [d["metrics"] and d["metrics"]["api_requests"] for d in gaps["days"]] == [None, 2, 2], gaps  # unknown, not 0
        r.flag("broken", False)
        r.flag("closed")
        late = r.a.post(f"{U}/analytics", {"startDate": day(12), "endDate": day(7)}).expect(200).json
        assert (late["stale"], late["missing"], late["pending"]) == ([day(8)], [], [day(12), day(11), day(10), day(9)]), late
        r.flag("closed", False)
        whole = lib.eventually(lambda: (lambda f: f if not f["pending"] and not f["stale"] else None)(
            r.a.post(f"{U}/by-provider", {"startDate": day(12), "endDate": day(7)}).json), what="the rest")
        assert whole["items"][0]["api_requests"] == 12, whole


def test_sums_that_do_not_fit():
    """The largest amounts: a day has one, a range of two has no sum."""
    with Rig("memory:") as r:
        most = (1 << 63) - 1
        r.put({"metrics": {"spend_micros": most}, "by_user": {"ann": {"spend_micros": most}}})
        assert r.a.get(f"{U}/days/{day(3)}").expect(200).json["metrics"]["spend_micros"] == most
        for path in ("analytics", "by-user"):
            refused = r.a.post(f"{U}/{path}", {"startDate": day(4), "endDate": day(3)}).expect(422)
            assert refused.json["error"] == {"code": "USAGE_ANSWER_TOO_LARGE", "source": "usage", "details": {},
                                             "message": "the range, or one of its sums, is too large"}, refused
            one = r.a.post(f"{U}/{path}", {"startDate": day(3), "endDate": day(3)}).expect(200).json
            assert (one["metrics"] if path == "analytics" else one["items"][0])["spend_micros"] == most, one


def test_old_days_are_deleted():
    """Days beyond usage.keep_days are deleted, with their markers, so that no server answers with its copy."""
    with Rig("sqlite") as r:
        for n in (29, 30, 31):
            r.a.get(f"{U}/days/{day(n)}").expect(200)
        r.env["INTERLOCK_USAGE_KEEP_DAYS"] = "30"
        r.add()
        lib.eventually(lambda: r.a.get(f"{U}/days/{day(31)}?build=no").status == 404, what="the purge")
        for n in (29, 30):
            r.a.get(f"{U}/days/{day(n)}?build=no").expect(200)


def test_pages():
    """Users of a range, page by page; largest spend first."""
    with Rig("memory:") as r:
        many = figures(1, [f"u{i:02}" for i in range(25)])
        many["by_user"]["rich"] = {"spend": 99.5}
        r.put(many)
        for path, names in (("by-user", ["rich"] + [f"u{i:02}" for i in range(25)]), ("by-model", ["m"]), ("by-provider", ["p"])):
            got, cursor = [], None
            while True:
                body = {"startDate": day(3), "endDate": day(2), "limit": 7, **({"cursor": cursor} if cursor else {})}
                page = r.a.post(f"{U}/{path}", body).expect(200).json
                got += page["items"]
                cursor = page["next"]
                assert len(page["items"]) == 7 or cursor is None
                if cursor is None:
                    break
            assert [i["name"] for i in got] == names and got[-1]["api_requests"] == 2, got
        assert len(r.fetched()) == 2


def test_export():
    """CSV that a spreadsheet opens, and JSON."""
    with Rig("memory:") as r:
        evil = '=HYPERLINK("http://x","y")'
        r.put(figures(1, ["ann", evil, "a,b", "c;d", " =1+1", "\uff1d1+1", "e\tf"]))
        answer = r.a.get(f"{U}/export?format=csv&startDate={day(3)}&endDate={day(2)}").expect(200)
        assert answer.headers["Content-Type"] == "text/csv; charset=utf-8" and "attachment" in answer.headers["Content-Disposition"]
        rows = list(csv.DictReader(io.StringIO(answer.body.decode(), newline="")))
        assert [row["date"] for row in rows] == [day(3), day(2)] and rows[0]["spend"] == "1.750000" and rows[0]["state"] == "fresh", rows
        assert answer.body.count(b"\r\n") == 3 and answer.headers["X-Usage-Missing-Days"] == "0"
        text = r.a.get(f"{U}/export?format=csv&startDate={day(3)}&endDate={day(2)}&by=user").body.decode()
        assert csv.Sniffer().sniff(text, delimiters=",;\t").delimiter == ","
        assert all(len(row) == 1 for row in csv.reader(io.StringIO(text, newline=""), delimiter=";")), text  # a reader that splits at ;
        rows = list(csv.DictReader(io.StringIO(text, newline="")))
        assert sorted(row["user"] for row in rows) == sorted(["'" + evil, "a,b", "ann", "c;d", "' =1+1", "'\uff1d1+1", "e\tf"]) and rows[0]["api_requests"] == "2", rows
        whole = r.a.get(f"{U}/export?startDate={day(3)}&endDate={day(2)}&format=json&by=user").expect(200).json
        assert {i["name"] for i in whole["items"]} == {"ann", evil, "a,b", "c;d", " =1+1", "\uff1d1+1", "e\tf"} and whole["days"] == [], whole
        paths = r.a.get("/openapi.json").expect(200).json["paths"]
        described = next(v for k, v in paths.items() if k.endswith("/admin/usage/export"))["get"]["responses"]["200"]["content"]
        assert set(described) == {"application/json", "text/csv"}, described
        r.flag("broken")
        answer = r.a.get(f"{U}/export?format=csv&startDate={day(4)}&endDate={day(2)}").expect(200)
        gaps = r.a.get(f"{U}/export?format=json&startDate={day(4)}&endDate={day(2)}&by=user").expect(200).json
        assert "it is broken" in gaps["error"] and gaps["metrics"]["api_requests"] == 14 and gaps["missing"] == [day(4)], gaps
        assert answer.body.decode().split("\r\n")[1] == f"{day(4)},missing,false,,,,,,,," and answer.headers["X-Usage-Missing-Days"] == "1"


def test_limits():
    """10 analytics and 5 exports a minute."""
    with Rig("memory:") as r:
        span = {"startDate": day(3), "endDate": day(3)}
        for _ in range(10):
            r.a.post(f"{U}/analytics", {"startDate": "x"}).expect(400)  # does not count
            r.a.post(f"{U}/analytics", span).expect(200)
        limited = r.a.post(f"{U}/analytics", span).expect(429, "RATE_LIMITED")
        assert limited.json["error"]["details"]["quota"] == "usage analytics" and int(limited.headers["Retry-After"]) <= 6
        for _ in range(5):
            r.a.get(f"{U}/export?format=csv&startDate={day(3)}&endDate={day(3)}").expect(200)
        r.a.get(f"{U}/export?format=csv&startDate={day(3)}&endDate={day(3)}").expect(429, "RATE_LIMITED")
        r.a.get(f"{U}/days/{day(3)}").expect(200)


def test_rebuild_asked_again():
    """A request that is repeated with its Idempotency-Key, at another server, is no second one: the same run, not 429."""
    with Rig("sqlite", n=2) as r:
        span, once = {"startDate": day(3), "endDate": day(2)}, {"Idempotency-Key": "nightly"}
        first = r.a.post(f"{U}/rebuild-cache", span, headers=once).expect(202)
        again = r.all[1].post(f"{U}/rebuild-cache", span, headers=once).expect(202)
        assert again.json == first.json and again.headers["Idempotent-Replayed"] == "true", again
        r.a.post(f"{U}/rebuild-cache", {**span, "force": True}, headers=once).expect(422, "IDEMPOTENCY_MISMATCH")
        for _ in range(2):  # a refusal is not kept
            limited = r.a.post(f"{U}/rebuild-cache", span, headers={"Idempotency-Key": "weekly"}).expect(429)
            assert "Idempotent-Replayed" not in limited.headers, limited.headers


def test_rebuild_key_held():
    """A lease that somebody holds on the store itself is no rebuild: the answer says who holds it."""
    with Rig("sqlite") as r:
        env = {k: v for k, v in os.environ.items() if not k.startswith("INTERLOCK_")} | {"INTERLOCK_STORE": r.store, "HOME": r.folder}
        with subprocess.Popen([lib.BINARY, "run", "usage:rebuild", "--holder", "me", "--", "sh", "-c", "echo held; cat"], env=env,
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
            try:
                assert holder.stdout.readline() == "held\n"
                span = {"startDate": day(3), "endDate": day(2)}
                held = r.a.post(f"{U}/rebuild-cache", span).expect(409, "LOCK_HELD")
                assert held.json["error"]["details"]["holder"] == "me", held
            finally:
                holder.stdin.close()
            assert holder.wait(timeout=20 * lib.SLOW) == 0
        r.a.post(f"{U}/rebuild-cache", span).expect(202)  # the refused one did not count


def rebuild(engine):
    """A rebuild is a run, one in five minutes over all servers; complete days only with force."""
    with Rig(engine, n=2) as r:
        def ended(run, **args):
            return lib.eventually(lambda: (lambda s: s if s["state"] not in ("PENDING", "RUNNING") else None)(r.a.get(f"/api/v1/runs/{run}", **args).json), what="the end")
        span = {"startDate": day(6), "endDate": day(2)}
        r.a.get(f"{U}/days/{day(4)}").expect(200)
        r.flag("closed")
        clients = [server.new_client() for server in r.all for _ in range(3)]
        race = lib.together(len(clients), lambda i: clients[i].post(f"{U}/rebuild-cache", span))
        assert sorted(a.status for a in race) == [202] + [429] * 5, race  # at the same time, over both servers
        started = next(a.json for a in race if a.status == 202)
        for client in clients:
            client.close()
        limited = r.all[1].post(f"{U}/rebuild-cache", span).expect(429, "RATE_LIMITED")
        assert 0 < limited.json["error"]["details"]["retry_after_ms"] <= 300000 and int(limited.headers["Retry-After"]) > 200, limited
        # five minutes later, while it still runs: refused, and that does not count
        env = {"INTERLOCK_STORE": r.store, "HOME": r.folder}
        assert lib.run("cache", "drop", "usage_rebuild", env=env).returncode == 0
        for _ in range(2):
            running = r.all[1].post(f"{U}/rebuild-cache", span).expect(409)
            assert running.json["error"] == {"code": "USAGE_REBUILD_RUNNING", "source": "usage", "message": "a rebuild of this tenant is running",
                                             "details": {"run_id": started["run_id"]}}, running
        r.flag("closed", False)
        done = ended(started["run_id"])
        assert done["state"] == "COMPLETED" and done["progress"] == 100 and done["key"] == "usage:rebuild", done
        assert sorted(r.fetched()) == sorted([day(4), day(6), day(5), day(3), day(2)]), r.fetched()
        # no key can end the five minutes early
        for key in (r.a.key, r.a.key_for("default", "write")):
            r.a.post("/api/v1/cache/drop", {"key": "usage_rebuild"}, key=key).expect(403, "KEY_RESERVED")
        again = r.a.post(f"{U}/rebuild-cache", span).expect(202).json  # the refused ones did not count
        assert ended(again["run_id"])["state"] == "COMPLETED" and len(r.fetched()) == 5
        r.a.post(f"{U}/rebuild-cache", span).expect(429, "RATE_LIMITED")
        acme, beta, gamma = (r.a.key_for(t, "read", permissions=["admin:usage:write"]) for t in ("acme", "beta", "gamma"))
        r.all[1].post(f"{U}/rebuild-cache", span, key=acme).expect(202)  # another tenant has its own
        lib.eventually(lambda: len(r.fetched()) == 10, what="the other tenant's days")
        for server in r.all:  # both have copies of the day before it is redone
            assert server.get(f"{U}/days/{day(4)}", key=beta).expect(200).json["metrics"]["api_requests"] == 1
        r.put(figures(3))
        forced = r.all[1].post(f"{U}/rebuild-cache", {**span, "force": True}, key=beta).expect(202).json
        assert ended(forced["run_id"], key=beta)["state"] == "COMPLETED"
        assert len(r.fetched()) == 16
        for server in r.all:
            assert server.get(f"{U}/days/{day(4)}", key=beta).expect(200).json["metrics"]["api_requests"] == 3
        r.a.get(f"{U}/days/{day(4)}", key=gamma).expect(200)
        r.flag("broken")
        failed = ended(r.a.post(f"{U}/rebuild-cache", {**span, "force": True}, key=gamma).expect(202).json["run_id"], key=gamma)
        assert failed["state"] == "FAILED" and "it is broken" in failed["error"], failed
        assert r.a.get(f"{U}/days/{day(4)}", key=gamma).expect(200).json["metrics"]["api_requests"] == 3


# ---- sources and settings


def test_source_http():
    """A source that is an HTTP endpoint: the URL, a header, a failure."""
    seen = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            seen.append((self.path, self.headers["Authorization"]))
            body = json.dumps(figures(4)).encode()
            self.send_response(500 if day(4) in self.path else 200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass
    site = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=site.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{site.server_address[1]}/usage/{{tenant}}?day={{date}}"
    try:
        with Rig("memory:", source=False, INTERLOCK_USAGE_SOURCE_TYPE="http", INTERLOCK_USAGE_SOURCE_URL=url,
                 INTERLOCK_USAGE_SOURCE_HEADER_VARIABLE="SOURCE_KEY", SOURCE_KEY="Authorization: Bearer abc") as r:
            assert r.a.get(f"{U}/days/{day(3)}").expect(200).json["metrics"]["api_requests"] == 4
            failed = r.a.get(f"{U}/days/{day(4)}").expect(502)
            assert "HTTP status 500" in failed.json["error"]["message"] and "day=" not in failed.json["error"]["message"], failed
            assert seen[0] == (f"/usage/default?day={day(3)}", "Bearer abc"), seen
            assert "Bearer" not in r.a.log
    finally:
        site.shutdown()
        site.server_close()


def test_source_sql():
    """A source that is a query: a row per user, model and provider, added up here."""
    folder = tempfile.mkdtemp(prefix="interlock-usage-sql-")
    try:
        with sqlite3.connect(folder + "/app.db") as db:
            db.execute("CREATE TABLE call (day TEXT, tenant TEXT, user TEXT, model TEXT, provider TEXT, tokens INTEGER, spend REAL)")
            db.executemany("INSERT INTO call VALUES (?, 'default', ?, ?, 'p', ?, ?)",
                           [(day(3), "ann", "m", 10, 0.1), (day(3), "ann", "n", 20, 0.2), (day(3), "bob", "m", 5, 0.0000004)])
        query = ("SELECT user, model, provider, count(*) AS api_requests, sum(tokens) AS total_tokens, sum(spend) AS spend "
                 "FROM call WHERE day = $1 AND tenant = $2 GROUP BY user, model, provider")
        with Rig("memory:", source=False, INTERLOCK_USAGE_SOURCE_TYPE="sql", INTERLOCK_USAGE_SOURCE_CONNECTION="app",
                 INTERLOCK_USAGE_SOURCE_QUERY=query, INTERLOCK_CONNECTION_APP=f"sqlite:{folder}/app.db") as r:
            found = r.a.get(f"{U}/days/{day(3)}").expect(200).json
            assert found["metrics"]["total_tokens"] == 35 and found["metrics"]["spend_micros"] == 300000, found
            assert [(u["name"], u["total_tokens"]) for u in found["by_user"]] == [("ann", 30), ("bob", 5)], found
            assert [(u["name"], u["api_requests"]) for u in found["by_model"]] == [("m", 2), ("n", 1)], found
            empty = r.a.get(f"{U}/days/{day(2)}").expect(502, "USAGE_SOURCE_FAILED")  # perhaps not loaded yet: not kept
            assert "no document and no rows" in empty.json["error"]["message"], empty
            r.a.get(f"{U}/days/{day(2)}?build=no").expect(404)

        def ask(query):
            with Rig("memory:", source=False, INTERLOCK_USAGE_SOURCE_TYPE="sql", INTERLOCK_USAGE_SOURCE_CONNECTION="app",
                     INTERLOCK_USAGE_SOURCE_QUERY=f"SELECT {query} FROM call WHERE day = $1", INTERLOCK_CONNECTION_APP=f"sqlite:{folder}/app.db") as r:
                answer = r.a.get(f"{U}/days/{day(3)}")
                return answer.json["metrics"] if answer.status == 200 else answer.expect(502).json["error"]["message"]
        assert ask("user, 7 AS spend, 9007199254740993 AS spend_micros")["spend_micros"] == 3 * 9007199254740993  # which wins, to the digit
        assert ask("user, NULL AS spend_micros, 0.5 AS spend")["spend_micros"] == 1500000
        assert "column spend_micros: expected a whole number of at least 0, not '1.5'" in ask("user, 1.5 AS spend_micros")
        assert "column spend_micros: expected a whole number of at least 0, not '-1'" in ask("user, -1 AS spend_micros")
        assert "column total_tokens: expected a whole number of at least 0, not 'x'" in ask("user, 'x' AS total_tokens")
        assert "no column is named after a metric" in ask("user, tokens AS Tokens")  # not a day without usage
    finally:
        shutil.rmtree(folder)


def refuses_to_start(text, **env):
    done = lib.run("serve", "--allow-root", "--store", "memory:", "--listen", "127.0.0.1:0", env=env)
    assert done.returncode == 64 and text in done.stderr and "S3CRET" not in done.stderr, done


def test_settings():
    """A bad value stops the start with a clear text; without a source nothing is served."""
    for name, values in (("ADMIN_ANALYTICS_CACHE_CURRENT_DAY_TTL_MINUTES", ("0", "61", "5m", "-1")),
                         ("ADMIN_ANALYTICS_CACHE_GRACE_PERIOD_MINUTES", ("0", "61")),
                         ("ADMIN_ANALYTICS_CACHE_HISTORICAL_TTL_DAYS", ("x", "-1", "3651")),
                         ("INTERLOCK_USAGE_SOURCE_TYPE", ("ftp",))):
        for value in values:
            refuses_to_start(f"${name}: '{value}' is not ", **{name: value})
    refuses_to_start("usage.source.command is not set", INTERLOCK_USAGE_SOURCE_TYPE="command")
    site = {"INTERLOCK_USAGE_SOURCE_TYPE": "http", "INTERLOCK_USAGE_SOURCE_URL": "http://localhost/{date}"}
    refuses_to_start("usage.source.url must contain {date}", **{**site, "INTERLOCK_USAGE_SOURCE_URL": "http://localhost/"})
    refuses_to_start("usage.source.url: must begin with http:// or https://", **{**site, "INTERLOCK_USAGE_SOURCE_URL": "ftp://localhost/{date}"})
    refuses_to_start("usage.source.header_variable: $KEY is not set", INTERLOCK_USAGE_SOURCE_HEADER_VARIABLE="KEY", **site)
    for header in ("S3CRET", "S3CRET one: two", ": S3CRET", "A: S3CRET\nB: c"):
        refuses_to_start("usage.source.header_variable must contain one line, 'Name: value'",
                         INTERLOCK_USAGE_SOURCE_HEADER_VARIABLE="KEY", KEY=header, **site)
    query = {"INTERLOCK_USAGE_SOURCE_TYPE": "sql", "INTERLOCK_CONNECTION_APP": "sqlite:/nowhere/app.db"}
    refuses_to_start("usage.source.connection must be a name in `connections`", **query)
    refuses_to_start("usage.source.connection: connection 'nil' is not configured", INTERLOCK_USAGE_SOURCE_CONNECTION="nil", **query)
    query["INTERLOCK_USAGE_SOURCE_CONNECTION"] = "app"
    refuses_to_start("usage.source.query is not set", **query)
    refuses_to_start("usage.source.query must use $1", INTERLOCK_USAGE_SOURCE_QUERY="SELECT '$1', $10 -- $1", **query)
    with Rig("memory:", source=False) as r:
        r.a.get(f"{U}/days/{day(1)}").expect(503, "USAGE_NOT_SERVED")
        assert r.counts()["cacheHits"] == 0


def test_stop():
    """SIGTERM in the middle of a build: those who wait are answered, and the server ends."""
    with Rig("sqlite") as r:
        r.flag("closed")
        answers = []
        thread = threading.Thread(target=lambda: answers.append(r.a.new_client().get(f"{U}/days/{day(3)}")))
        thread.start()
        lib.eventually(lambda: r.fetched() == [day(3)], what="the build")
        assert r.a.stop() == 0
        thread.join()
        answers[0].expect(503, "USAGE_BUILDING")


for ENGINE in ("sqlite", "postgres", "redis"):
    for FUNCTION in (crowd, killed, rebuild):
        def TEST(engine=ENGINE, function=FUNCTION):
            function(engine)
        TEST.__doc__ = f"{FUNCTION.__doc__} On {ENGINE}."
        globals()[f"test_{FUNCTION.__name__}_{ENGINE}"] = TEST

lib.main(globals())
