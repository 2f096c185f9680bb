"""Pipelines over HTTP: triggers, duplicates, runs, cancel, output, limits, reload, metrics, log lines, events."""
import http.server
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time

import fleet
import lib
from events import Events
from fleet import command, marked, pipeline, script, until

TEN = 10
LEASE_S = 12


class Fleet(fleet.Fleet):
    """Leases of runs outlast the slow moments of a busy machine: no test here waits for the end of one."""

    def __init__(self, *args, env=None, **more):
        super().__init__(*args, env={"INTERLOCK_PIPELINE_TTL": f"{LEASE_S}s", **(env or {})}, **more)


def message_new(name):
    return f"Pipeline {name} triggered successfully (async mode)"


def message_old(name):
    return f"Pipeline {name} already running - returning existing execution"


# ---- triggers and duplicates

def test_trigger_and_duplicate():
    """a new run is PENDING; a second trigger gets its id, RUNNING; both texts to the letter, with and without the prefix"""
    with Fleet() as f:
        f.put("default", {"slow": script(until(f.path("go")))})
        f.a.post("/pipelines/reload").expect(200)
        new = f.trigger("slow", {"trigger_by": "ada", "date": "2026-11-14", "n": 3, "deep": True})
        assert new == {"pipeline_logging_id": new["pipeline_logging_id"], "pipeline_id": "slow", "tenant_id": "default", "status": "PENDING",
                       "message": message_new("slow")}, new
        assert re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", new["pipeline_logging_id"]), new
        for path in ("/pipelines/run/slow", "/api/v1/pipelines/run/slow"):
            old = f.a.post(path).expect(200).json
            assert old == {**new, "status": "RUNNING", "message": message_old("slow")}, old
        run = f.wait(new["pipeline_logging_id"], "RUNNING")
        assert run["parameters"] == {"date": "2026-11-14", "n": 3, "deep": True} and run["trigger_by"] == "ada" and run["trigger_type"] == "api", run
        assert run["joins"] == 2
        f.open("go")
        done = f.wait(new["pipeline_logging_id"])
        assert done["status"] == "COMPLETED", done
        joined = lib.eventually(lambda: (j := f.get(new["pipeline_logging_id"])["joined"])[1:] and j, what="both joins in the history")
        assert [j["trigger_type"] for j in joined] == ["api", "api"], joined
        again = f.trigger("slow")
        assert again["status"] == "PENDING" and again["pipeline_logging_id"] != new["pipeline_logging_id"]  # R1: released on completion
        f.wait(again["pipeline_logging_id"])


def at_once(engine, n, servers):
    with Fleet(engine, n=servers) as f:
        f.put("default", {"hot": script(until(f.path("go")))})
        for server in f.all:
            server.post("/pipelines/reload").expect(200)
        clients = [f.all[i % servers].new_client() for i in range(n)]
        answers = lib.together(n, lambda i: clients[i].post("/pipelines/run/hot", {"trigger_by": f"t{i}"}).expect(200).json)
        ids = {a["pipeline_logging_id"] for a in answers}
        states = sorted(a["status"] for a in answers)
        assert len(ids) == 1, ids
        assert states == ["PENDING"] + ["RUNNING"] * (n - 1), states
        f.open("go")
        done = f.wait(ids.pop())
        assert done["status"] == "COMPLETED" and done["joins"] == n - 1, done
        assert len(f.a.get("/pipelines/runs").json["items"]) == 1
        for client in clients:
            client.close()


def test_without_pipelines():
    """A server of locks and queues starts no process and makes no folder for runs; it knows no pipeline."""
    with tempfile.TemporaryDirectory() as tmp, lib.Server(env={"TMPDIR": tmp}) as s:
        s.post("/pipelines/run/any").expect(404, "PIPELINE_NOT_FOUND")
        assert s.get("/pipelines").expect(200).json["items"] == []
        assert os.listdir(tmp) == [], os.listdir(tmp)
        with open(f"/proc/{s.process.pid}/task/{s.process.pid}/children", encoding="ascii") as f:
            assert f.read() == "", "it has started a process"


def test_ten_at_once():
    """ten at once: one PENDING, nine RUNNING, one id"""
    at_once("memory", TEN, 1)
    at_once("sqlite", TEN, 1)


def test_hundred_over_two_servers():
    """100 triggers over two servers on one SQLite file: one run"""
    at_once("sqlite", 100, 2)


def test_hundred_over_two_servers_postgres():
    """two servers on one PostgreSQL: 100 triggers, one run"""
    at_once("postgres", 100, 2)


def test_hundred_over_two_servers_redis():
    """the same on Redis"""
    at_once("redis", 100, 2)


def test_release_on_failure():
    """the lock is given back when a run fails; the error names the step and how it ended"""
    with Fleet(pipelines={"bad": [command("sh", "-c", "echo oops >&2; exit 3"), command("true", step="two", depends_on=["one"])]}) as f:
        done = f.run("bad")
        assert done["status"] == "FAILED" and "one" in done["error_message"] and "3" in done["error_message"], done
        assert [s["status"] for s in done["steps"]] == ["FAILED", "SKIPPED"], done["steps"]
        assert done["steps"][0]["exit_code"] == 3 and done["steps"][0]["attempts"][0]["status"] == "FAILED"
        assert f.a.get("/pipelines/locks").json["items"] == []
        assert f.trigger("bad")["status"] == "PENDING"


def test_tenants_are_apart():
    """the same pipeline of two tenants is two; another tenant's pipeline and run are 404"""
    with Fleet() as f:
        f.put("default", {"etl": script(until(f.path("go")))})
        f.put("acme", {"etl": script(until(f.path("go"))), "own": command("true")})
        f.a.post("/pipelines/reload").expect(200)
        acme = f.a.new_client(f.a.key_for("acme"))
        mine = f.trigger("etl")
        theirs = acme.post("/pipelines/run/etl").expect(200).json
        assert theirs["status"] == "PENDING" and theirs["tenant_id"] == "acme" and theirs["pipeline_logging_id"] != mine["pipeline_logging_id"]
        for method, path in (("GET", ""), ("DELETE", ""), ("GET", "/log"), ("GET", "/steps/one/output")):
            f.a.ask(method, f"/pipelines/runs/{theirs['pipeline_logging_id']}{path}").expect(404, "NOT_FOUND")
        unknown = f.a.post("/pipelines/run/nothing").expect(404, "PIPELINE_NOT_FOUND").json
        other = f.a.post("/pipelines/run/own").expect(404, "PIPELINE_NOT_FOUND").json
        assert json.dumps(unknown).replace("nothing", "own") == json.dumps(other)
        f.a.get("/pipelines/own").expect(404, "PIPELINE_NOT_FOUND")
        assert [p["pipeline_id"] for p in acme.get("/pipelines").json["items"]] == ["etl", "own"]
        assert [p["pipeline_id"] for p in f.a.get("/pipelines").json["items"]] == ["etl"]
        f.open("go")
        f.wait(mine["pipeline_logging_id"])
        lib.eventually(lambda: acme.get(f"/pipelines/runs/{theirs['pipeline_logging_id']}").json["status"] == "COMPLETED")


