"""Every route of the server: valid, without a key, without permission, with bad input; responses
match /openapi.json.

A route without a case here fails the test: `test_every_route_has_a_case`.
"""
import atexit
import json
import os
import re
import shutil
import subprocess
import tempfile

import lib
import schema

ROLE_BELOW = {"read": "none", "write": "read", "operator": "write", "admin": "operator"}


def operations(doc):
    """Those of the API. The page's own are called in another way: t-ui.py."""
    return [(method, path, op) for method, path, op in doc.operations() if not path.startswith("/ui/")]


class World:
    """A server, what its /openapi.json says, and what was made so far."""

    def __init__(self, server):
        self.server = server
        self.doc = schema.Document(server.get("/openapi.json", key=None).expect(200).json)
        self.routes = {op["operationId"]: (method, path, op) for method, path, op in operations(self.doc)}
        self.seen = set()
        self.calls = {}  # by route: method, path and body of the last call that was answered well

    def call(self, route, status=200, code=None, args=(), query="", body=None, headers=None, client=None, check=True):
        """A call by the id of its route; the answer is held against the description."""
        method, path, op = self.routes[route]
        for value in args:
            path = re.sub(r"\{\w+\}", value, path, count=1)
        if body is not None and check and status < 400:
            self.doc.check_body(op, body)
        answer = (client or self.server).ask(method, path + query, body, headers=headers)
        try:
            answer.expect(status, code)
            self.doc.check_answer(op, answer)
        except (AssertionError, schema.Wrong) as why:
            raise AssertionError(f"{route} {body}: {why}\n{answer}") from None
        assert answer.headers["Cache-Control"] == "no-store", answer.headers.items()
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert "frame-ancestors 'none'" in answer.headers["Content-Security-Policy"]
        assert answer.headers["X-Request-Id"]
        if status < 400:
            self.seen.add(route)
            self.calls[route] = (method, path + query, body)
        return answer.json if answer.headers["Content-Type"] == "application/json" else answer.body


PIPELINES = tempfile.mkdtemp(prefix="interlock-routes-")
atexit.register(shutil.rmtree, PIPELINES, True)
CHECKS = tempfile.mkdtemp(prefix="interlock-routes-")
atexit.register(shutil.rmtree, CHECKS, True)
SITE = subprocess.Popen([lib.BINARY, "demo-site", "--listen", "127.0.0.1:0", "--entries", "4", "--races", "1", "--laps", "3"],
                        stdout=subprocess.PIPE, text=True)
atexit.register(SITE.wait)
atexit.register(SITE.terminate)
SITE_URL = SITE.stdout.readline().strip() + "/{slug}"


def serve(**more):
    """Every refused key counts, and every trigger: these tests refuse many from one address, and trigger a lot."""
    os.makedirs(PIPELINES + "/default", exist_ok=True)
    with open(PIPELINES + "/default/hello.yml", "w", encoding="utf-8") as file:
        file.write("pipeline_id: hello\nsteps:\n- {step_id: say, type: command, run: [echo, hello]}\n"
                   "- {step_id: wait, type: command, run: [sleep, \"{seconds}\"], depends_on: [say]}\nparameters: {seconds: \"0\"}\n")
    os.makedirs(CHECKS + "/default", exist_ok=True)
    with open(CHECKS + "/default/a.yml", "w", encoding="utf-8") as file:
        file.write("- {name: nowhere, connection: none, sql: SELECT 1, schedule: 0 0 1 1 *}\n")
    env = {"INTERLOCK_LOGIN_FAILURES": "100000", "INTERLOCK_LIMIT_TRIGGERS_PER_MINUTE": "0", "INTERLOCK_RUNS_SHUTDOWN": "1s",
           "INTERLOCK_USAGE_SOURCE_TYPE": "generator", "INTERLOCK_LIVERC_URL": SITE_URL, "INTERLOCK_INGEST_REQUEST_DELAY_MS": "0"}
    return lib.Server(env=env, args=["--pipelines", PIPELINES, "--checks", CHECKS], **more)


# ---- good ones: each returns nothing, and raises if something is not as it should be

