"""The campus in the server: routes, refusals, Idempotency-Key down to the ledger, metrics, --server. On SQLite and PostgreSQL."""
import contextlib
import http.client
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import threading
import time
import urllib.parse

import fleet
import lib

BASE = "/api/v1/campus"


class Rig(fleet.Place):
    def __init__(self, engine):
        super().__init__(engine, "campus")
        self.engine = engine
        self.key = None
        self.start()

    def start(self):
        self.server = lib.Server(store=self.store, env={"TMPDIR": self.folder}, key=self.key)
        self.key = self.server.key

    def post(self, path, body=None, once=None, status=None):
        headers = {"Idempotency-Key": once} if once else None
        answer = self.server.post(BASE + path, body if body is not None else {}, headers=headers)
        return answer.expect(status).json if status else answer

    def get(self, path, status=200):
        return self.server.get(BASE + path).expect(status).json

    def user(self, name, credits=100):
        return self.post("/users", {"email": name + "@example.com", "credits": credits}, status=201)["id"]

    def tournament(self, code, cost=10, players=4):
        t = self.post("/tournaments", {"code": code, "campus": "north", "max_players": players, "cost": cost}, status=201)["id"]
        self.post(f"/tournaments/{t}/transition", {"state": "ENROLLMENT_OPEN"}, status=200)
        return t

    def command(self, *args):
        return lib.run("campus", *args, "--server", f"http://{self.server.address}", env={"INTERLOCK_API_KEY": self.key})


@contextlib.contextmanager
def rig(engine):
    r = Rig(engine)
    try:
        yield r
    finally:
        r.server.end()
        shutil.rmtree(r.folder, ignore_errors=True)


def refused(answer, status, code, text=""):
    error = answer.expect(status).json["error"]
    assert (error["code"], error["source"]) == (code, "campus") and text in error["message"], error


def a_season(engine):
    with rig(engine) as r:
        ada, bob = r.user("ada"), r.user("bob")
        lic = r.post(f"/users/{ada}/licenses", {"skills": json.dumps({"passing": 60})}, status=201)["id"]
        t = r.tournament("cup")
        assert [i["id"] for i in r.get("/tournaments")["items"]] == [t]
        r.post(f"/tournaments/{t}/enroll", {"user": ada}, status=201)
        r.post(f"/tournaments/{t}/enroll", {"user": bob}, status=201)
        refused(r.post(f"/tournaments/{t}/enroll", {"user": bob}), 409, "ALREADY_ENROLLED")
        refused(r.post("/tournaments/none/enroll", {"user": bob}), 404, "TOURNAMENT_NOT_FOUND")
        refused(r.post(f"/tournaments/{t}/finalize"), 409, "TOURNAMENT_STATE")
        for state in "ENROLLMENT_CLOSED", "CHECK_IN_OPEN", "IN_PROGRESS":
            r.post(f"/tournaments/{t}/transition", {"state": state}, status=200)
        m = r.post(f"/tournaments/{t}/matches", {"home": ada, "away": bob}, status=201)["id"]
        refused(r.post(f"/tournaments/{t}/finalize"), 409, "MATCHES_UNFINISHED")
        refused(r.post(f"/tournaments/{t}/transition", {"state": "COMPLETED"}), 409, "MATCHES_UNFINISHED",
                f"cannot complete tournament {t}: 1 matches are not finished")
        r.post(f"/matches/{m}/finish", {"home_goals": 2, "away_goals": 0}, status=200)
        done = r.post(f"/tournaments/{t}/finalize", status=200)
        assert (done["paid"], done["items"][0]["user"], done["items"][0]["xp"]) == (2, ada, 500), done
        assert r.post(f"/tournaments/{t}/finalize", status=200)["repeated"] is True
        shown = r.get(f"/users/{ada}")
        assert (shown["credit_balance"], shown["xp_balance"]) == (190, 500), shown
        assert "CHAMPION" in [b["type"] for b in r.get(f"/users/{ada}/badges")["items"]]
        assert r.get(f"/users/{ada}/skills")["items"][0]["football_skills"]["passing"]["current_level"] > 68
        assert r.post(f"/licenses/{lic}/assess", {"skill": "passing", "value": 72.5}, status=200)["football_skills"]["passing"]["baseline"] == 72.5
        r.post(f"/licenses/{lic}/assess", {"skill": "passing", "value": 100}, status=400)
        metrics = r.server.get("/metrics").body.decode()
        assert re.search(r'interlock_row_lock_hold_seconds_count\{pipeline="reward",entity="UserLicense"\} 1', metrics), metrics
        assert 'interlock_campus_null_deltas_permille 500' in metrics  # bob has no license
        assert 'interlock_campus_integrity_rollbacks_total{race="double_grant"} 0' in metrics