def test_bodies():
    """what a trigger may say; what it may not is named"""
    parameters = {"date": None, "n": "1"}
    with Fleet(pipelines={"p": pipeline("p", command("echo", "{date} {n} $x"), parameters=parameters)}) as f:
        for body, word in (({"date": "x", "list": [1]}, "list"), ({"date": "x", "deep": {}}, "deep"), ({"date": None}, "date"), ({"trigger_by": 1}, "trigger_by"),
                           ({"trigger_by": "x" * 257}, "trigger_by"), ({"n": 1}, "date"), ({"date": "x", "run_id": "y"}, "run_id"),
                           ({"date": "x", "a b": 1}, "a b")):
            answer = f.a.post("/pipelines/run/p", body).expect(400, "BAD_REQUEST")
            assert word in answer.json["error"]["message"], answer
        answer = f.a.post("/pipelines/run/p", {"date": "x" * 5000}).expect(413, "PARAMETERS_TOO_LARGE")
        assert "4096" in answer.json["error"]["message"], answer
        assert f.a.get("/pipelines/runs").json["items"] == []
        done = f.run("p", {"date": "2026-01-01; rm -rf /", "n": 2.5, "extra": "y"})
        assert done["status"] == "COMPLETED", done
        out = f.a.get(f"/pipelines/runs/{done['pipeline_logging_id']}/steps/one/output").json
        assert out["stdout"] == "2026-01-01; rm -rf / 2.5 $x\n", out


def test_idempotency_key():
    """an Idempotency-Key makes a repeated trigger one, and the answer the same, also when the run has ended"""
    with Fleet(pipelines={"p": command("true")}) as f:
        headers = {"Idempotency-Key": "trigger-1"}
        first = f.a.post("/pipelines/run/p", {"trigger_by": "x"}, headers=headers).expect(200)
        f.wait(first.json["pipeline_logging_id"])
        again = f.a.post("/pipelines/run/p", {"trigger_by": "x"}, headers=headers).expect(200)
        assert again.json == first.json and again.headers["Idempotent-Replayed"] == "true"
        other = f.a.post("/pipelines/run/p", {"trigger_by": "y"}, headers=headers).expect(422, "IDEMPOTENCY_MISMATCH")
        assert other.json["error"]["details"]["id"] == first.json["pipeline_logging_id"]
        assert len(f.a.get("/pipelines/runs").json["items"]) == 1


# ---- policies

def test_reject_and_retries():
    """reject tries again lock_acquisition_retries times, then 409 with who is in the way; a run that ends meanwhile is followed"""
    env = {"INTERLOCK_LOCK_ACQUISITION_RETRIES": "2", "INTERLOCK_LOCK_ACQUISITION_RETRY_DELAY_SECONDS": "1"}
    with Fleet(env=env) as f:
        f.put("default", {"one": pipeline("one", script(until(f.path("go"))), on_conflict="reject"),
                          "patient": pipeline("patient", script(until(f.path("go"))), on_conflict="reject", lock_acquisition_retries=100)})
        f.a.post("/pipelines/reload").expect(200)
        first = f.trigger("one")["pipeline_logging_id"]
        f.trigger("patient")
        began = time.monotonic()
        refused = f.a.post("/pipelines/run/one").expect(409, "LOCK_HELD")
        took = time.monotonic() - began
        assert 1.9 < took < 8 * lib.SLOW, took
        assert refused.json["error"]["details"]["pipeline_logging_id"] == first and "Retry-After" in refused.headers, refused
        assert refused.json["error"]["message"] == "Pipeline one is already running"
        text = f.a.get("/metrics").body.decode()
        labels = 'tenant_id="default",pipeline_id="one"'
        assert f'pipeline_lock_acquisitions_total{{{labels},result="conflict"}} 1\n' in text, "one trigger is one conflict"
        waited = float(re.search(r"pipeline_lock_wait_time_seconds_sum\{%s\} (\S+)" % labels, text).group(1))
        assert waited > 1.9, waited  # the wait is observed on a conflict, too
        results = []
        with f.a.new_client() as client:
            thread = threading.Thread(target=lambda: results.append(client.post("/pipelines/run/patient")))
            thread.start()
            lib.eventually(lambda: "interlock_http_waiters 1" in f.a.get("/metrics").body.decode(), what="the parked request")
            f.open("go")
            thread.join(30)
        assert results[0].expect(200).json["status"] == "PENDING"
        f.wait(results[0].json["pipeline_logging_id"])


def test_hang_up_while_parked():
    """a client that gives up while its trigger is kept starts nothing later; a server that is stopped answers it"""
    env = {"INTERLOCK_LOCK_ACQUISITION_RETRIES": "50", "INTERLOCK_LOCK_ACQUISITION_RETRY_DELAY_SECONDS": "1"}
    with Fleet(env=env) as f:
        f.put("default", {"one": pipeline("one", script(until(f.path("go"))), on_conflict="reject")})
        f.a.post("/pipelines/reload").expect(200)
        first = f.trigger("one")["pipeline_logging_id"]
        sock = f.a.socket()
        sock.sendall(f"POST /pipelines/run/one HTTP/1.1\r\nHost: x\r\nX-API-Key: {f.a.key}\r\nContent-Length: 0\r\n\r\n".encode())
        waiting = lambda n: f"interlock_http_waiters {n}\n" in f.a.get("/metrics").body.decode()
        lib.eventually(lambda: waiting(1), what="the parked request")
        sock.close()
        lib.eventually(lambda: waiting(0), what="its end")
        results = []
        with f.a.new_client() as client:
            thread = threading.Thread(target=lambda: results.append(client.post("/pipelines/run/one")))
            thread.start()
            lib.eventually(lambda: waiting(1), what="another one")
            f.a.send(signal.SIGTERM)
            f.a.wait_log("server.stopping")
            f.open("go")
            thread.join(30)
        assert results[0].status in (200, 409, 503), results
        assert f.a.stop() == 0
        f.a.start()
        f.wait(first)
        n = len(f.a.get("/pipelines/runs").json["items"])
        assert n == 1 + (results[0].status == 200), n


def test_skip_and_queue():
    """on_conflict skip joins without a note; queue waits its turn, one after the other"""
    with Fleet() as f:
        f.put("default", {"s": pipeline("s", script(until(f.path("go"))), on_conflict="skip"),
                          "q": pipeline("q", script(until(f.path("go"))), on_conflict="queue")})
        f.a.post("/pipelines/reload").expect(200)
        first = f.trigger("s")
        assert f.trigger("s")["pipeline_logging_id"] == first["pipeline_logging_id"]
        assert f.get(first["pipeline_logging_id"])["joins"] == 0
        runs = [f.trigger("q")["pipeline_logging_id"] for _ in range(3)]
        assert len(set(runs)) == 3
        f.wait(runs[0], "RUNNING")
        assert [f.get(run)["position"] for run in runs] == [None, 1, 2]
        f.open("go")
        ended = [f.wait(run) for run in runs]
        assert all(run["status"] == "COMPLETED" for run in ended)
        starts = [run["start_time"] for run in ended]
        assert starts == sorted(starts) and ended[0]["end_time"] <= ended[1]["start_time"] and ended[1]["end_time"] <= ended[2]["start_time"]