def locks(w):
    lease = w.call("lock_acquire", body={"key": "event:1", "holder": "a", "ttl_ms": 30000, "meta": "{\"pid\":1}"})
    assert (lease["key"], lease["holder"], lease["ttl_ms"], lease["renewed"]) == ("event:1", "a", 30000, False)
    again = w.call("lock_acquire", body={"key": "event:1", "holder": "a"})
    assert again["renewed"] and again["fence"] == lease["fence"]
    made = w.call("lock_acquire", body={"key": "event:2"})
    assert re.fullmatch(r"[0-9a-f-]{36}", made["holder"])
    held = w.call("lock_acquire", 409, "LOCK_HELD", body={"key": "event:1", "holder": "b"})["error"]["details"]
    assert (held["holder"], held["fence"]) == ("a", lease["fence"]) and held["retry_after_ms"] > 0 and held["since"] and held["expires_at"]
    assert w.call("lock_renew", body={"key": "event:1", "holder": "a", "fence": lease["fence"], "ttl_ms": 60000})["ttl_ms"] == 60000
    assert w.call("fence_check", body={"key": "event:1", "fence": lease["fence"]})["valid"] is True
    stale = w.call("fence_check", 409, "FENCE_STALE", body={"key": "event:1", "fence": 1})
    assert stale["error"]["details"]["fence"] == lease["fence"]
    assert w.call("lock_get", query="?key=event:1")["leases"][0]["meta"] == {"pid": 1}
    w.call("lock_get", 404, "NOT_HELD", query="?key=nobody")
    page = w.call("lock_list", query="?prefix=event:&limit=1")
    assert len(page["items"]) == 1 and page["next"]
    rest = w.call("lock_list", query=f"?prefix=event:&limit=1&cursor={page['next']}")
    assert rest["items"][0]["key"] == "event:2"
    assert w.call("lock_list", query="?waiters=true")["items"] == []
    assert w.call("lock_order") == {"items": [], "next": None}
    w.call("lock_acquire", body={"key": "race:1", "holder": "a", "place": "here"})
    edge = {"from": "event", "to": "race", "tenant": "default", "from_place": "", "to_place": "here", "inverted": False, "declared": False}
    assert w.call("lock_order", query="?prefix=&limit=1") == {"items": [edge], "next": None}
    w.call("lock_order", 400, "BAD_REQUEST", query="?cursor=event")
    assert w.call("lock_history", query="?key=quiet") == {"items": [], "next": None}
    assert w.call("lock_refused", body={"key": "past", "meta": '{"command":"x"}', "count": 2, "held_ms": 5, "span_ms": 7})["noted"] is True
    past = w.call("lock_history", query="?key=past&limit=1")["items"][0]
    assert (past["event"], past["count"], past["meta"], past["other"], past["reason"]) == ("refused", 2, {"command": "x"}, None, None)
    w.call("lock_refused", 400, "BAD_REQUEST", body={"key": "past"})
    w.call("lock_history", 400, "BAD_REQUEST", query="?key=past&cursor=x")
    why = w.call("lock_why", query="?key=event:1")
    assert why["state"] == "held" and why["leases"][0]["holder"] == "a" and 0 < why["free_in_ms"] <= 60000
    assert w.call("lock_why", query="?key=free")["state"] == "free"
    assert w.call("lock_release", body={"key": "event:1", "holder": "a", "fence": lease["fence"]})["released"] is True
    w.call("lock_renew", 409, "LEASE_LOST", body={"key": "event:1", "holder": "a", "fence": lease["fence"]})
    broken = w.call("lock_break", body={"key": "event:2", "reason": "test", "now": True})
    assert broken["broken"] and broken["holder"] == made["holder"] and broken["fence"] == made["fence"]
    w.call("lock_break", 404, "NOT_HELD", body={"key": "event:2", "reason": "test"})
    w.call("lock_release", 409, "LEASE_LOST", body={"key": "event:2", "holder": made["holder"], "fence": made["fence"]})


def runs(w):
    run = w.call("run_start", 201, body={"key": "import:a", "trigger": "manual", "by": "ada"})
    assert run["state"] == "RUNNING" and not run["duplicate"] and run["run"]["by"] == "ada"
    joined = w.call("run_start", 200, body={"key": "import:a"})
    assert joined["duplicate"] and joined["id"] == run["id"]
    w.call("run_start", 409, "LOCK_HELD", body={"key": "import:a", "on_conflict": "reject"})
    me = {"fence": run["fence"]}
    told = w.call("run_stage", args=[run["id"]], body={**me, "stage": "load", "progress": 40, "log": "hello\n"})
    assert told["log_bytes"] == 6 and not told["cancel"]
    log = w.call("run_log", args=[run["id"]])
    assert (log["text"], log["next_offset"], log["end"]) == ("hello\n", 6, False)
    assert w.call("run_get", args=[run["id"]])["stage"] == "load"
    w.call("run_cancel", args=[run["id"]], body={"reason": "enough"})
    assert w.call("run_stage", args=[run["id"]], body={**me, "stage": "end"})["reason"] == "enough"
    assert w.call("run_finish", args=[run["id"]], body={**me, "state": "COMPLETED"})["state"] == "COMPLETED"
    w.call("run_stage", 409, "FENCE_STALE", args=[run["id"]], body={**me, "stage": "late"})
    assert w.call("run_log", args=[run["id"]], query="?offset=6&wait=10s")["end"]
    assert w.call("run_list", query="?key=import:a")["items"][0]["id"] == run["id"]
    assert w.call("run_list", query="?state=COMPLETE,FAILED&limit=5")["items"]
    w.call("run_get", 404, "NOT_FOUND", args=["nothing"])


def queues(w):
    w.call("queue_get", 404, "NOT_FOUND", args=["mail"])
    assert w.call("queue_set", args=["mail"], body={"max_attempts": 3, "group_limit": 2})["settings"]["max_attempts"] == 3
    first = w.call("queue_push", 201, args=["mail"], body={"payload": {"to": "ada"}, "key": "once"})
    again = w.call("queue_push", 200, args=["mail"], body={"payload": {"to": "ada"}, "key": "once"})
    assert not first["duplicate"] and again["duplicate"] and again["id"] == first["id"]
    many = w.call("queue_push", 201, args=["mail"], body={"items": [{"payload": str(i)} for i in range(9)]})["items"]
    assert len({item["id"] for item in many}) == 9
    assert w.call("queue_list")["items"][0]["ready"] == 10
    assert w.call("queue_get", args=["mail"])["totals"]["pushed"] == 10
    assert w.call("queue_pause", args=["mail"], body={"reason": "lunch"})["paused"]
    nothing = w.call("queue_claim", args=["mail"], body={"worker": "w"})
    assert nothing["items"] == [] and nothing["paused"]
    assert not w.call("queue_resume", args=["mail"])["paused"]
    jobs = w.call("queue_claim", args=["mail"], body={"worker": "w", "limit": 10})["items"]
    assert len(jobs) == 10 and jobs[0]["payload"] == {"to": "ada"} and all(job["attempt"] == 1 for job in jobs)
    w.call("queue_claim", 404, "NOT_FOUND", args=["nowhere"], body={})

    def mine(i, **more):
        return {"args": [jobs[i]["id"]], "body": {"token": jobs[i]["token"], **more}}

    assert w.call("job_heartbeat", **mine(0, progress=50, message="half"))["remaining_ms"] > 0
    assert w.call("job_get", args=[jobs[0]["id"]])["progress"] == 50
    assert w.call("job_finish", **mine(0, result={"ok": 1}))["state"] == "COMPLETED"
    w.call("job_heartbeat", 409, "JOB_STALE", **mine(0))
    w.call("job_finish", 409, "JOB_STALE", args=[jobs[1]["id"]], body={"token": 1})
    assert w.call("job_fail", **mine(1, error="no", final=True))["state"] == "FAILED"
    assert w.call("job_snooze", **mine(2, delay_ms=60000))["state"] == "SCHEDULED"
    assert w.call("job_retry", args=[jobs[1]["id"]])["state"] == "READY"
    assert w.call("job_cancel", args=[jobs[1]["id"]], body={"reason": "no"})["state"] == "CANCELLED"
    assert w.call("job_list", args=["mail"], query="?state=RUNNING&limit=3")["next"]
    for i, (route, more) in enumerate([("job_heartbeat_many", {}), ("job_snooze_many", {"delay_ms": 1000}), ("job_fail_many", {"error": "x"}),
                                       ("job_finish_many", {"result": "r"})], 3):
        items = [{"id": jobs[i]["id"], "token": jobs[i]["token"], **more}, {"id": jobs[i]["id"], "token": 1, **more}]
        results = w.call(route, body={"items": items})["results"]
        assert [r["status"] for r in results] == ["OK", "FENCE_STALE"], results
    parent = w.call("queue_push", 201, args=["mail"], body={"is_parent": True})["id"]
    w.call("queue_push", 201, args=["mail"], body={"payload": "child", "parent": parent})
    assert w.call("job_seal", args=[parent])["state"] == "RUNNING"
    purged = w.call("queue_purge", args=["mail"], body={"state": ["COMPLETED", "CANCELLED"]})
    assert purged["purged"] == 3 and not purged["more"], purged


