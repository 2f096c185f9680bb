"""Invariants in the server: schedules, history, routes, metrics, reload. On SQLite and PostgreSQL."""
import contextlib
import json
import os
import re
import shutil
import signal
import sqlite3
import tempfile

import fleet
import lib

NEVER = "0 0 1 1 *"
EVERY_MINUTE = "* * * * *"
HANGS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n WHERE i < 0"


class Rig(fleet.Place):
    """Servers on one store with a folder of invariants and a SQLite database that they look at."""

    def __init__(self, engine, n=1):
        super().__init__(engine, "checks")
        self.dir = self.folder + "/checks"
        os.makedirs(self.dir + "/default")
        self.db = sqlite3.connect(self.folder + "/app.db", isolation_level=None)
        self.db.execute("CREATE TABLE account (id INTEGER PRIMARY KEY, balance INTEGER)")
        self.engine, self.all, self.n = engine, [], n

    def put(self, *items, tenant="default"):
        with open(f"{self.dir}/{tenant}/a.yml", "w", encoding="utf-8") as file:
            json.dump(list(items), file)

    def start(self):
        for _ in range(self.n):
            self.all.append(lib.Server(store=self.store, args=["--checks", self.dir, "--log-format", "json"],
                                       env={"INTERLOCK_CONNECTION_APP": f"sqlite:{self.folder}/app.db", "TMPDIR": self.folder},
                                       key=self.all[0].key if self.all else None))
        return self

    @property
    def a(self):
        return self.all[0]

    def run(self, *names):
        """Check them now: results by name."""
        begun = self.a.post("/api/v1/checks/run", {"names": names} if names else {}).expect(202).json["items"]
        return {one["name"]: self.wait(one["run_id"]) for one in begun if one["run_id"]}

    def wait(self, run):
        def ended():
            shown = self.a.get(f"/api/v1/checks/results/{run}?wait=5s").expect(200).json
            return shown if shown["outcome"] != "not_run" else None
        return lib.eventually(ended, seconds=60, what="the result")

    def results(self, **query):
        text = "&".join(f"{k}={v}" for k, v in query.items())
        return self.a.get("/api/v1/checks/results?" + text).expect(200).json

    def metric(self, name, server=None):
        for line in (server or self.a).get("/metrics").body.decode().splitlines():
            if line.startswith(name + " "):
                return float(line.split()[-1])
        raise AssertionError(f"no metric {name}")

    def end(self):
        for server in self.all:
            server.end()
        self.db.close()
        shutil.rmtree(self.folder, ignore_errors=True)


@contextlib.contextmanager
def rig(engine, *items, n=1):
    r = Rig(engine, n)
    try:
        r.put(*items)
        yield r.start()
    finally:
        r.end()


def negative(**more):
    return {"name": "negative", "connection": "app", "description": "Below zero",
            "sql": "SELECT id, balance FROM account WHERE balance < 0 ORDER BY id", "schedule": NEVER, **more}


def pages(r, key):
    """The names of all results, in pages of one; none of them is empty."""
    names, cursor = [], ""
    while cursor is not None:
        page = r.a.get("/api/v1/checks/results?limit=1" + (f"&cursor={cursor}" if cursor else ""), key=key).expect(200).json
        assert len(page["items"]) == 1, page
        names.append(page["items"][0]["name"])
        cursor = page["next"]
    return names