# ---- runs

def test_run_shows_everything():
    """fields, steps, attempts, output; found at once; ?wait tells changes"""
    steps = [command("sh", "-c", "echo out; echo err >&2", step="a"), command("true", step="b"), command("echo", "c", step="c", depends_on=["a", "b"])]
    with Fleet(pipelines={"p": pipeline("p", *steps, version="7")}) as f:
        run = f.trigger("p", {"trigger_by": "ada"})["pipeline_logging_id"]
        now = f.get(run)  # from the very moment
        assert now["status"] in ("PENDING", "RUNNING", "COMPLETED") and [s["step_id"] for s in now["steps"]] == ["a", "b", "c"], now
        while f.get(run, query="?wait=10s")["status"] in ("PENDING", "RUNNING"):
            pass
        done = f.get(run, query="?output=true")
        for field in ("pipeline_logging_id", "pipeline_id", "tenant_id", "status", "trigger_type", "trigger_by", "start_time", "end_time", "duration_ms", "stage",
                      "progress", "error_message", "steps", "fence"):
            assert field in done, field
        assert (done["status"], done["version"], done["progress"], done["error_message"]) == ("COMPLETED", "7", 100, None), done
        assert done["fence"] > 0 and done["duration_ms"] >= 0 and done["node"] and done["created_at"] <= done["start_time"] <= done["end_time"]
        a, b, c = done["steps"]
        assert (a["stdout"], a["stderr"], a["level"], c["level"]) == ("out\n", "err\n", 1, 2)
        assert b["stdout"] == "" and c["start_time"] >= a["end_time"] and c["attempts"][0]["exit_code"] == 0
        assert "stdout" not in f.get(run)["steps"][0]
        log = f.a.get(f"/pipelines/runs/{run}/log").expect(200).json
        assert log["end"] and "a | out\n" in log["text"] and "a ! err\n" in log["text"] and "c | c\n" in log["text"], log
        assert f.a.get(f"/pipelines/runs/{run}/log?offset={log['next_offset']}").json["text"] == ""
        one = f.a.get(f"/pipelines/runs/{run}/steps/a/output?attempt=1").expect(200).json
        assert one["stdout"] == "out\n" and one["stdout_bytes"] == 4
        f.a.get(f"/pipelines/runs/{run}/steps/a/output?attempt=2").expect(404, "NOT_FOUND")
        f.a.get(f"/pipelines/runs/{run}/steps/zzz/output").expect(404, "NOT_FOUND")
        f.a.get("/pipelines/runs/nothing").expect(404, "NOT_FOUND")
        plain = f.a.post("/api/v1/runs", {"key": "event:1"}).expect(201).json["id"]
        f.a.get(f"/pipelines/runs/{plain}").expect(404, "NOT_FOUND")  # a run, but not of a pipeline
        f.a.delete(f"/pipelines/runs/{plain}").expect(404, "NOT_FOUND")


def test_retries_of_a_step():
    """attempts are told one by one; the last one counts"""
    with Fleet() as f:
        text = f'echo x >> {f.quoted("tries")}; [ $(wc -l < {f.quoted("tries")}) -ge 3 ]'
        f.put("default", {"flaky": script(text, retries=3, retry_delay="50ms")})
        f.a.post("/pipelines/reload").expect(200)
        done = f.run("flaky")
        assert done["status"] == "COMPLETED" and done["steps"][0]["attempt"] == 3, done
        assert [a["status"] for a in done["steps"][0]["attempts"]] == ["FAILED", "FAILED", "COMPLETED"]


def test_lists():
    """newest first, limit 1..100 and 20 by default, cursor, filters; COMPLETE is COMPLETED"""
    with Fleet(pipelines={"good": command("true"), "bad": command("false")}) as f:
        runs = []
        for i in range(25):
            run = f.trigger("good" if i % 5 else "bad")["pipeline_logging_id"]
            runs.insert(0, run)
            f.wait(run)
        ids = lambda query: [r["pipeline_logging_id"] for r in f.a.get("/pipelines/runs" + query).expect(200).json["items"]]
        assert ids("") == runs[:20]
        assert ids("?limit=100") == runs
        page = f.a.get("/pipelines/runs?limit=7").json
        seen = [r["pipeline_logging_id"] for r in page["items"]]
        while page["next"]:
            page = f.a.get(f"/pipelines/runs?limit=7&cursor={page['next']}").json
            seen += [r["pipeline_logging_id"] for r in page["items"]]
        assert seen == runs
        bad = ids("?pipeline_id=bad&limit=100")
        assert len(bad) == 5 and bad == ids("?status=FAILED&limit=100")
        assert len(ids("?status=COMPLETE&limit=100")) == 20 == len(ids("?status=COMPLETED&limit=100"))
        assert ids("?status=COMPLETE,FAILED&limit=100") == runs and ids("?status=RUNNING") == [] and ids("?pipeline_id=none") == []
        for query in ("?limit=0", "?limit=101", "?status=NONSENSE", "?cursor=x", "?nonsense=1"):
            f.a.get("/pipelines/runs" + query).expect(400, "BAD_REQUEST")


def test_pipelines_are_shown():
    """the configured ones with last run and next schedule; pages"""
    files = {f"p{i:02}": command("true") for i in range(30)}
    files["daily"] = pipeline("daily", command("true"), schedule="0 6 * * *", description="every day", parameters={"a": "1", "b": None})
    with Fleet(pipelines=files) as f:
        done = f.run("daily", {"b": "x"})
        one = f.a.get("/pipelines/daily").expect(200).json
        assert one["schedule"] == "0 6 * * *" and re.fullmatch(r"\d{4}-\d\d-\d\dT06:00:00.000Z", one["next_run_at"]), one
        assert one["last_run"]["pipeline_logging_id"] == done["pipeline_logging_id"] and one["last_run"]["status"] == "COMPLETED"
        assert {p["name"]: p["required"] for p in one["parameters"]} == {"a": False, "b": True}
        assert one["steps"] == [{"step_id": "one", "type": "command", "level": 1, "depends_on": [], "timeout_ms": 600000, "retries": 0, "on_failure": "stop"}]
        all_of = f.a.get("/pipelines").json
        assert len(all_of["items"]) == 31 and all_of["next"] is None
        page, seen = f.a.get("/pipelines?limit=9").json, []
        seen += [p["pipeline_id"] for p in page["items"]]
        while page["next"]:
            page = f.a.get(f"/pipelines?limit=9&cursor={page['next']}").json
            seen += [p["pipeline_id"] for p in page["items"]]
        assert seen == sorted(files) and len(seen) == 31
        f.a.get("/pipelines/nothing").expect(404, "PIPELINE_NOT_FOUND")
        for query in ("?limit=0", "?limit=101"):
            f.a.get("/pipelines" + query).expect(400)
        narrow = f.a.new_client(f.a.key_for("default", "write", prefix="pipeline:p1"))
        assert [p["pipeline_id"] for p in narrow.get("/pipelines").json["items"]] == [f"p1{i}" for i in range(10)]
        assert [p["pipeline_id"] for p in narrow.get("/pipelines?limit=3&cursor=p12").json["items"]] == ["p13", "p14", "p15"]
        narrow.post("/pipelines/run/daily", {"b": "x"}).expect(404, "PIPELINE_NOT_FOUND")
        narrow.get(f"/pipelines/runs/{done['pipeline_logging_id']}").expect(404, "NOT_FOUND")
        assert narrow.get("/pipelines/runs").json["items"] == []
        narrow.post("/pipelines/run/p15").expect(200)
        elsewhere = f.a.new_client(f.a.key_for("default", "read", prefix="jobs:"))
        for path in ("/pipelines", "/pipelines/runs", "/pipelines/locks"):
            assert elsewhere.get(path).expect(200).json["items"] == [], path