def crons(w):
    made = w.call("cron_set", args=["weekly"], body={"queue": "reports", "schedule": "0 6 * * MON", "payload": "x"})
    assert made["next_at"] and made["queue"] == "reports"
    assert w.call("cron_list")["items"][0]["name"] == "weekly"
    assert w.call("cron_remove", args=["weekly"])["removed"]
    w.call("cron_remove", 404, "NOT_FOUND", args=["weekly"])
    w.call("cron_set", 400, "BAD_REQUEST", args=["weekly"], body={"queue": "reports", "schedule": "nonsense"})


def cache(w):
    w.call("cache_get", 404, "NOT_FOUND", body={"key": "usage:1"})
    lead = w.call("cache_lookup", 202, body={"key": "usage:1", "holder": "a"})
    assert lead["lead"] and lead["token"] and not lead["hit"]
    wait = w.call("cache_lookup", 202, body={"key": "usage:1", "holder": "b"})
    assert wait["wait"] and wait["token"] == lead["token"]
    mine = {"key": "usage:1", "holder": "a", "token": lead["token"]}
    assert w.call("cache_fill", body={**mine, "value": {"total": 12}, "ttl_ms": 60000, "grace_ms": 60000})["ok"]
    hit = w.call("cache_lookup", 200, body={"key": "usage:1", "holder": "b"})
    assert hit["hit"] and not hit["stale"] and hit["value"] == {"total": 12} and hit["age_ms"] >= 0
    assert w.call("cache_get", body={"key": "usage:1"})["hit"]
    stats = w.call("cache_stats", query="?prefix=usage:")
    assert stats["entries"] == 1 and stats["fresh"] == 1, stats
    w.call("cache_drop", body={"key": "usage:1", "stale": True})
    old = w.call("cache_get", body={"key": "usage:1"})
    assert old["hit"] and old["stale"]
    lead = w.call("cache_lookup", 202, body={"key": "usage:1", "holder": "a"})
    assert lead["lead"] and lead["value"] == {"total": 12}
    w.call("cache_abandon", body={**mine, "token": lead["token"]})
    w.call("cache_fill", 409, "FENCE_STALE", body={**mine, "token": lead["token"], "value": "late", "ttl_ms": 60000})


def batch(w):
    results = w.call("batch", body={"ops": [{"op": "acquire", "key": "b:1", "holder": "w"}, {"op": "get", "key": "b:1"},
                                            {"op": "push", "queue": "mail", "payload": "x"}, {"op": "release", "key": "b:1", "holder": "w", "fence": 1}]})
    assert [r["status"] for r in results["results"]] == ["OK", "OK", "OK", "FENCE_STALE"]


def admin(w):
    assert w.call("admin_tenant_create", 201, body={"id": "acme", "name": "Acme"})["id"] == "acme"
    assert w.call("admin_tenant_get", args=["acme"])["name"] == "Acme"
    w.call("admin_tenant_get", 404, args=["nobody"])
    assert any(t["id"] == "acme" for t in w.call("admin_tenant_list")["items"])
    assert w.call("admin_tenant_set", args=["acme"], body={"name": "Acme Inc."})["name"] == "Acme Inc."
    made = w.call("admin_key_create", 201, body={"tenant": "acme", "role": "write"})
    assert re.fullmatch(r"sk_acme_[\w-]{43}", made["key"])
    keys = w.call("admin_key_list", query="?tenant=acme")
    assert [k["id"] for k in keys["items"]] == [made["id"]] and made["key"] not in json.dumps(keys)
    assert w.server.get("/api/v1/status", key=made["key"]).json["tenant"] == "acme"
    w.call("admin_key_revoke", args=[made["id"]])
    assert w.call("admin_audit")["items"]
    assert {"key": "ttl", "value": "30s", "source": "default", "env": "INTERLOCK_TTL"} in w.call("admin_config")["items"]
    assert w.call("admin_row_locks")["items"] == [] and w.call("admin_row_locks", 400, query="?cursor=x")
    w.server.post("/api/v1/locks/acquire", {"key": "pipeline:daily", "holder": "h"}).expect(200)
    w.call("admin_lock_break", args=["default", "daily"], body={"reason": "stuck", "now": True})
    w.call("admin_lock_break", 404, args=["default", "daily"], body={"reason": "stuck"})


