"""Every administrative action is recorded before the response: who, when, what, why, outcome."""
import sqlite3
import time

import lib


def acts(s, **query):
    text = "&".join(f"{k}={v}" for k, v in query.items())
    return s.get("/api/v1/admin/audit" + ("?" + text if text else "")).expect(200).json["items"]


def whoami(s, key):
    """The id of a key: what an act of it says."""
    with s.new_client(key) as c:
        c.put("/api/v1/queues/whoami", {}).expect(200)
    return acts(s, action="queue.set")[0]["who"]


def test_every_act_on_the_store():
    with lib.Server() as s:
        key = s.key_for("acme", "operator")
        who = whoami(s, key)
        c = s.new_client(key)
        c.post("/api/v1/locks/acquire", {"key": "k", "holder": "h"}).expect(200)
        run = c.post("/api/v1/runs", {"key": "r"}).expect(201).json["id"]
        job = c.post("/api/v1/queues/q/jobs", {"payload": "x"}).expect(201).json["id"]
        done = [
            ("lock.break", "k", "stuck", "OK", lambda: c.post("/api/v1/locks/break", {"key": "k", "reason": "stuck", "now": True})),
            ("run.cancel", run, "no more", "OK", lambda: c.post(f"/api/v1/runs/{run}/cancel", {"reason": "no more"})),
            ("run.cancel", "nothing", "x", "NOT_FOUND", lambda: c.post("/api/v1/runs/nothing/cancel", {"reason": "x"})),
            ("job.cancel", job, "wrong", "OK", lambda: c.post(f"/api/v1/jobs/{job}/cancel", {"reason": "wrong"})),
            ("job.retry", job, None, "OK", lambda: c.post(f"/api/v1/jobs/{job}/retry", {})),
            ("queue.pause", "q", "lunch", "OK", lambda: c.post("/api/v1/queues/q/pause", {"reason": "lunch"})),
            ("queue.resume", "q", None, "OK", lambda: c.post("/api/v1/queues/q/resume", {})),
            ("queue.set", "q", None, "OK", lambda: c.put("/api/v1/queues/q", {})),
            ("queue.purge", "q", None, "OK", lambda: c.post("/api/v1/queues/q/purge", {"state": ["COMPLETED"]})),
            ("cron.set", "nightly", None, "OK", lambda: c.put("/api/v1/crons/nightly", {"queue": "q", "schedule": "0 3 * * *"})),
            ("cron.remove", "nightly", None, "OK", lambda: c.delete("/api/v1/crons/nightly")),
        ]
        for act, what, reason, outcome, do in done:
            answer = do()
            assert (answer.status < 300) == (outcome == "OK"), (act, answer)
            row = acts(s, limit=1)[0]  # it is there as soon as the answer is
            got = (row["action"], row["what"], row["reason"], row["outcome"], row["who"], row["tenant"])
            assert got == (act, what, reason, outcome, who, "acme"), (got, act)
            assert abs(time.time() - time.mktime(time.strptime(row["at"][:19], "%Y-%m-%dT%H:%M:%S")) + time.timezone) < 30
        c.close()


def test_ops_of_a_batch():
    with lib.Server() as s:
        with s.new_client(s.key_for("acme", "operator")) as c:
            fence = c.post("/api/v1/locks/acquire", {"key": "k", "holder": "h"}).expect(200).json["fence"]
            c.post("/api/v1/batch", {"ops": [
                {"op": "break", "key": "k", "fence": fence, "reason": "one"},
                {"op": "get", "key": "k"},
                {"op": "run_cancel", "id": "nothing", "reason": "two"}]}).expect(200)
            got = [(a["action"], a["reason"], a["outcome"]) for a in acts(s, limit=2)]
            assert sorted(got) == [("lock.break", "one", "OK"), ("run.cancel", "two", "NOT_FOUND")], got


def test_tenants_and_keys():
    with lib.Server() as s:
        s.post("/api/v1/admin/tenants", {"id": "acme"}).expect(201)
        s.put("/api/v1/admin/tenants/acme", {"name": "Acme"}).expect(200)
        made = s.post("/api/v1/admin/api-keys", {"tenant": "acme", "role": "write"}).expect(201).json
        s.delete("/api/v1/admin/api-keys/" + made["id"]).expect(200)
        got = [(a["action"], a["what"], a["tenant"], a["outcome"]) for a in acts(s)]
        assert got == [("key.revoke", made["id"], "acme", "OK"), ("key.create", made["id"], "acme", "OK"),
                       ("tenant.set", "acme", "acme", "OK"), ("tenant.create", "acme", "acme", "OK")], got
        assert acts(s, action="key.create")[0]["details"] == {"role": "write"}
        assert made["key"][-43:] not in s.get("/api/v1/admin/audit").body.decode()