def test_cancel():
    """a PENDING run ends at once; a RUNNING one has its processes stopped, grandchildren too; one that has ended shows how"""
    with Fleet() as f:
        mark = f"mark-{f.name}"
        f.put("default", {"slow": pipeline("slow", command("sh", "-c", f"python3 -c 'import time; time.sleep(1000)' {mark} & while :; do sleep 0.1; done", mark),
                                           on_conflict="queue")})
        f.a.post("/pipelines/reload").expect(200)
        first, second = (f.trigger("slow")["pipeline_logging_id"] for _ in range(2))
        f.wait(first, "RUNNING")
        lib.eventually(lambda: len(marked(mark)) >= 2, what="its processes")
        gone = f.a.delete(f"/pipelines/runs/{second}", body={"reason": "not needed"}).expect(200).json
        assert gone["status"] == "CANCELLED" and gone["error_message"] == "not needed", gone
        assert "reason" in f.a.delete(f"/pipelines/runs/{first}", body={"reason": ""}).expect(400, "BAD_REQUEST").json["error"]["message"]
        asked = f.a.delete(f"/pipelines/runs/{first}").expect(200).json
        assert asked["status"] == "CANCELLED" or asked["cancelling"], asked
        done = f.wait(first)
        assert done["status"] == "CANCELLED" and done["error_message"] == "cancelled through the API", done
        assert marked(mark) == [], "processes that go on"
        assert done["steps"][0]["status"] == "CANCELLED", done["steps"]
        again = f.a.delete(f"/pipelines/runs/{first}").expect(200).json
        assert again["status"] == "CANCELLED" and again["end_time"] == done["end_time"]


def test_force_release():
    """DELETE /admin/locks cancels the run and opens the key once its processes are gone; audited; with and without prefix"""
    with Fleet() as f:
        mark = f"mark-{f.name}"
        f.put("default", {"stuck": command("sh", "-c", "while :; do sleep 0.1; done", mark)})
        f.a.post("/pipelines/reload").expect(200)
        run = f.trigger("stuck")["pipeline_logging_id"]
        f.wait(run, "RUNNING")
        lock = f.a.get("/pipelines/locks").expect(200).json["items"][0]
        assert lock["pipeline_logging_id"] == run and lock["pipeline_id"] == "stuck" and lock["tenant_id"] == "default" and lock["fence"] > 0, lock
        assert 0 <= lock["ttl_used"] < 1 and lock["age_ms"] >= 0 and lock["ttl_ms"] == LEASE_S * 1000 and not lock["expiring"] and lock["expires_at"] > lock["locked_at"]
        f.a.delete("/admin/locks/default/stuck", body={"reason": "stuck for hours"}).expect(200)
        done = f.wait(run)
        assert done["status"] == "CANCELLED" and "stuck for hours" in done["error_message"], done
        assert marked(mark) == []
        lib.eventually(lambda: f.a.get("/pipelines/locks").json["items"] == [], what="the key is open")
        acts = [a["action"] for a in f.a.get("/admin/audit").json["items"]]
        assert "lock.break" in acts and "run.cancel" in acts, acts
        f.a.delete("/api/v1/admin/locks/default/stuck", body={"reason": "again"}).expect(404, "NOT_HELD")
        row = f.a.wait_log(r"pipeline\.lock_broken", 20)
        assert run in row and '"lock_hold_ms":' in row, row
        f.a.post("/pipelines/run/stuck").expect(200)
        lib.eventually(lambda: f.a.get("/pipelines/locks").json["items"], what="the next run")
        f.a.delete("/admin/locks/default/stuck", body={"reason": "at once", "now": True}).expect(200)
        lib.eventually(lambda: sum("pipeline.lock_broken" in line for line in list(f.a.lines)) == 2, 20, "the second one")
        assert not [line for line in f.a.lines if "lock_expired" in line]
        assert 'pipeline_lock_expirations_total{tenant_id="default",pipeline_id="stuck"} 0' in f.a.get("/metrics").body.decode()


def test_a_long_run_is_never_doubled():
    """a run of three times its lease is renewed and never doubled; its renewals are shown"""
    with Fleet(env={"INTERLOCK_PIPELINE_TTL": "4s"}, n=2) as f:
        f.put("default", {"long": script(f"echo x >> {f.quoted('starts')}; {until(f.path('go'))}")})
        for server in f.all:
            server.post("/pipelines/reload").expect(200)
        run = f.trigger("long")["pipeline_logging_id"]
        ended = None
        while ended is None:
            for server in f.all:
                got = server.post("/pipelines/run/long").expect(200).json
                now = f.get(run)
                if now["status"] not in ("PENDING", "RUNNING"):
                    ended = now
                    break
                assert got["pipeline_logging_id"] == run, got
                if now["renewals"] >= 9:  # three in each lease
                    f.open("go")
            time.sleep(0.2)
        assert ended["status"] == "COMPLETED" and ended["renewals"] >= 9, ended


def test_expiring_locks():
    """a run that holds its key for longer than the threshold of lock_timeout_seconds is logged, counted and shown first, long before its lease ends"""
    env = {"INTERLOCK_LOCK_EXPIRATION_ALERT_THRESHOLD": "0.5", "INTERLOCK_PIPELINE_LOCK_TIMEOUT_SECONDS": "2"}
    with Fleet(env=env) as f:
        f.put("default", {"z-late": script(until(f.path("go"))), "a-fine": pipeline("a-fine", script(until(f.path("go"))), lock_timeout_seconds=600)})
        f.a.post("/pipelines/reload").expect(200)
        run = f.trigger("z-late")["pipeline_logging_id"]
        fine = f.trigger("a-fine")["pipeline_logging_id"]
        row = f.a.wait_log(r"pipeline\.lock_expiring", 20)
        assert run in row and "lock_timeout_seconds" in row, row
        f.wait(fine, "RUNNING")
        locks = f.a.get("/pipelines/locks").expect(200).json["items"]
        assert [(lock["pipeline_id"], lock["expiring"], lock["lock_timeout_ms"]) for lock in locks] == [("z-late", True, 2000), ("a-fine", False, 600000)], locks
        assert locks[0]["ttl_used"] >= 0.5 and locks[0]["ttl_ms"] == LEASE_S * 1000 and not locks[0]["not_renewed"], locks
        lib.eventually(lambda: re.search(r"^interlock_runner_locks_expiring 1$", f.a.get("/metrics").body.decode(), re.M), 20, "the count")
        assert f.get(run)["status"] == "RUNNING"  # it ends nothing
        assert not [line for line in f.a.lines if "lease_not_renewed" in line]
        f.open("go")
        f.wait(run)