def idempotency(w):
    key = {"key": "order:7"}
    w.call("once_get", 404, "NOT_FOUND", body=key)
    begin = {"op": "once_begin", **key, "attempt": "a", "meta": "m"}
    claim = w.server.post("/api/v1/batch", {"ops": [begin]}).expect(200).json["results"][0]
    found = w.call("once_get", body=key)
    assert found["status"] == "IN_PROGRESS" and found["meta"] == "m" and found["response"] is None, found
    finish = {"op": "once_finish", **key, "attempt": "a", "token": claim["token"], "code": 7, "response": {"id": 1}}
    w.server.post("/api/v1/batch", {"ops": [finish]}).expect(200)
    found = w.call("once_get", body=key)
    assert found["status"] == "REPLAY" and found["response"] == {"id": 1} and found["code"] == 7, found
    assert 0 < found["remaining_ms"] and "token" not in found, found


def server(w):
    assert w.call("root_get")["name"] == "interlock"
    assert w.call("health_get") == {"status": "ok"}
    assert w.call("ready_get")["ready"] is True
    assert b"# HELP" in w.call("metrics_get")
    assert w.call("openapi_get")["openapi"] == "3.1.0"
    status = w.call("status_get")
    assert status["tenant"] == "default" and status["uptime_ms"] < 3600000 and status["ready"]
    assert w.call("samples_get")["interval_ms"] == 10000
    assert w.call("overview_get")["locks"] == {"n": 0, "more": False}


def stream(w):
    sock = w.server.socket()
    sock.sendall(f"GET /api/v1/stream HTTP/1.1\r\nHost: x\r\nX-API-Key: {w.server.key}\r\n\r\n".encode())
    data = b""
    while b": interlock" not in data:
        data += sock.recv(4096)
    assert b"200 OK" in data and b"text/event-stream" in data
    sock.close()
    w.seen.add("stream_get")


def pipelines(w):
    loaded = w.call("pipeline_reload")
    assert loaded["pipelines"] == 1 and loaded["problems"] == []
    assert w.call("pipeline_list")["items"][0]["pipeline_id"] == "hello"
    assert [s["step_id"] for s in w.call("pipeline_get", args=["hello"])["steps"]] == ["say", "wait"]
    w.call("pipeline_get", 404, "PIPELINE_NOT_FOUND", args=["nothing"])
    made = w.call("pipeline_run", args=["hello"], body={"trigger_by": "ada", "seconds": 30})
    run = made["pipeline_logging_id"]
    assert made["status"] == "PENDING"
    assert w.call("pipeline_run", args=["hello"])["pipeline_logging_id"] == run
    w.call("pipeline_run", 404, "PIPELINE_NOT_FOUND", args=["nothing"], body={})
    lib.eventually(lambda: w.call("pipeline_run_get", args=[run], query="?output=true")["stage"] == "wait", what="the second step")
    assert w.call("pipeline_locks")["items"][0]["pipeline_logging_id"] == run
    assert w.call("pipeline_run_log", args=[run])["text"].startswith("say | hello\n")
    assert w.call("pipeline_step_output", args=[run, "say"])["stdout"] == "hello\n"
    w.call("pipeline_step_output", 404, "NOT_FOUND", args=[run, "nothing"])
    assert w.call("pipeline_runs", query="?pipeline_id=hello&status=RUNNING&limit=5")["items"][0]["pipeline_logging_id"] == run
    w.call("pipeline_run_cancel", args=[run], body={"reason": "enough"})
    lib.eventually(lambda: w.call("pipeline_run_get", args=[run])["status"] == "CANCELLED", what="its end")
    w.call("pipeline_run_get", 404, "NOT_FOUND", args=["nothing"])


def checks(w):
    assert w.call("check_list")["items"][0]["name"] == "nowhere"
    run = w.call("check_run", 202, body={"names": ["nowhere"]})["items"][0]["run_id"]
    w.call("check_run", 404, "CHECK_NOT_FOUND", body={"names": ["nothing"]})
    lib.eventually(lambda: w.call("check_result", args=[run], query="?wait=1s")["outcome"] == "error", what="the result")
    assert w.call("check_results", query="?name=nowhere&limit=5")["items"][0]["id"] == run
    assert w.call("check_get", args=["nowhere"])["results"][0]["error"] == "connection 'none' is not configured"
    w.call("check_get", 404, "CHECK_NOT_FOUND", args=["nothing"])
    w.call("check_result", 404, "CHECK_RESULT_NOT_FOUND", args=["nothing"])


def ingested(w, job):
    """The result of an ingestion."""
    def look():
        run = w.call("ingest_status", args=[job], query="?wait=1s")
        return run if run["status"] not in ("PENDING", "RUNNING") else None
    run = lib.eventually(look, 30, f"the end of {job}")
    assert run["status"] == "COMPLETED", run
    return run["result"]