def a_cancelled_tournament(engine):
    with rig(engine) as r:
        ada, bob = r.user("ada"), r.user("bob")
        t = r.tournament("cup")
        for user in ada, bob:
            r.post(f"/tournaments/{t}/enroll", {"user": user}, status=201)
        for state in "ENROLLMENT_CLOSED", "CHECK_IN_OPEN", "IN_PROGRESS":
            r.post(f"/tournaments/{t}/transition", {"state": state}, status=200)
        m = r.post(f"/tournaments/{t}/matches", {"home": ada, "away": bob}, status=201)["id"]
        r.post(f"/tournaments/{t}/transition", {"state": "CANCELLED"}, status=200)
        told = f"matches of tournament {t} cannot change: it is CANCELLED"
        refused(r.post(f"/matches/{m}/finish", {"home_goals": 2, "away_goals": 0}), 409, "TOURNAMENT_STATE", told)
        refused(r.post(f"/tournaments/{t}/matches", {"home": ada, "away": bob}), 409, "TOURNAMENT_STATE", told)


def all_pages(r, path, limit):
    """All items of a list, page by page."""
    items, query = [], f"?limit={limit}"
    while True:
        page = r.get(path + query)
        assert len(page["items"]) <= limit and (page["next"] is None or len(page["items"]) == limit), page
        items += page["items"]
        if page["next"] is None:
            return items
        query = f"?limit={limit}&cursor={urllib.parse.quote(page['next'])}"


def pages(engine):
    """Every list has a limit and a next page."""
    with rig(engine) as r:
        ada, bob = r.user("ada"), r.user("bob")
        for i in range(3):
            r.post(f"/users/{ada}/licenses", {"specialization": f"S{i}"}, status=201)
        for i in range(2):
            t = r.tournament(f"cup{i}")
            for user in ada, bob:
                r.post(f"/tournaments/{t}/enroll", {"user": user}, status=201)
            for state in "ENROLLMENT_CLOSED", "CHECK_IN_OPEN", "IN_PROGRESS":
                r.post(f"/tournaments/{t}/transition", {"state": state}, status=200)
            r.post(f"/tournaments/{t}/finalize", status=200)
        for path, n in (f"/users/{ada}/badges", 6), (f"/users/{ada}/skills", 3), ("/tournaments", 2):
            whole = r.get(path)
            assert (len(whole["items"]), whole["next"]) == (n, None), whole
            for limit in 1, 2, n - 1, n:
                assert all_pages(r, path, limit) == whole["items"], (path, limit)
        badges = r.get(f"/users/{ada}/badges")["items"]
        assert badges == sorted(badges, key=lambda b: b["created_at"]), badges
        for bad in "?limit=0", "?limit=1001", "?cursor=", "?size=1":
            r.get(f"/users/{ada}/badges{bad}", status=400)
        for path in "/users/nobody/badges", "/users/nobody/skills":
            r.get(path, status=404)
        for args, path in (("badges", ada), f"/users/{ada}/badges"), (("skills", ada), f"/users/{ada}/skills"), (("tournaments",), "/tournaments"):
            shown = json.loads(r.command(*args, "--limit", "1", "--json").stdout)
            assert shown == r.get(path + "?limit=1"), shown
            shown = json.loads(r.command(*args, "--cursor", shown["next"], "--json").stdout)
            assert shown["items"] == r.get(path)["items"][1:], shown


def sessions(engine):
    with rig(engine) as r:
        ada, bob = r.user("ada"), r.user("bob")
        s = r.post("/sessions", {"name": "Training", "capacity": 1, "price": 20, "date_start": "2031-05-01T10:00:00Z", "date_end": "2031-05-01T12:00:00Z"}, status=201)["id"]
        a = r.post(f"/sessions/{s}/book", {"user": ada}, status=201)
        b = r.post(f"/sessions/{s}/book", {"user": bob}, status=201)
        assert (a["status"], b["status"], b["waitlist_position"]) == ("CONFIRMED", "WAITLISTED", 1), b
        refused(r.post(f"/bookings/{b['id']}/confirm"), 400, "SESSION_FULL")
        assert "PRESENT, ABSENT or LATE" in r.post(f"/bookings/{a['id']}/attendance", {"status": "DRUNK"}, status=400)["error"]["message"]
        assert r.post(f"/bookings/{a['id']}/attendance", status=200)["status"] == "PRESENT"
        assert r.post(f"/bookings/{a['id']}/cancel", status=200)["status"] == "CANCELLED"
        refused(r.post(f"/bookings/{a['id']}/cancel"), 409, "BOOKING_CANCELLED")
        assert r.get(f"/bookings/{b['id']}")["status"] == "CONFIRMED"
        assert r.get(f"/sessions/{s}")["available_spots"] == 0
        assert r.get(f"/users/{ada}")["credit_balance"] == 100
        assert r.command("book", s, ada).returncode == 0
        assert r.command("enroll", "none", ada).returncode == 1


class Sqlite:
    """The database of the campus or of the store, beside the server."""

    def __init__(self, r, what):
        self.tables, self.once = "", "il_once"
        self.db = sqlite3.connect(f"{r.folder}/store{'-campus' if what == 'campus' else ''}.db", timeout=20, isolation_level=None)

    def ask(self, sql):
        return self.db.execute(sql).fetchall()

    def hold(self):
        """Nobody else writes from here on."""
        self.ask("BEGIN IMMEDIATE")

    def free(self):
        self.ask("ROLLBACK")

    def end(self):
        self.db.close()