def test_a_lease_that_is_not_renewed():
    """a lease that was not renewed for 0.8 of its TTL is another warning, and first on the page"""
    with Fleet() as f:
        f.a.post("/api/v1/locks/acquire", {"key": "pipeline:a-fresh", "holder": "h", "ttl_ms": 600000}).expect(200)

        def late():
            # another one if it has ended before anybody looked
            taken = f.a.post("/api/v1/locks/acquire", {"key": "pipeline:z-late", "ttl_ms": 5000})
            assert taken.status in (200, 409), taken
            locks = f.a.get("/pipelines/locks").expect(200).json["items"]
            return locks if locks[0]["not_renewed"] else None
        locks = lib.eventually(late, 30, "0.8 of its time", pause=0.1)
        assert [(lock["pipeline_id"], lock["not_renewed"], lock["expiring"]) for lock in locks] == [("z-late", True, False), ("a-fresh", False, False)], locks


# ---- limits

def test_rate_limits():
    """triggers per minute and per hour, over all servers: 429 RATE_LIMITED with Retry-After; duplicates count, too; a tenant's own limit counts"""
    with Fleet(pipelines={"p": command("true")}, env={"INTERLOCK_LIMIT_TRIGGERS_PER_MINUTE": "5"}, n=2) as f:
        for i in range(5):
            f.trigger("p", server=f.all[i % 2])
        f.b.post("/pipelines/run/p").expect(429, "RATE_LIMITED")
        refused = f.a.post("/pipelines/run/p").expect(429, "RATE_LIMITED")
        assert 30 <= int(refused.headers["Retry-After"]) <= 62 and refused.json["error"]["details"]["triggers_per_minute"] == 5, refused
        f.a.get("/pipelines/runs").expect(200)  # only triggers are limited
        f.put("acme", {"p": command("true")})
        f.a.post("/pipelines/reload").expect(200)
        acme = f.a.new_client(f.a.key_for("acme"))
        f.a.put("/admin/tenants/acme", {"limits": {"triggers_per_minute": 1000, "triggers_per_hour": 7}}).expect(200)
        for _ in range(7):  # the first request of a key finds its tenant's own limits
            acme.post("/pipelines/run/p").expect(200)
        hour = acme.post("/pipelines/run/p").expect(429, "RATE_LIMITED")
        assert hour.json["error"]["details"]["triggers_per_hour"] == 7 and int(hour.headers["Retry-After"]) > 60, hour
        f.a.post("/pipelines/run/p").expect(429, "RATE_LIMITED")  # each tenant has its own
        f.put("beta", {"p": pipeline("p", script(until(f.path("go"))), on_conflict="reject", lock_acquisition_retries=2,
                                     lock_acquisition_retry_delay_seconds=1)})
        f.a.post("/pipelines/reload").expect(200)
        f.a.key_for("beta")
        f.a.put("/admin/tenants/beta", {"limits": {"triggers_per_minute": 3}}).expect(200)
        beta = f.a.new_client(f.a.key_for("beta"))
        beta.post("/pipelines/run/p").expect(200)
        for _ in range(2):  # a trigger that tries again counts once
            beta.post("/pipelines/run/p").expect(409, "LOCK_HELD")
        beta.post("/pipelines/run/p").expect(429, "RATE_LIMITED")
        f.a.put("/admin/tenants/default", {"limits": {"runs": 51}}).expect(400, "BAD_REQUEST")


def quota_race(engine):
    """20 triggers of 20 pipelines over two servers, limit 5: exactly five runs."""
    with Fleet(engine, n=2, env={"INTERLOCK_LIMIT_RUNS": "5"}) as f:
        f.put("default", {f"p{i}": script(until(f.path("go"))) for i in range(20)})
        for server in f.all:
            server.post("/pipelines/reload").expect(200)
        clients = [f.all[i % 2].new_client() for i in range(20)]
        answers = lib.together(20, lambda i: clients[i].post(f"/pipelines/run/p{i}"))
        good = [a.json["pipeline_logging_id"] for a in answers if a.status == 200]
        assert len(good) == 5, [a.status for a in answers]
        for answer in answers:
            if answer.status != 200:
                answer.expect(429, "CONCURRENT_LIMIT_EXCEEDED")
                assert "Retry-After" in answer.headers and answer.json["error"]["details"]["limit"] == 5
        running = [r for r in f.a.get("/pipelines/runs?status=PENDING,RUNNING").json["items"]]
        assert len(running) == 5
        f.open("go")
        for run in good:
            f.wait(run)
        assert clients[0].post("/pipelines/run/p19").status == 200  # what has ended does not count
        for client in clients:
            client.close()


def test_quota_race_sqlite():
    """concurrent runs are reserved atomically, over two servers on SQLite"""
    quota_race("sqlite")


def test_quota_race_postgres():
    """... on PostgreSQL"""
    quota_race("postgres")


def test_quota_race_redis():
    """... on Redis"""
    quota_race("redis")


def test_daily_quota():
    """runs per day: 429 QUOTA_EXCEEDED until midnight UTC; ended runs count"""
    with Fleet(pipelines={"p": command("true")}) as f:
        f.a.put("/admin/tenants/default", {"limits": {"runs_per_day": 3}}).expect(200)
        def limited():
            answer = f.a.post("/pipelines/run/p")
            if answer.status == 200:
                f.wait(answer.json["pipeline_logging_id"])
            return answer.status == 429
        lib.eventually(limited, what="the day's limit")  # a limit that was changed counts within a second
        refused = f.a.post("/pipelines/run/p").expect(429, "QUOTA_EXCEEDED")
        assert 0 < int(refused.headers["Retry-After"]) <= 86400 and refused.json["error"]["details"]["limit"] == 3, refused
        f.a.put("/admin/tenants/default", {"limits": {"runs_per_day": 0}}).expect(200)
        lib.eventually(lambda: f.a.post("/pipelines/run/p").status == 200, what="no limit")


def test_stored_bytes():
    """runs, and the history that they leave, count against the bytes of a tenant: 507"""
    with Fleet(pipelines={"p": command("true")}) as f:
        f.wait(f.a.post("/pipelines/run/p").expect(200).json["pipeline_logging_id"])
        f.a.put("/admin/tenants/default", {"limits": {"bytes": 1}}).expect(200)
        full = lambda: f.a.post("/pipelines/run/p").status == 507
        lib.eventually(full, 20, what="the measurement")
        f.a.post("/pipelines/run/p").expect(507, "STORAGE_QUOTA_EXCEEDED")


# ---- files