def broken_then_fixed(engine):
    with rig(engine, negative(), {**negative(), "name": "soft", "severity": "warning"}) as r:
        assert r.run("negative")["negative"]["outcome"] == "passed"
        assert r.metric('interlock_check_passed_total{severity="error"}') == 1
        r.db.execute("INSERT INTO account VALUES (1, -5)")
        with r.a.held_run("nightly") as active:
            found = r.run()
        assert {n: f["outcome"] for n, f in found.items()} == {"negative": "broken", "soft": "broken"}, found
        one = found["negative"]
        assert one["new"] == 1 and one["offenders"] == [{"key": "1", "text": "balance=-5"}], one
        assert one["runs"] == [active["id"]], (one, active)
        lib.eventually(lambda: r.metric('interlock_checks_broken{severity="error"}') == 1, what="the gauge")
        assert r.metric('interlock_checks_broken{severity="warning"}') == 1
        line = json.loads(r.a.wait_log(r'"check.broken".*"negative"'))
        assert line["level"].lower() == "error" and line["tenant_id"] == "default", line
        assert json.loads(r.a.wait_log(r'"check.broken".*"soft"'))["level"].lower().startswith("warn")

        # routes
        shown = r.a.get("/api/v1/checks").expect(200).json["items"]
        assert [(i["name"], i["last"]["outcome"]) for i in shown] == [("negative", "broken"), ("soft", "broken")], shown
        page = r.a.get("/api/v1/checks?limit=1").expect(200).json
        assert [i["name"] for i in page["items"]] == ["negative"] and page["next"] == "negative", page
        assert [i["name"] for i in r.a.get("/api/v1/checks?limit=1&cursor=negative").json["items"]] == ["soft"]
        full = r.a.get("/api/v1/checks/negative").expect(200).json
        assert [i["outcome"] for i in full["results"]] == ["broken", "passed"] and full["schedule"] == NEVER, full
        first = r.results(limit=2)
        rest = r.results(limit=2, cursor=first["next"])
        assert len(first["items"]) == 2 and [i["outcome"] for i in rest["items"]] == ["passed"] and rest["next"] is None
        assert [i["name"] for i in r.results(name="soft")["items"]] == ["soft"]
        failed = lambda query: {i["name"]: i["failed"] for i in reversed(r.results(**query)["items"])}  # noqa: E731
        assert failed({}) == {"negative": True, "soft": False} and failed({"strict": "true"}) == {"negative": True, "soft": True}
        for query, wanted in (("", False), ("?strict=true", True)):
            assert r.a.get(f"/api/v1/checks/results/{found['soft']['id']}{query}").json["failed"] is wanted
        r.a.get("/api/v1/checks/results?cursor=x").expect(400)
        r.a.get("/api/v1/checks/nothing").expect(404, "CHECK_NOT_FOUND")
        r.a.get("/api/v1/checks/results/nothing").expect(404, "CHECK_RESULT_NOT_FOUND")
        r.a.post("/api/v1/checks/run", {"names": ["negative", "nothing"]}).expect(404, "CHECK_NOT_FOUND")
        for names in (7, "negative", ["negative", 7], ["x"] * 4097):
            r.a.post("/api/v1/checks/run", {"names": names}).expect(400)
        reader = r.a.key_for("default", "read")
        r.a.get("/api/v1/checks", key=reader).expect(200)
        r.a.post("/api/v1/checks/run", {}, key=reader).expect(403)
        limited = r.a.key_for("default", "read", prefix="orders:")
        r.a.get(f"/api/v1/checks/results/{one['id']}", key=limited).expect(404, "CHECK_RESULT_NOT_FOUND")
        r.a.get("/api/v1/checks/negative", key=limited).expect(404, "CHECK_NOT_FOUND")
        assert r.a.get("/api/v1/checks", key=limited).json["items"] == []
        assert r.a.get("/api/v1/checks/results", key=limited).json == {"items": [], "next": None}
        names = [i["name"] for i in r.results()["items"]]
        assert len(set(names)) == 2, names
        for prefix, seen in (("check:so", "soft"), ("check:negative", "negative"), ("check:", ""), ("che", "")):
            assert pages(r, r.a.key_for("default", "read", prefix=prefix)) == [n for n in names if n.startswith(seen)], prefix
        other = r.a.key_for("globex", "operator")
        assert r.a.get("/api/v1/checks", key=other).json["items"] == []
        assert r.a.get("/api/v1/checks/results", key=other).json["items"] == []
        r.a.get("/api/v1/checks/negative", key=other).expect(404)
        r.a.get(f"/api/v1/checks/results/{one['id']}", key=other).expect(404)

        r.db.execute("DELETE FROM account")
        assert r.run("negative")["negative"]["outcome"] == "passed"
        r.a.wait_log(r'"check.fixed".*"negative"')
        lib.eventually(lambda: r.metric('interlock_checks_broken{severity="error"}') == 0, what="the gauge")