def ingestions(w):
    body = {"source_event_id": "100000", "track_slug": "hilltoprc"}
    event = ingested(w, w.call("ingest_source", 202, body=body)["job_id"])["event_id"]
    w.call("ingest_source", 400, "VALIDATION_ERROR", body={**body, "track_slug": "a.b"})
    assert w.call("ingest_events_list", query="?depth=laps_full&limit=5")["items"][0]["id"] == event
    race = w.call("ingest_event_get", args=[event])["races"][0]["id"]
    name = w.call("ingest_race_get", args=[race])["results"][0]["name"]
    assert w.call("ingest_laps_list", args=[race])["items"][0]["lap_number"] == 1
    for route in ("ingest_event_get", "ingest_race_get", "ingest_laps_list"):
        w.call(route, 404, "NOT_FOUND", args=["nothing"])
    w.call("ingest_users_import", body={"users": [{"email": "a@example.org", "name": name}]})
    ingested(w, w.call("ingest_event", 202, args=[event], body={"force": True})["job_id"])
    w.call("ingest_event", 404, "NOT_FOUND", args=["nothing"], body={})
    link = w.call("ingest_links_list")["items"][0]["id"]
    assert w.call("ingest_link_reject", args=[link])["state"] == "rejected"
    assert w.call("ingest_link_confirm", args=[link], body={"email": "a@example.org"})["state"] == "confirmed"
    w.call("ingest_link_reject", 404, "NOT_FOUND", args=["nothing"])
    assert all(v["found"] == 0 for v in w.call("ingest_verify")["items"])
    for route, more in (("ingest_tracks", {}), ("ingest_events", {"track_slug": "x"}),
                        ("ingest_recent", {"days": 1, "tracks": "x"})):
        job = w.call(route, 202, body=more)["job_id"]
        w.call("ingest_cancel", args=[job], body={"reason": "a test"})
    w.call("ingest_status", 404, "NOT_FOUND", args=["nothing"])


def campus(w):
    a, b = (w.call("campus_user_create", 201, body={"email": f"{name}@example.com", "credits": 100})["id"] for name in ("ada", "bob"))
    w.call("campus_user_get", 404, "USER_NOT_FOUND", args=["nobody"])
    lic = w.call("campus_license_create", 201, args=[a], body={"skills": "{\"passing\":60}"})["id"]
    w.call("campus_license_assess", args=[lic], body={"skill": "passing", "value": 61.5})
    t = w.call("campus_tournament_create", 201, body={"code": "cup", "campus": "north", "max_players": 2, "cost": 10})["id"]
    w.call("campus_tournament_transition", args=[t], body={"state": "ENROLLMENT_OPEN"})
    for user in a, b:
        w.call("campus_tournament_enroll", 201, args=[t], body={"user": user})
    assert w.call("campus_tournament_get", args=[t])["enrolled"] == 2
    w.call("campus_tournament_unenroll", 200, args=[t], body={"user": b})
    w.call("campus_tournament_unenroll", 404, "NOT_ENROLLED", args=[t], body={"user": b})
    w.call("campus_tournament_enroll", 201, args=[t], body={"user": b})
    for state in "ENROLLMENT_CLOSED", "CHECK_IN_OPEN", "IN_PROGRESS":
        w.call("campus_tournament_transition", args=[t], body={"state": state})
    m = w.call("campus_match_create", 201, args=[t], body={"home": a, "away": b})["id"]
    w.call("campus_match_finish", args=[m], body={"home_goals": 1, "away_goals": 0})
    assert w.call("campus_tournament_finalize", args=[t])["paid"] == 2
    assert w.call("campus_tournament_list", query="?limit=5")["items"][0]["state"] == "REWARDS_DISTRIBUTED"
    assert w.call("campus_user_get", args=[a])["xp_balance"] == 500
    assert w.call("campus_user_badges", args=[a])["items"] and w.call("campus_user_skills", args=[a])["items"][0]["id"] == lic
    x = w.call("campus_session_create", 201, body={"name": "x", "capacity": 1, "date_start": "2031-05-01T10:00:00Z", "date_end": "2031-05-01T12:00:00Z"})["id"]
    k = w.call("campus_session_book", 201, args=[x], body={"user": a})["id"]
    assert w.call("campus_session_get", args=[x])["available_spots"] == 0
    w.call("campus_booking_confirm", args=[k])
    w.call("campus_booking_attendance", args=[k], body={"status": "LATE"})
    w.call("campus_booking_cancel", args=[k])
    assert w.call("campus_booking_get", args=[k])["status"] == "CANCELLED"


def usage(w):
    span = {"startDate": "2025-01-14", "endDate": "2025-01-16"}
    assert w.call("usage_day", args=["2025-01-15"])["is_complete"]
    w.call("usage_day", 404, "USAGE_DAY_NOT_FOUND", args=["2025-01-14"], query="?build=no")
    assert len(w.call("usage_analytics", body=span)["days"]) == 3
    for route in ("usage_by_user", "usage_by_model", "usage_by_provider"):
        assert w.call(route, body={**span, "limit": 1})["next"]
    assert not w.call("usage_refresh")["is_complete"]
    assert len(w.call("usage_export", query="?startDate=2025-01-14&endDate=2025-01-16")["days"]) == 3
    w.call("usage_rebuild", 202, body={**span, "force": True})
    w.call("usage_rebuild", 429, "RATE_LIMITED", body=span)
    assert w.call("usage_metrics")["cacheRebuilds"] >= 4


GOOD = [server, locks, runs, queues, crons, cache, idempotency, batch, admin, stream, pipelines, checks, ingestions, campus, usage]


def test_good():
    """every route does what its description says"""
    with serve() as s:
        w = World(s)
        for part in GOOD:
            part(w)
        missing = set(w.routes) - w.seen
        assert not missing, f"routes without a test: {sorted(missing)}"


def test_good_sqlite():
    """the same on SQLite"""
    with serve(store="sqlite") as s:
        w = World(s)
        for part in GOOD:
            part(w)


def test_examples():
    """the examples of /openapi.json are true: they fit their schemas, and the server takes them"""
    with serve() as s:
        w = World(s)
        n = 0
        for method, path, op in operations(w.doc):
            content = op.get("requestBody", {}).get("content", {}).get("application/json", {})
            if "example" not in content:
                continue
            n += 1
            w.doc.check_body(op, content["example"])
            answer = s.ask(method, filled(path), content["example"])
            # what names a lease or a job that is not there is refused, but not as a bad request
            assert answer.status in (200, 201, 202, 404, 409), f"{op['operationId']}: {answer}"
            w.doc.check_answer(op, answer)
        assert n >= 20