def test_reload():
    """a bad file is refused with file, line, field and reason; its last good version goes on; the others change; SIGHUP does it, too"""
    with Fleet(pipelines={"good": command("echo", "1"), "gone": command("true")}) as f:
        f.put("default", {"good": command("echo", "2"), "new": command("true"), "gone": "pipeline_id: gone\nsteps:\n- step_id: a\n  type: nonsense\n"})
        loaded = f.a.post("/pipelines/reload").expect(200).json
        assert (loaded["pipelines"], loaded["bad_files"], loaded["kept"]) == (3, 1, 1), loaded
        text = loaded["problems"][0]["message"]
        assert "gone.yml:4" in text and "type" in text and "nonsense" in text, text
        f.a.wait_log(r"pipelines.file_refused.*gone.yml:4")
        assert f.run("gone")["status"] == "COMPLETED" and f.run("new")["status"] == "COMPLETED"
        run = f.run("good")
        assert f.a.get(f"/pipelines/runs/{run['pipeline_logging_id']}/steps/one/output").json["stdout"] == "2\n"
        assert "interlock_runner_bad_files 1\n" in f.a.get("/metrics").body.decode()
        os.unlink(f.dir + "/default/gone.yml")
        f.put("default", {"later": command("true")})
        f.a.send(signal.SIGHUP)
        lib.eventually(lambda: f.a.get("/pipelines/later").status == 200, what="the reload")
        f.a.get("/pipelines/gone").expect(404, "PIPELINE_NOT_FOUND")
        reader = f.a.new_client(f.a.key_for("default", "write"))
        reader.post("/pipelines/reload").expect(403, "FORBIDDEN")
        f.put("acme", {"theirs": "nonsense"})
        operator = f.a.new_client(f.a.key_for("default", "operator"))
        answer = operator.post("/pipelines/reload").expect(200).json
        assert answer["bad_files"] == 1 and answer["problems"] == [], answer  # names of others' files are theirs
        assert "theirs.yml" in f.a.post("/pipelines/reload").json["problems"][0]["message"]
        assert any(a["action"] == "pipelines.reload" for a in f.a.get("/admin/audit").json["items"])


def test_reload_that_waits():
    """a reload that waits for a thread while SIGHUP changes the settings does not bring back the old ones"""
    with Fleet(start=False) as f:
        def configure(text):
            with open(f.path("config.yml"), "w", encoding="utf-8") as file:
                file.write(text)

        def scrape():
            return f.a.get("/metrics").body.decode()
        threads, answers = [], []

        def ask(path):
            def work():
                with f.a.new_client() as client:
                    answers.append(client.post(path))
            threads.append(threading.Thread(target=work))
            threads[-1].start()
        hang = {"type": "command", "shell": True, "timeout": "60s", "run": f"{until(f.path('go'))}; echo outside"}
        names = [f"hangs{i}" for i in range(16)]  # a tenant's share of the threads
        f.put("default", {name: pipeline(name, command("true"), preflight=hang) for name in names})
        f.put("default", {"p": command("true")})
        configure("lock_metrics_enabled: true\n")
        f.args += ["--config", f.path("config.yml")]
        f.add()
        try:
            for name in names:
                ask("/pipelines/run/" + name)
            lib.eventually(lambda: "interlock_http_pool_busy 16\n" in scrape(), what="probes on all threads")
            ask("/pipelines/reload")
            lib.eventually(lambda: "interlock_http_pool_waiting 1\n" in scrape(), what="a reload that waits")
            configure("lock_metrics_enabled: false\n")
            f.a.send(signal.SIGHUP)
            lib.eventually(lambda: f.a.log.count('"pipelines.loaded"') == 2, what="the reload of SIGHUP")
        finally:
            f.open("go")
            for thread in threads:
                thread.join()
        assert [a.status for a in answers] == [200] * 17, answers
        f.run("p")
        assert 'pipeline_id="p"' not in scrape(), scrape()


def test_reload_does_not_touch_runs():
    """a run goes on with the pipeline that it began with; one that waits takes the new one"""
    with Fleet() as f:
        steps = [script(until(f.path("go")), step="one"), command("echo", "old", step="two", depends_on=["one"])]
        f.put("default", {"p": pipeline("p", *steps)})
        f.a.post("/pipelines/reload").expect(200)
        run = f.trigger("p")["pipeline_logging_id"]
        f.wait(run, "RUNNING")
        f.put("default", {"p": command("echo", "new", step="other")})
        f.a.post("/pipelines/reload").expect(200)
        f.open("go")
        done = f.wait(run)
        assert [s["step_id"] for s in done["steps"]] == ["one", "two"] and done["status"] == "COMPLETED", done
        assert [s["step_id"] for s in f.run("p")["steps"]] == ["other"]


# ---- the probe

def test_preflight_command():
    """running outside is held, with its id; unknown starts nothing; not asked while a run of ours is live"""
    with Fleet() as f:
        probe = (f"echo asked >> {f.quoted('asked')}; cat {f.quoted('id')} 2>/dev/null && exit 0; "
                 f"exit $(cat {f.quoted('code')})")
        for policy in ("join", "reject", "queue"):
            f.put("default", {policy: pipeline(policy, script(until(f.path("go"))), on_conflict=policy, lock_acquisition_retries=0,
                                               preflight={"type": "command", "shell": True, "run": probe})})
        loaded = f.a.post("/pipelines/reload").expect(200).json
        assert loaded["bad_files"] == 0, loaded
        with open(f.path("id"), "w", encoding="utf-8") as file:
            file.write("job-4711\nmore\n")
        held = f.trigger("join")
        assert held == {"pipeline_logging_id": "job-4711", "pipeline_id": "join", "tenant_id": "default", "status": "RUNNING", "message": message_old("join")}, held
        for policy in ("reject", "queue"):
            refused = f.a.post(f"/pipelines/run/{policy}").expect(409, "LOCK_HELD")
            assert refused.json["error"]["details"]["holder"] == "job-4711", refused
        os.unlink(f.path("id"))
        with open(f.path("code"), "w", encoding="utf-8") as file:
            file.write("7")
        failed = f.a.post("/pipelines/run/join").expect(503, "PREFLIGHT_FAILED")
        assert "7" in failed.json["error"]["message"], failed
        assert f.a.get("/pipelines/runs").json["items"] == []
        with open(f.path("code"), "w", encoding="utf-8") as file:
            file.write("1")
        run = f.trigger("join")
        assert run["status"] == "PENDING"
        f.wait(run["pipeline_logging_id"], "RUNNING")
        asked = os.path.getsize(f.path("asked"))
        assert f.trigger("join")["pipeline_logging_id"] == run["pipeline_logging_id"]
        assert os.path.getsize(f.path("asked")) == asked, "the probe was asked while a run of ours was live"
        f.open("go")
        f.wait(run["pipeline_logging_id"])