def hanging(engine):
    with rig(engine, negative(), {"name": "hangs", "connection": "app", "timeout": "2s", "schedule": NEVER, "sql": HANGS},
             {"name": "forever", "connection": "app", "timeout": "1h", "schedule": NEVER, "sql": HANGS},
             {**negative(severity="warning"), "name": "soft", "connection": "unknown"}) as r:
        begun = {i["name"]: i["run_id"] for i in r.a.post("/api/v1/checks/run", {}).expect(202).json["items"]}
        again = {i["name"]: i["run_id"] for i in r.a.post("/api/v1/checks/run", {"names": ["forever"]}).expect(202).json["items"]}
        assert again["forever"] == begun["forever"], (begun, again)
        assert r.wait(begun["negative"])["outcome"] == "passed"
        late = r.wait(begun["hangs"])
        assert late["outcome"] == "error" and late["error"] == "timed out after 2s", late
        lib.eventually(lambda: r.metric('interlock_check_errors_total{severity="error"}') == 1, what="the counter")
        assert json.loads(r.a.wait_log(r'"check.error".*"hangs"'))["level"].lower() == "error"
        assert r.run("soft")["soft"]["outcome"] == "error"
        assert json.loads(r.a.wait_log(r'"check.error".*"soft"'))["level"].lower().startswith("warn")
        lib.eventually(lambda: r.a.get(f"/api/v1/runs/{begun['forever']}").json["state"] == "RUNNING", what="the run")
        assert r.a.get(f"/api/v1/checks/results/{begun['forever']}").json["outcome"] == "not_run"
        assert r.a.stop() == 0  # interrupts it


def reload(engine):
    with rig(engine, negative()) as r:
        r.put(negative(), {"name": "bad", "connection": "app", "sql": "DELETE FROM account"})
        r.a.send(signal.SIGHUP)
        r.a.wait_log(r'"checks.refused".*must be a query')
        shown = {i["name"]: i for i in lib.eventually(lambda: (lambda i: i if len(i) == 2 else None)(r.a.get("/api/v1/checks").json["items"]), what="the reload")}
        bad = next(i for n, i in shown.items() if n != "negative")
        assert "must be a query" in bad["error"] and shown["negative"]["error"] is None, shown
        assert r.metric("interlock_checks_invalid") == 1
        begun = r.a.post("/api/v1/checks/run", {}).expect(202).json["items"]
        assert [(i["run_id"] is None, i["error"] is None) for i in begun if i["name"] == bad["name"]] == [(True, False)], begun


def check(r, *args, key=None):
    """`interlock check --server`."""
    return lib.run("check", "--server", f"http://{r.a.address}", *args, env={"INTERLOCK_API_KEY": key or r.a.key})


def timeless(text):
    """An output without times, and without the order in which invariants were found."""
    if text.startswith("{"):
        items = json.loads(text)["items"]
        return sorted(sorted((k, str(v)) for k, v in i.items() if k not in ("started_at", "duration_ms", "next_at")) for i in items)
    text = re.sub(r'time="[^"]*"|\b[0-9.]+m?s\b', "", text)
    return sorted(re.sub(" +", " ", line) for line in text.splitlines())