def filled(path):
    """A path with something for its arguments."""
    return re.sub(r"\{\w+\}", "x", path.replace("{tenant}", "default").replace("/tenants/{id}", "/tenants/default"))


def sample(op):
    """A path argument, and a body that would be good but for what a test adds."""
    content = op.get("requestBody", {}).get("content", {}).get("application/json", {})
    return content.get("example", {})


def test_without_a_key():
    """401 without a key, with a wrong one, and with one in the wrong place; nothing else is said"""
    with serve() as s:
        w = World(s)
        for method, path, op in operations(w.doc):
            path = filled(path)
            body = sample(op) if "requestBody" in op else None
            if op["x-permission"] == "open":
                assert s.ask(method, path, body, key=None).status == 200, path
                continue
            for key, headers in [(None, {}), ("sk_default_" + "x" * 43, {}), (None, {"Authorization": "Basic " + s.key})]:
                answer = s.ask(method, path, body, key=key, headers=headers).expect(401, "UNAUTHORIZED")
                assert "WWW-Authenticate" in answer.headers
                w.doc.check_answer(op, answer)
            answer = s.ask(method, path + "?nonsense=1", body, key=None, headers={"Authorization": "Bearer " + s.key})
            assert answer.status != 401, f"{path}: {answer}"


def test_without_the_permission():
    """403 with the role below the one that a route needs, and the permission is named"""
    with serve() as s:
        w = World(s)
        keys = {role: s.key_for("default", role) for role in ("read", "write", "operator")}
        keys["none"] = s.key_for("default", "none", permissions=["nothing:much"])
        clients = {role: s.new_client(key) for role, key in keys.items()}
        for method, path, op in operations(w.doc):
            needs = lib.role_of(op)
            if needs in ("open", "any"):
                continue
            body = sample(op) if "requestBody" in op else None
            path = filled(path)
            answer = clients[ROLE_BELOW[needs]].ask(method, path, body)
            try:
                answer.expect(403, "FORBIDDEN")
            except AssertionError as why:
                raise AssertionError(f"{op['operationId']} as {ROLE_BELOW[needs]}: {why}") from None
            w.doc.check_answer(op, answer)
            named = lib.permission_of(op)
            other = clients.setdefault(named, s.new_client(s.key_for("default", "none", permissions=[named])))
            if "{tenant}" not in path and op["operationId"] != "stream_get" and not path.startswith("/api/v1/admin"):
                allowed = other.ask(method, path, body)
                assert allowed.status not in (401, 403), f"{named}: {allowed}"
            other.close()


# Routes that are about names of neither the store nor a table of an app: a prefix does not matter to them.
NOT_ABOUT_NAMES = {"admin_tenant_create", "admin_tenant_list", "admin_tenant_get", "admin_tenant_set", "admin_key_list", "admin_key_revoke",
                   "admin_config"}
# They count what the prefix covers, or say of another name that nobody holds it.
NARROWED = {"status_get": 200, "overview_get": 200, "cache_stats": 200, "lock_why": 200, "fence_check": 409}
# Rows of tables, which no prefix is about.
TABLES = ("/campus/", "/events", "/races/", "/tracks/", "/ingestion/", "/admin/usage/", "/samples", "/admin/row-locks")


def test_a_key_with_a_prefix():
    """what a key of another prefix gets of every route, with the requests that the other tests sent: nothing"""
    with serve() as s:
        w = World(s)
        for part in GOOD:
            part(w)
        assert set(w.routes) - set(w.calls) == {"stream_get"}
        with s.new_client(s.key_for("default", "admin", prefix="zz:")) as limited:
            for route, (method, path, body) in sorted(w.calls.items()):
                op = w.routes[route][2]
                if op["x-permission"] == "open":
                    continue
                answer = limited.ask(method, path, body)
                told = f"{route}: {answer}"
                if any(part in path for part in TABLES) or "x-key-prefix" in op:
                    assert answer.status == 403 and answer.json["error"]["code"] == "FORBIDDEN", told
                    assert "needs an API key without a prefix" in answer.json["error"]["message"], told
                    assert op["x-key-prefix"] in answer.json["error"]["message"], told
                    assert answer.json["error"]["details"]["prefix"] == "zz:", told
                elif route in NOT_ABOUT_NAMES:
                    assert answer.status < 300 or answer.status == 409, told
                elif route in NARROWED:
                    assert answer.status == NARROWED[route], told
                elif "results" in answer.json:  # op by op
                    assert all(r["status"] in ("FORBIDDEN", "NOT_FOUND", "NOT_HELD") for r in answer.json["results"]), told
                else:
                    assert answer.status in (403, 404) or answer.json.get("items") == [], told
                w.doc.check_answer(op, answer)
        span = {"startDate": "2025-01-15", "endDate": "2025-01-15"}
        for prefix, status, rebuild in (("usage_day:", 200, 403), ("usage", 200, 429), ("", 200, 429), ("usage_day:2025", 403, 403),
                                        ("usage:", 403, 403), ("usage_rebuild", 403, 403)):
            with s.new_client(s.key_for("default", "admin", prefix=prefix)) as some:
                w.call("usage_by_user", status, client=some, body=span)
                answer = w.call("usage_rebuild", rebuild, client=some, body=span)
                if rebuild == 403:
                    assert answer["error"]["details"]["names"] == "usage", answer
        # the log names the prefix, not a permission that the key has
        line = json.loads(s.wait_log(r'"auth\.forbidden".*"usage_rebuild".*"usage_day:"'))
        assert (line["prefix"], line["names"]) == ("usage_day:", "usage") and "permission" not in line, line
        line = json.loads(s.wait_log(r'"auth\.forbidden".*"campus_\w+".*"zz:"'))
        assert line["prefix"] == "zz:" and not {"names", "permission"} & set(line), line