def test_probes_of_tenants():
    """probes of one tenant that hang leave threads for those of another; one probe of a pipeline at a time"""
    with Fleet() as f:
        def hang(name):
            mine = f.quoted("probing-" + name)
            return {"type": "command", "shell": True, "timeout": "60s",
                    "run": f"mkdir {mine} || touch {f.quoted('doubled')}; echo x >> {f.quoted('asked')}; {until(f.path('go'))}; rmdir {mine}; echo outside"}
        names = [f"p{i}" for i in range(40)]
        f.put("default", {name: pipeline(name, command("true"), preflight=hang(name)) for name in names})
        f.put("acme", {"quick": pipeline("quick", command("true"), preflight={
            "type": "command", "shell": True, "run": "exit 1"})})
        assert f.a.post("/pipelines/reload").expect(200).json["bad_files"] == 0
        acme = f.a.new_client(f.a.key_for("acme"), timeout=30)
        answers = {}

        def ask(i):
            with f.a.new_client() as client:
                answers[i] = client.post(f"/pipelines/run/{names[max(i - 9, 0)]}").expect(200).json
        threads = [threading.Thread(target=ask, args=(i,)) for i in range(49)]  # the first ten: of p0
        for thread in threads:
            thread.start()

        def asked():
            try:
                with open(f.path("asked"), encoding="ascii") as file:
                    return len(file.readlines())
            except FileNotFoundError:
                return 0
        lib.eventually(lambda: asked() >= 8, 30, "probes of one tenant")
        try:
            run = acme.post("/pipelines/run/quick").expect(200).json
            assert run["status"] == "PENDING" and answers == {}, (run, answers)
        finally:
            f.open("go")
            for thread in threads:
                thread.join()
        assert len(answers) == 49 and {a["pipeline_logging_id"] for a in answers.values()} == {"outside"}, answers
        assert 40 <= asked() <= 49 and not os.path.exists(f.path("doubled")), asked()  # a trigger that comes late asks again
        acme.close()


class Probe(http.server.BaseHTTPRequestHandler):
    answer = (200, b"{}")

    def do_GET(self):  # pylint: disable=invalid-name
        status, body = Probe.answer
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def test_preflight_http():
    """the same over HTTP"""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Probe)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        with Fleet() as f:
            url = f"http://127.0.0.1:{server.server_port}/job"
            f.put("default", {"p": pipeline("p", command("true"), preflight={"type": "http", "url": url, "timeout": "30s"})})
            assert f.a.post("/pipelines/reload").expect(200).json["bad_files"] == 0
            Probe.answer = (200, b'{"running":true,"id":"ext-1"}')
            assert f.trigger("p")["pipeline_logging_id"] == "ext-1"
            Probe.answer = (500, b"oops")
            f.a.post("/pipelines/run/p").expect(503, "PREFLIGHT_FAILED")
            Probe.answer = (200, b"nonsense")
            f.a.post("/pipelines/run/p").expect(503, "PREFLIGHT_FAILED")
            Probe.answer = (404, b"")
            assert f.run("p")["status"] == "COMPLETED"
            Probe.answer = (200, b'{"running":false}')
            assert f.run("p")["status"] == "COMPLETED"
    finally:
        server.shutdown()


# ---- metrics, log, events

def test_metrics():
    """labels are those of configured pipelines, everything else is `other`; success, conflict, wait, duration"""
    with Fleet() as f:
        f.put("default", {"m": pipeline("m", script(until(f.path("go"))), lock_timeout_seconds=600), "quiet": pipeline("quiet", command("true"), lock_metrics_enabled=False)})
        f.a.post("/pipelines/reload").expect(200)
        run = f.trigger("m")["pipeline_logging_id"]
        f.wait(run, "RUNNING")
        f.trigger("m")
        f.run("quiet")
        for i in range(3):
            f.a.post("/api/v1/locks/acquire", {"key": f"pipeline:unknown{i}", "holder": "h"}).expect(200)

        def scrape():
            return f.a.get("/metrics").body.decode()
        labels = '{tenant_id="default",pipeline_id="m"'
        lib.eventually(lambda: f"pipeline_active_locks{labels}}} 1\n" in scrape() and f"pipeline_running_count{labels}}} 1\n" in scrape(), 20, "the gauges")
        text = scrape()
        assert f'pipeline_lock_acquisitions_total{labels},result="success"}} 1\n' in text and f'pipeline_lock_acquisitions_total{labels},result="conflict"}} 1\n' in text
        assert f"pipeline_lock_timeout_seconds{labels}}} 600\n" in text
        age = float(re.search(r"pipeline_lock_age_seconds\{tenant_id=\"default\",pipeline_id=\"m\"\} (\S+)", text).group(1))
        assert 0 <= age < 600
        assert 'pipeline_id="other",result="success"} 3\n' in text and "unknown" not in text and 'pipeline_id="quiet"' not in text, text
        assert "interlock_runner_running 1\n" in text and "interlock_runner_pipelines 2\n" in text
        f.open("go")
        f.wait(run)
        lib.eventually(lambda: f"pipeline_lock_duration_seconds_count{labels}}} 1\n" in scrape(), what="the duration")
        lib.eventually(lambda: "interlock_runner_completed_total 2\n" in scrape(), what="both counted")
    with Fleet(pipelines={"p": command("true")}, env={"INTERLOCK_LOCK_METRICS_ENABLED": "false"}) as f:
        f.run("p")
        f.a.post("/api/v1/locks/acquire", {"key": "pipeline:unknown", "holder": "h"}).expect(200)
        text = f.a.get("/metrics").body.decode()
        assert "pipeline_id=" not in text and "interlock_runner_started_total 1\n" in text


def test_log_lines():
    """acquire, conflict, release, break, each with tenant, pipeline, run, wait or hold"""
    with Fleet() as f:
        f.put("default", {"l": script(until(f.path("go")))})
        f.a.post("/pipelines/reload").expect(200)
        run = f.trigger("l")["pipeline_logging_id"]
        f.trigger("l")
        f.wait(run, "RUNNING")
        f.open("go")
        f.wait(run)

        def line(event):
            found = json.loads(f.a.wait_log(f'"event":"{event}"'))
            assert (found["tenant_id"], found["pipeline_id"], found["run_id"]) == ("default", "l", run), found
            return found
        assert line("pipeline.lock_acquired")["lock_wait_ms"] >= 0
        assert line("lock.conflict")["lock_wait_ms"] >= 0
        assert line("pipeline.lock_released")["lock_hold_ms"] > 0
        assert line("run.started")["fence"] > 0
        assert line("run.ended")


def test_events():
    """what happens to runs is told to those who watch, on every server; a step with on_failure: alert is an event"""
    with Fleet(n=2) as f:
        f.put("default", {"e": [command("false", on_failure="alert"), command("true", step="two")]})
        for server in f.all:
            server.post("/pipelines/reload").expect(200)
        streams = [Events(server, "?types=run") for server in f.all]
        run = f.trigger("e")["pipeline_logging_id"]
        done = f.wait(run)
        assert done["status"] == "COMPLETED" and done["steps"][0]["status"] == "WARNING", done
        for events in streams:
            seen = set()
            while not {"queued", "started", "step_alert", "finished"} <= seen:
                kind, data = events.next(20)
                if kind == "run" and data["id"] == run:
                    assert data["name"] == "pipeline:e"
                    seen.add(data["what"])
            events.close()
        f.a.wait_log(r"run\.step_alert.*\"step_id\":\"one\"")


# ---- the store is away