class Postgres:
    def __init__(self, r, what):
        self.held = f"{r.name}_campus.semester_enrollments" if what == "campus" else f"{r.name}.once"
        self.tables, self.once = f"{r.name}_campus.", f"{r.name}.once"
        self.process = subprocess.Popen(["psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", os.environ["IL_TEST_POSTGRES"]], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)

    def ask(self, sql):
        self.process.stdin.write(f"{sql};\n\\echo end\n")
        self.process.stdin.flush()
        rows = []
        for line in self.process.stdout:
            if line == "end\n":
                return rows
            rows.append(tuple(line.rstrip("\n").split("|")))
        raise AssertionError("psql has ended: " + sql)

    def hold(self):
        self.ask(f"BEGIN; LOCK TABLE {self.held} IN EXCLUSIVE MODE")

    def free(self):
        """What a dead server has sent does not happen: its backends do not wait for the lock any longer."""
        self.ask(f"SELECT pg_terminate_backend(pid) FROM pg_locks WHERE relation = '{self.held}'::regclass AND NOT granted"
                 if self.held.endswith(".once") else "SELECT 1")
        self.ask("ROLLBACK")

    def end(self):
        self.process.stdin.close()
        self.process.wait(20)
        self.process.stdout.close()


def appears(database, sql):
    """Wait until the count is not 0."""
    end = time.monotonic() + 30 * lib.SLOW
    while int(database.ask(sql)[0][0]) == 0:
        assert time.monotonic() < end, sql
        time.sleep(0.01)


def lose(r, path, body, once):
    """A call whose server dies."""
    with contextlib.suppress(OSError, http.client.HTTPException):
        r.post(path, body, once=once)


def killed_before_the_answer(engine):
    """The effect is there and the server dies before the answer is stored: the same key finds the effect."""
    with rig(engine) as r:
        ada, t = r.user("ada"), r.tournament("cup")
        campus, store = ((Sqlite if engine == "sqlite" else Postgres)(r, what) for what in ("campus", "store"))
        campus.hold()  # the effect waits until the key is claimed
        call = threading.Thread(target=lose, args=(r, f"/tournaments/{t}/enroll", {"user": ada}, "k"))
        call.start()
        appears(store, f"SELECT count(*) FROM {store.once} WHERE state = 1")
        store.hold()  # and from here on, no answer can be stored
        campus.free()
        appears(campus, f"SELECT count(*) FROM {campus.tables}semester_enrollments")
        r.server.send(signal.SIGKILL)
        call.join()
        r.server.end()
        store.free()
        store.ask(f"UPDATE {store.once} SET expires_ms = 0 WHERE state = 1")  # its claim runs out
        r.start()
        again = r.post(f"/tournaments/{t}/enroll", {"user": ada}, once="k", status=201)
        assert [(again["id"],)] == campus.ask(f"SELECT id FROM {campus.tables}semester_enrollments")
        assert int(campus.ask(f"SELECT count(*) FROM {campus.tables}credit_transactions WHERE type = 'TOURNAMENT_ENROLLMENT'")[0][0]) == 1
        assert r.get(f"/users/{ada}")["credit_balance"] == 90
        assert r.post(f"/tournaments/{t}/enroll", {"user": ada}, once="k", status=201) == again
        campus.end()
        store.end()


def a_key_is_one_effect(engine):
    """Also for a server that was killed and started again."""
    with rig(engine) as r:
        ada, t = r.user("ada"), r.tournament("cup")
        first = r.post(f"/tournaments/{t}/enroll", {"user": ada}, once="k1", status=201)
        again = r.post(f"/tournaments/{t}/enroll", {"user": ada}, once="k1")
        assert again.expect(201).json == first and again.headers["Idempotent-Replayed"] == "true"
        assert r.get(f"/users/{ada}")["credit_balance"] == 90
        out = r.post(f"/tournaments/{t}/unenroll", {"user": ada}, once="k2", status=200)
        assert r.post(f"/tournaments/{t}/unenroll", {"user": ada}, once="k2", status=200) == out
        assert r.get(f"/users/{ada}")["credit_balance"] == 95
        r.server.send(signal.SIGKILL)
        r.server.end()
        r.start()
        assert r.post(f"/tournaments/{t}/enroll", {"user": ada}, once="k1", status=201) == first
        assert r.get(f"/users/{ada}")["credit_balance"] == 95


for ENGINE in ("sqlite", "postgres"):
    for FUNCTION in (a_season, a_cancelled_tournament, pages, sessions, a_key_is_one_effect, killed_before_the_answer):
        def TEST(engine=ENGINE, function=FUNCTION):
            function(engine)
        TEST.__doc__ = f"{FUNCTION.__name__}, {ENGINE}"
        globals()[f"test_{FUNCTION.__name__}_{ENGINE}"] = TEST

lib.main(globals())