def test_bad_input():
    """unknown fields and parameters are named; bodies that are not objects, or not JSON, are refused"""
    with serve() as s:
        w = World(s)
        for method, path, op in operations(w.doc):
            path = filled(path)
            if op["operationId"] in ("metrics_get",):
                continue
            answer = s.ask(method, path + "?nonsense=1", sample(op) if "requestBody" in op else None).expect(400, "BAD_REQUEST")
            assert "nonsense" in answer.json["error"]["message"], f"{path}: {answer}"
            w.doc.check_answer(op, answer)
            for query in ("?a=%", "?a=%zz", "?a=%00", "?a=%ff", "?a=%0a"):
                s.ask(method, path + query, sample(op) if "requestBody" in op else None).expect(400, "BAD_REQUEST")
            if "requestBody" not in op:
                continue
            if op["operationId"] == "pipeline_run":  # its further fields are parameters
                s.ask(method, path, {**sample(op), "nonsense": []}).expect(400, "BAD_REQUEST")
            else:
                answer = s.ask(method, path, {**sample(op), "nonsense": 1}).expect(400, "BAD_REQUEST")
                assert "nonsense" in answer.json["error"]["message"], f"{path}: {answer}"
            for raw in (b"[]", b"1", b"null", b"\"x\"", b"{", b"{\"a\":1,\"a\":2}", b"\xff", b"{}x", b"[" * 100 + b"]" * 100):
                answer = s.ask(method, path, raw=raw)
                assert answer.status == 400, f"{op['operationId']} {raw[:20]}: {answer}"


def test_wrong_types():
    """each field of each body with each wrong type: 400, and the field is named"""
    with serve() as s:
        w = World(s)
        n = 0
        for method, path, op in operations(w.doc):
            path = filled(path)
            content = op.get("requestBody", {}).get("content", {}).get("application/json", {})
            body = w.doc.follow(content.get("schema", {}))
            if "anyOf" in body:
                body = w.doc.follow(body["anyOf"][0])
            for name, field in body.get("properties", {}).items():
                wrong = []
                kinds = [kind for kind in schema.types_of(field) if kind != "null"]
                if name.endswith("_base64"):
                    continue  # the example has it under its other name
                if kinds == ["string"]:
                    wrong = [1, True, {}, []]
                elif kinds == ["integer"]:
                    wrong = ["x", 1.5, {}, True, -(2 ** 60)]
                elif kinds == ["boolean"]:
                    wrong = ["true", 1, {}]
                for value in wrong:
                    n += 1
                    answer = s.ask(method, path, {**sample(op), name: value})
                    assert answer.status == 400 and name in answer.json["error"]["message"], f"{op['operationId']} {name}={value!r}: {answer}"
        assert n > 300, n