def test_what_is_ordinary_is_not_recorded():
    with lib.Server() as s:
        fence = s.post("/api/v1/locks/acquire", {"key": "k", "holder": "h"}).expect(200).json["fence"]
        s.post("/api/v1/locks/renew", {"key": "k", "holder": "h", "fence": fence}).expect(200)
        s.post("/api/v1/locks/release", {"key": "k", "holder": "h", "fence": fence}).expect(200)
        s.post("/api/v1/queues/q/jobs", {"payload": "x"}).expect(201)
        assert acts(s) == []
        # and what was refused was no act
        with s.new_client(s.key_for("acme", "read")) as c:
            n = len(acts(s))
            c.post("/api/v1/locks/break", {"key": "k", "reason": "x"}).expect(403)
        assert len(acts(s)) == n


def test_pages():
    with lib.Server() as s:
        for i in range(25):
            s.put(f"/api/v1/queues/q{i}", {}).expect(200)
        seen, cursor = [], ""
        while True:
            page = s.get("/api/v1/admin/audit?limit=10" + cursor).expect(200).json
            seen += [a["what"] for a in page["items"]]
            if page["next"] is None:
                break
            assert len(page["items"]) == 10
            cursor = "&cursor=" + page["next"]
        assert seen == [f"q{i}" for i in reversed(range(25))], seen
        s.get("/api/v1/admin/audit?cursor=x").expect(400)


def test_within_a_prefix():
    """A key with a prefix sees what was done to names within it, and nothing else, on however many pages."""
    with lib.Server() as s:
        boss = s.new_client(s.key_for("acme", "operator"))
        for name in ("a:1", "b:1", "b:2", "a:2", "b:3"):
            boss.put("/api/v1/queues/" + name, {}).expect(200)
        boss.close()
        with s.new_client(s.key_for("acme", "operator", prefix="a:")) as c:
            seen, cursor = [], None
            while True:
                page = c.get("/api/v1/admin/audit?limit=2" + (f"&cursor={cursor}" if cursor else "")).expect(200).json
                seen += [act["what"] for act in page["items"]]
                cursor = page["next"]
                if cursor is None:
                    break
            assert seen == ["a:2", "a:1"], seen


def test_it_is_kept_over_a_restart():
    with lib.Server(store="sqlite") as s:
        s.put("/api/v1/queues/q", {}).expect(200)
        assert s.stop() == 0
        s.start()
        assert [a["action"] for a in acts(s)] == ["queue.set"]


def test_config_reload_is_an_act():
    import signal
    with lib.Server() as s:
        s.send(signal.SIGHUP)
        row = lib.eventually(lambda: acts(s, action="config.reload"), 5, "the act")[0]
        assert row["outcome"] == "OK", row


def test_old_rows_are_forgotten():
    with lib.Server(store="sqlite", env={"INTERLOCK_AUDIT_KEEP": "1h"}) as s:
        s.put("/api/v1/queues/new", {}).expect(200)
        assert s.stop() == 0
        with sqlite3.connect(s.store[len("sqlite:"):], timeout=10) as db:
            columns = [row[1] for row in db.execute("PRAGMA table_info(il_audit)")]
            at = [name for name in columns if name.startswith("at")][0]
            names = ",".join(c for c in columns if c not in ("seq", at))
            db.execute(f"INSERT INTO il_audit ({at},{names}) SELECT {at} - 7200000,{names} FROM il_audit")
            assert db.execute("SELECT count(*) FROM il_audit").fetchone()[0] == 2
        s.start()
        lib.eventually(lambda: len(acts(s)) == 1, 10, "the end of the old row")


def test_an_act_that_cannot_be_recorded_is_told_to_the_log():
    """It has happened: the answer is its own; the log has all that the row would have said, and a metric counts it."""
    with lib.Server(store="sqlite") as s:
        s.put("/api/v1/queues/q", {}).expect(200)
        with sqlite3.connect(s.store[len("sqlite:"):], timeout=10) as db:
            db.execute("ALTER TABLE il_audit RENAME TO il_audit_away")
        s.post("/api/v1/queues/q/pause", {"reason": "because-of-this"}).expect(200)
        line = s.wait_log('"audit.failed"')
        assert "because-of-this" in line and '"level":"error"' in line and "queue.pause" in line, line
        assert "interlock_audit_failures_total 1" in s.get("/metrics").body.decode()
        with sqlite3.connect(s.store[len("sqlite:"):], timeout=10) as db:
            db.execute("ALTER TABLE il_audit_away RENAME TO il_audit")


lib.main(globals())