def test_store_down():
    """503 STORE_UNAVAILABLE "Lock manager unavailable", and nothing starts"""
    # a Redis of our own, which can be ended
    folder = tempfile.mkdtemp(prefix="interlock-redis-")
    redis = subprocess.Popen(["redis-server", "--port", "0", "--unixsocket", folder + "/s", "--save", "", "--appendonly", "no", "--dir", folder],
                             stdout=subprocess.DEVNULL)
    try:
        lib.eventually(lambda: os.path.exists(folder + "/s"), what="Redis")
        with Fleet("sqlite", {"p": command("true")}, start=False) as f:
            f.store = f"redis+unix://{folder}/s?prefix=x"
            f.args += ["--data", f.data]
            f.add(env={"INTERLOCK_STORE_TIMEOUT": "5s"})
            assert f.run("p")["status"] == "COMPLETED"
            redis.kill()
            redis.wait()
            down = f.a.post("/pipelines/run/p").expect(503, "STORE_UNAVAILABLE")
            assert down.json["error"]["message"] == "Lock manager unavailable", down
            f.a.get("/pipelines/runs").expect(503, "STORE_UNAVAILABLE")
    finally:
        redis.kill()
        redis.wait()
        shutil.rmtree(folder, ignore_errors=True)


# ---- shutdown

def test_graceful_shutdown():
    """running runs may finish within runs_shutdown; then INTERRUPTED, and released"""
    with Fleet(env={"INTERLOCK_RUNS_SHUTDOWN": "20s"}) as f:
        f.put("default", {"ends": script(f"touch {f.quoted('up')}; {until(f.path('go'))}")})
        f.a.post("/pipelines/reload").expect(200)
        run = f.trigger("ends")["pipeline_logging_id"]
        lib.eventually(lambda: os.path.exists(f.path("up")), what="its start")
        f.a.send(signal.SIGTERM)
        f.a.wait_log("server.stopping")
        f.open("go")
        assert f.a.stop() == 0
        f.a.start()
        assert f.get(run)["status"] == "COMPLETED"
    with Fleet(env={"INTERLOCK_RUNS_SHUTDOWN": "500ms"}) as f:
        mark = f"mark-{f.name}"
        f.put("default", {"never": command("sh", "-c", f"touch {f.quoted('up')}; while :; do sleep 0.1; done", mark)})
        f.a.post("/pipelines/reload").expect(200)
        run = f.trigger("never")["pipeline_logging_id"]
        lib.eventually(lambda: os.path.exists(f.path("up")), what="its start")
        assert f.a.stop() == 0
        assert marked(mark) == []
        assert "run.ended" in f.a.log and f.a.log.rindex("run.ended") < f.a.log.rindex("server.stopped"), f.a.log[-2000:]
        f.a.start()
        done = f.get(run)
        assert done["status"] == "INTERRUPTED" and done["steps"][0]["status"] == "INTERRUPTED", done
        assert f.a.get("/pipelines/locks").json["items"] == []


def test_runs_are_the_runners_own():
    """Starting, staging, ending and cancelling a pipeline's run works by the runner's routes alone; plain leases on its key do"""
    with Fleet("sqlite", pipelines={"p": command("sleep", "1000")}, n=1) as f:
        a = f.a
        a.post("/api/v1/runs", {"key": "pipeline:p"}).expect(403, "KEY_RESERVED")
        a.post("/api/v1/runs", {"key": "pipeline:p", "slot": True, "id": "x/../../y"}).expect(403, "KEY_RESERVED")
        a.post("/api/v1/runs", {"key": "pipelines:p"}).expect(201)
        run = f.trigger("p", {"note": "x" * 3500})["pipeline_logging_id"]
        f.wait(run, "RUNNING")
        shown = a.get("/api/v1/runs/" + run).expect(200).json
        named = {"holder": shown["holder"], "fence": shown["fence"]}
        a.post(f"/api/v1/runs/{run}/stage", dict(named, stage="forged")).expect(403, "KEY_RESERVED")
        a.post(f"/api/v1/runs/{run}/finish", dict(named, state="COMPLETED")).expect(403, "KEY_RESERVED")
        a.post(f"/api/v1/runs/{run}/cancel", {"reason": "r"}).expect(403, "KEY_RESERVED")
        a.post("/api/v1/runs/nosuch/cancel", {"reason": "r"}).expect(404)
        ops = [{"op": "run_start", "key": "pipeline:q", "id": "a"}, {"op": "run_finish", "id": run, **named, "state": "COMPLETED"},
               {"op": "run_stage", "id": run, **named}, {"op": "run_cancel", "id": run, "reason": "r"}, {"op": "acquire", "key": "pipeline:q", "holder": "h"},
               {"op": "run_get", "id": run}]
        results = a.post("/api/v1/batch", {"ops": ops}).expect(200).json["results"]
        assert [r["status"] for r in results] == ["KEY_RESERVED"] * 4 + ["OK", "OK"], results
        # so many that looking them up is too much for one call: what was not looked up is not done
        ops = [{"op": "run_cancel", "id": run, "reason": "r"}] * 4096
        results = a.post("/api/v1/batch", {"ops": ops}).expect(200).json["results"]
        assert {r["status"] for r in results} == {"KEY_RESERVED", "LIMIT_EXCEEDED"}, {r["status"] for r in results}
        with a.new_client(a.key_for("default", "operator", prefix="pipeline:")) as narrow:
            narrow.post(f"/api/v1/runs/{run}/cancel", {"reason": "r"}).expect(403, "KEY_RESERVED")
        assert f.get(run)["status"] == "RUNNING"
        a.delete("/pipelines/runs/" + run).expect(200)
        f.wait(run, "CANCELLED")


def test_thousand_pipelines():
    """1000 pipelines → 1000 locks → 0"""
    n = 1000 if lib.SLOW == 1 else 200
    with Fleet("sqlite", env={"INTERLOCK_LIMIT_RUNS": "50"}, n=1) as f:
        leases = []
        # locks as runs have them; executing a thousand commands at once is not what is looked at
        ops = [{"op": "acquire", "key": f"pipeline:p{i:04}", "holder": "h", "ttl_ms": 600000} for i in range(n)]
        for at in range(0, n, 100):
            leases += f.a.post("/api/v1/batch", {"ops": ops[at:at + 100]}).expect(200).json["results"]
        seen, cursor = [], ""
        while cursor is not None:
            page = f.a.get("/pipelines/locks?limit=100" + (f"&cursor={cursor}" if cursor else "")).expect(200).json
            seen += [lock["pipeline_id"] for lock in page["items"]]
            cursor = page["next"]
        assert len(seen) == len(set(seen)) == n, len(seen)
        ends = [{"op": "release", "key": op["key"], "holder": "h", "fence": lease["fence"]} for op, lease in zip(ops, leases)]
        for at in range(0, n, 100):
            results = f.a.post("/api/v1/batch", {"ops": ends[at:at + 100]}).expect(200).json["results"]
            assert all(r["status"] == "OK" for r in results), results[0]
        assert f.a.get("/pipelines/locks").json["items"] == []


if __name__ == "__main__":
    lib.main(globals())