def candidates(doc, field):
    """Values at the bounds of what a field takes, and beyond them."""
    field = doc.follow(field)
    for part in field.get("anyOf", ()):
        yield from candidates(doc, part)
    yield None
    if "integer" in schema.types_of(field):
        low, high = field.get("minimum", 0), field.get("maximum", 2 ** 31 - 1)
        yield from (low, high, low - 1, high + 1)
    yield from field.get("enum", ())
    if "const" in field:
        yield field["const"]
    if "boolean" in schema.types_of(field):
        yield from (True, False)
    if "string" in schema.types_of(field):
        yield from ("", "nonsense")
        if "maxLength" in field:
            n_max = field["maxLength"]
            yield from (text * n for text in ("x", "é") for n in (n_max, n_max // 2, n_max + 1))
    if "array" in schema.types_of(field) and "enum" in field.get("items", {}):
        yield from ([], field["items"]["enum"], ["nonsense"], ",".join(field["items"]["enum"][:2]))


# What no schema says of a text: names of tenants, schedules, times that are to come.
FURTHER_RULES = {("cron_set", "schedule"), ("admin_key_create", "tenant"),
                 ("admin_key_create", "expires_at"), ("admin_key_create", "role"),
                 ("admin_tenant_create", "id"), ("admin_key_create", "prefix")}
OTHER_NAMES = {("queue_push", "key"), ("admin_key_create", "expires_in_ms")}


def test_requests_as_described():
    """each field of each body at its bounds and beyond: the server takes what the document allows"""
    with serve() as s:
        w = World(s)
        n_good = n_bad = 0
        for method, path, op in operations(w.doc):
            if "requestBody" not in op or op["operationId"] == "batch":
                continue
            body = w.doc.follow(op["requestBody"]["content"]["application/json"]["schema"])
            body = w.doc.follow(body["anyOf"][0]) if "anyOf" in body else body
            base = {name: value for name, value in sample(op).items() if name != "wait_ms"}
            for name, field in body.get("properties", {}).items():
                if name.endswith("_base64") or (op["operationId"], name) in OTHER_NAMES:
                    continue  # beside the name that the example has it under
                for value in candidates(w.doc, field):
                    request = {**base, name: value}
                    try:
                        w.doc.check_body(op, request)
                        good = True
                    except schema.Wrong:
                        good = False
                    if name == "wait_ms" and good and value not in (0, 1, None):
                        continue  # it would
                    answer = s.ask(method, filled(path), request)
                    told = f"{op['operationId']} {name}={str(value)[:50]!r}: {str(answer)[:300]}"
                    blamed = answer.status == 400 and f"'{name}'" in str(answer.body)
                    if good:
                        n_good += 1
                        assert not blamed or (op["operationId"], name) in FURTHER_RULES, told
                    else:
                        n_bad += 1
                        assert answer.status == 400, told
        assert n_good > 300 and n_bad > 200, (n_good, n_bad)
        # the same under their other names
        w.call("queue_push", 201, args=("q",), body={"payload": "x", "key": "u"})


def test_a_repeated_new_key_is_as_described():
    with serve() as s:
        w = World(s)
        for _ in range(2):
            made = w.call("admin_key_create", 201, body={"tenant": "default", "role": "read"},
                          headers={"Idempotency-Key": "k"})
        assert made["key"] is None


def test_a_parameter_twice():
    """Which of two would count? Others may read the second one."""
    with lib.Server() as s:
        for query in ("limit=1&limit=2", "limit=1&%6cimit=2", "prefix=a&prefix=b", "limit=2&prefix=a&limit=2"):
            s.get("/api/v1/locks?" + query).expect(400, "BAD_REQUEST")
        assert "twice" in s.get("/api/v1/jobs/x?wait=0s&wait=1s").expect(400, "BAD_REQUEST").json["error"]["message"]


def test_methods_and_paths():
    """405 with Allow; unknown paths are 404, the same as what is not yours"""
    with serve() as s:
        answer = s.delete("/api/v1/locks").expect(405, "METHOD_NOT_ALLOWED")
        assert answer.headers["Allow"] == "GET, HEAD"
        assert s.ask("PATCH", "/api/v1/queues/x").expect(405).headers["Allow"] == "GET, HEAD, PUT"
        for path in ("/nothing", "/api/v1/nothing", "/api/v2/locks", "/api/v1/locks/", "/api/v1//locks", "/api/v1/queues/a%2fb", "/api/v1/queues/%00",
                     "/api/v1/queues/%zz", "/API/v1/locks", "/api/v1/queues/%ff"):
            s.get(path).expect(404, "NOT_FOUND")
        assert s.ask("HEAD", "/health").expect(200).body == b""
        assert s.ask("HEAD", "/api/v1/locks").expect(200).body == b""


def test_without_the_prefix():
    """pipelines and administration are there without /api/v1, too: the same routes, the same keys; nothing else is"""
    with serve() as s:
        doc = schema.Document(s.get("/openapi.json", key=None).json)
        paths = doc.root["paths"]
        bare = {path: doc.at(item["$ref"]) for path, item in paths.items() if "$ref" in item}
        assert {path.split("/")[1] for path in bare} == {"pipelines", "admin"}
        for path in paths:
            if path.startswith(("/api/v1/pipelines", "/api/v1/admin")):
                assert path[len("/api/v1"):] in bare, path
        for method, path in ((m.upper(), path) for path, item in bare.items() for m in item):
            assert bare[path] is paths["/api/v1" + path], path
            answer = s.ask(method, filled(path), key=None).expect(401, "UNAUTHORIZED")
            assert "WWW-Authenticate" in answer.headers
            both = ("/api/v1" + path, path)
            long, short = (s.ask(method, filled(p) + "?nonsense=1") for p in both)
            assert (long.status, long.json) == (short.status, short.json), (long, short)
        assert s.post("/admin/tenants", {"id": "bare"}).expect(201).json["id"] == "bare"
        key = s.post("/admin/api-keys", {"tenant": "bare", "role": "read"}).expect(201).json
        s.get("/api/v1/status", key=key["key"]).expect(200)
        s.delete(f"/admin/api-keys/{key['id']}").expect(200)
        for path in ("/locks", "/runs", "/queues", "/status", "/batch"):
            s.get(path).expect(404, "NOT_FOUND")


def test_pages():
    """every listing has limit (default 100, at most 1000) and a cursor"""
    with serve() as s:
        w = World(s)
        s.post("/api/v1/batch", {"ops": [{"op": "acquire", "key": f"k:{i:04}", "holder": "w", "ttl_ms": 60000} for i in range(250)]}).expect(200)
        s.post("/api/v1/queues/q/jobs", {"items": [{"payload": str(i)} for i in range(250)]}).expect(201)
        s.post("/api/v1/batch", {"ops": [{"op": "queue_set", "queue": f"q:{i:03}"} for i in range(150)]}).expect(200)
        for path, n in (("/api/v1/locks", 250), ("/api/v1/queues/q/jobs", 250), ("/api/v1/queues", 151)):
            first = s.get(path).expect(200).json
            assert len(first["items"]) == 100 and first["next"], path
            assert len(s.get(path + "?limit=1000").expect(200).json["items"]) == n
            s.get(path + "?limit=1001").expect(400, "BAD_REQUEST")
            s.get(path + "?limit=0").expect(400)
            s.get(path + "?cursor=nonsense").expect(400)
            seen, cursor = [], ""
            while cursor is not None:
                page = s.get(path + "?limit=70" + (f"&cursor={cursor}" if cursor else "")).expect(200).json
                seen += [item.get("key") or item.get("id") or item["name"] for item in page["items"]]
                cursor = page["next"]
            assert len(seen) == len(set(seen)) == n, path
        assert w.doc.root["paths"]["/api/v1/locks"]["get"]["parameters"]


def test_the_document():
    """/openapi.json: every reference leads somewhere, every schema is used, ids are unique"""
    with serve() as s:
        doc = schema.Document(s.get("/openapi.json", key=None).json)
        ids = [op["operationId"] for _, _, op in doc.operations()]
        assert len(ids) == len(set(ids)) and len(ids) > 55
        used = set()

        def walk(node):
            if isinstance(node, dict):
                if "$ref" in node:
                    doc.at(node["$ref"])
                    used.add(node["$ref"].rsplit("/", 1)[1])
                for value in node.values():
                    walk(value)
            elif isinstance(node, list):
                for value in node:
                    walk(value)

        walk(doc.root)
        assert set(doc.root["components"]["schemas"]) <= used, set(doc.root["components"]["schemas"]) - used
        for method, path, op in operations(doc):
            named = set(re.findall(r"\{(\w+)\}", path))
            given = {p["name"] for p in (doc.follow(p) for p in op["parameters"]) if p["in"] == "path"}
            assert named == given, path
            assert op["summary"] and (method in ("GET", "DELETE") or op["x-permission"] != "open")


lib.main(globals())