def command(engine):
    """`interlock check --server` shows what the same invariants show without a server"""
    with rig(engine, negative(), {**negative(severity="warning"), "name": "soft"},
             {**negative(baseline=["1", "9"]), "name": "known"},
             {"name": "away", "connection": "unknown", "sql": "SELECT 1", "schedule": "0 3 * * *"},
             {"name": "bad", "connection": "app", "sql": "DELETE FROM account"}) as r:
        xml = r.folder + "/x.xml"
        here = {"INTERLOCK_STORE": "memory:", "INTERLOCK_CONNECTION_APP": f"sqlite:{r.folder}/app.db"}

        def same(status, *args, junit=("--junit", xml)):
            shown = []
            for run in (check, lambda _, *a: lib.run("check", "--checks", r.dir, *a, env=here)):
                done = run(r, *args, *junit)
                assert done.returncode == status, done
                shown.append([timeless(done.stdout), timeless(open(xml, encoding="utf-8").read()) if junit else None])
            assert shown[0] == shown[1], shown

        same(69)
        same(0, "negative", "soft", "known")
        r.db.executemany("INSERT INTO account VALUES (?, -5)", [(i,) for i in (1, 2, *range(10, 40))])
        same(1)
        same(1, "--json")
        same(0, "soft")
        same(1, "soft", "--strict")
        same(69, "away", "bad", "--json")
        same(1, "negative", "away", "-q")
        same(0, "--list", junit=())
        same(0, "--list", "--json", junit=())
        assert len(r.results(name="soft", limit=100)["items"]) == 6  # the server has kept its own

        def refused(text, *args, key=None):
            done = check(r, *args, key=key)
            assert done.returncode != 0 and done.stdout == "" and text in done.stderr, done
        refused("no invariant 'sofd' (did you mean 'soft'?)", "sofd")
        refused("--checks and --server cannot be combined", "--checks", r.dir)
        refused("the server has no invariants for this tenant", key=r.a.key_for("globex", "operator"))
        refused("permission", key=r.a.key_for("default", "read"))


def hooks(engine):
    with tempfile.TemporaryDirectory(prefix="interlock-hooks-") as told:
        def note(event):
            return ["sh", "-c", 'cat >"$1.new" && env >>"$1.env" && mv "$1.new" "$1"', "sh", f"{told}/{event}"]

        def facts(event):
            lib.eventually(lambda: os.path.exists(f"{told}/{event}"), what=f"on_{event}")
            with open(f"{told}/{event}", encoding="utf-8") as file:
                return json.load(file)
        own = {"on_success": note("success"), "on_failure": note("failure")}
        with rig(engine, negative(**own), {**negative(on_success=["/no/such/program"]), "name": "missing"}) as r:
            r.run("negative")
            good = facts("success")
            assert good["class"] == "check" and good["name"] == "negative" and good["message"] is None, good
            assert not os.path.exists(f"{told}/failure")
            r.db.execute("INSERT INTO account VALUES (1, -5)")
            r.run("negative")
            bad = facts("failure")
            assert bad["event"] == "failure" and bad["message"] == "1 new violation", bad
            assert bad["outcome"] == "COMPLETED" and bad["run"] != good["run"], bad
            with open(f"{told}/failure.env", encoding="utf-8") as file:
                env = file.read()
            assert "INTERLOCK_EVENT=failure" in env and "INTERLOCK_CONNECTION_APP" not in env, env
            r.db.execute("DELETE FROM account")
            r.run("missing")
            r.a.wait_log(r"hook failed.*on_success \(/no/such/program\): command not found")


def ticks(engine):
    with rig(engine, negative(schedule=EVERY_MINUTE), n=2) as r:
        # the last minute is made up for at the start
        lib.eventually(lambda: r.results()["items"], seconds=75, what="a tick")

        def settled():
            """Each tick is one run and one result, and was executed once, by either server."""
            runs = [i for i in r.a.get("/api/v1/runs?limit=100").json["items"] if i["key"] == "check:negative"]
            found = [i["id"] for i in r.results(limit=100)["items"]]
            executed = sum(r.metric('interlock_check_passed_total{severity="error"}', server) for server in r.all)
            assert all(i["trigger"] == "schedule" for i in runs), runs
            return sorted(found) == sorted(i["id"] for i in runs) and len(found) == executed
        lib.eventually(settled, what="as many executions as results and runs")


for ENGINE in ("sqlite", "postgres"):
    for FUNCTION in (broken_then_fixed, hanging, reload, command, hooks, ticks):
        def TEST(engine=ENGINE, function=FUNCTION):
            function(engine)
        TEST.__doc__ = f"{FUNCTION.__name__}, {ENGINE}"
        globals()[f"test_{FUNCTION.__name__}_{ENGINE}"] = TEST

lib.main(globals())
