"""Ingestions through a server: triggers, conflicts, status, cancel, timeouts, metrics; and commands
beside it."""
import contextlib
import json
import os
import signal
import subprocess
import tempfile

import lib

TRACK = "hilltoprc"
EVENT = "100000"


@contextlib.contextmanager
def site(*args):
    """A generated site; its URL with {slug}."""
    small = ["--entries", "8", "--races", "3", "--laps", "5"]
    p = subprocess.Popen([lib.BINARY, "demo-site", "--listen", "127.0.0.1:0", *small, *args],
                         stdout=subprocess.PIPE, text=True)
    try:
        yield p.stdout.readline().strip() + "/{slug}"
    finally:
        p.send_signal(signal.SIGTERM)
        p.wait(20)
        p.stdout.close()


def settings(url, **more):
    env = {"INTERLOCK_LIVERC_URL": url, "INTERLOCK_INGEST_REQUEST_DELAY_MS": "0"}
    return {**env, **{f"INTERLOCK_{k}": str(v) for k, v in more.items()}}


def ended(s, job):
    """The status of a job, once it has ended."""
    def look():
        a = s.get(f"/api/v1/ingestion/status/{job}?wait=1s").expect(200).json
        return a if a["status"] not in ("PENDING", "RUNNING") else None
    return lib.eventually(look, 60, f"the end of {job}")


def source(s, event=EVENT, status=202, **more):
    body = {"source_event_id": event, "track_slug": TRACK, **more}
    return s.post("/api/v1/events/ingest", body).expect(status)


def running(s, job, stage):
    """Wait until it is at this stage."""
    def look():
        return s.get(f"/api/v1/ingestion/status/{job}").expect(200).json["stage"] == stage
    lib.eventually(look, 30, f"{job} at {stage}")


def test_by_source_and_by_event():
    with site() as url, lib.Server(env=settings(url)) as s:
        job = source(s).json
        assert job["status"] == "PENDING" and job["source_event_id"] == EVENT, job
        run = ended(s, job["job_id"])
        assert run["status"] == "COMPLETED" and run["error"] is None, run
        result = run["result"]
        assert result["status"] == "updated" and result["ingest_depth"] == "laps_full", result
        assert result["races_ingested"] == 3 and result["results_ingested"] > 0, result
        assert result["rows"]["races"] == {"inserted": 3, "updated": 0, "unchanged": 0, "removed": 0}
        stages = [t["stage"] for t in run["timeline"]]
        assert stages == ["fetch_event_page", "fetch_entry_list", "await_event_lock", "persist_event",
                          "persist_entry_list", "fetch_race_pages", "ingest_laps", "driver_matching",
                          "finalize"], stages
        assert all(t["duration_ms"] >= 0 and t["status"] == "COMPLETED" for t in run["timeline"])
        path = f"/api/v1/events/{result['event_id']}/ingest"
        run = ended(s, s.post(path, {}).expect(202).json["job_id"])
        assert run["result"]["status"] == "already_complete", run
        run = ended(s, s.post(path, {"force": True, "depth": "laps_full"}).expect(202).json["job_id"])
        assert run["result"]["status"] == "updated", run
        s.post(path, {"depth": "none"}).expect(409, "STATE_MACHINE_ERROR")
        s.post(path, {"depth": "deep"}).expect(400, "VALIDATION_ERROR")
        s.post("/api/v1/events/nothing/ingest", {}).expect(404, "NOT_FOUND")
        source(s, "12; DROP", 400)
        source(s, "1", 400, track_slug="../x")
        source(s, status=400, event_id="a b/c")
        run = ended(s, source(s, event_id="another").json["job_id"])
        assert run["error"]["code"] == "CONSTRAINT_VIOLATION", run["error"]


def test_idempotency_key():
    with site() as url, lib.Server(env=settings(url)) as s:
        body = {"source_event_id": EVENT, "track_slug": TRACK}
        first = s.post("/api/v1/events/ingest", body, headers={"Idempotency-Key": "k"}).expect(202)
        ended(s, first.json["job_id"])
        again = s.post("/api/v1/events/ingest", body, headers={"Idempotency-Key": "k"}).expect(202)
        assert again.json["job_id"] == first.json["job_id"]


def test_conflicts_and_full_slots():
    """The site answers slowly, so that ingestions last. Nothing but executing needs a slot."""
    with site("--delay", "60s") as url, lib.Server(env=settings(url, INGEST_CONCURRENCY=2)) as s:
        first = source(s).json["job_id"]
        second = source(s, "100001").json["job_id"]
        for job in (first, second):
            running(s, job, "fetch_event_page")
        waiting = source(s, "100002").json["job_id"]
        a = source(s, status=409)
        details = a.json["error"]["details"]
        assert a.code == "INGESTION_IN_PROGRESS" and details["run_id"] == first, a.json
        assert details["stage"] == "fetch_event_page" and details["hint"] == "ingestion_running", details
        assert details["age_ms"] >= 0 and details["holder"].startswith(first), details
        joined = source(s, on_conflict="join").json
        assert joined["job_id"] == first and joined["joined"], joined
        queued = source(s, on_conflict="queue").json
        assert queued["job_id"] != first and queued["queue_position"] == 1, queued
        look = s.get(f"/api/v1/ingestion/status/{queued['job_id']}").expect(200).json
        assert look["status"] == "PENDING" and look["queue_position"] == 1, look
        # all slots are taken: status and cancel work, of those that wait, too
        for job in (waiting, queued["job_id"], first, second):
            s.delete(f"/api/v1/ingestion/status/{job}", body={"reason": "enough"}).expect(200)
        for job in (first, second, waiting):
            run = ended(s, job)
            assert run["status"] == "CANCELLED" and run["error"]["message"] == "enough", run
        lib.eventually(lambda: s.get("/api/v1/locks").json["items"] == [], 10, "released locks")
        s.get("/api/v1/ingestion/status/nothing").expect(404)


def test_timeout():
    env = {"INGEST_LOCK_TIMEOUT_SECONDS": 1, "LOG_FORMAT": "json"}
    with site("--delay", "60s") as url, lib.Server(env=settings(url, **env)) as s:
        run = ended(s, source(s).json["job_id"])
        assert run["status"] == "TIMEOUT" and run["error"]["code"] == "INGESTION_TIMEOUT", run
        assert run["error"]["details"]["stage"] == "fetch_event_page", run
        line = json.loads(s.wait_log("ingest.timeout"))
        assert line["stage"] == "fetch_event_page" and line["timer_status"] == "timeout", line
        assert line["duration_ms"] >= 1000, line

        def counted():
            text = s.get("/metrics", key=False).body.decode()
            return ('ingestion_lock_timeouts_total{stage="fetch_event_page"} 1' in text
                    and 'ingestion_duration_seconds_count{status="timeout"} 1' in text)
        lib.eventually(counted, 10, "the metrics")


def test_lists_and_recent():
    with site("--newest", "2026-03-08T00:00:00Z") as url, lib.Server(env=settings(url)) as s:
        run = ended(s, s.post("/api/v1/tracks/sync", {}).expect(202).json["job_id"])
        assert run["result"]["tracks"] == 4, run
        run = ended(s, s.post("/api/v1/events/sync", {"track_slug": TRACK}).expect(202).json["job_id"])
        assert run["result"]["events"] == 5, run
        body = {"tracks": TRACK, "days": 3650}
        run = ended(s, s.post("/api/v1/events/recent", body).expect(202).json["job_id"])
        jobs = [i["job_id"] for i in run["result"]["items"]]
        assert len(jobs) == 5, run
        assert all(ended(s, j)["status"] == "COMPLETED" for j in jobs)


def test_other_routes_cannot_touch_its_runs():
    with site("--delay", "60s") as url, lib.Server(env=settings(url)) as s:
        job = source(s).json["job_id"]
        s.post(f"/api/v1/runs/{job}/cancel", {"reason": "x"}).expect(403)
        s.post("/api/v1/runs", {"key": "ingest:liverc:5", "id": "x"}).expect(403)
        s.delete(f"/api/v1/ingestion/status/{job}").expect(200)
        ended(s, job)


def test_schedule():
    """Each minute: the first tick is made up for at the start."""
    with site() as url:
        env = settings(url, INGEST_SCHEDULE="* * * * *", INGEST_TRACKS=TRACK, INGEST_DAYS=3650)
        with lib.Server(env=env) as s:
            def refreshed():
                text = s.get("/metrics", key=False).body.decode()
                return 'ingestion_duration_seconds_count{status="completed"} ' in text and \
                    int(text.split('ingestion_duration_seconds_count{status="completed"} ')[1].split()[0]) >= 6
            lib.eventually(refreshed, 30, "the refresh and five events")


def test_signals():
    """A command that is told to stop cancels its ingestion, and nothing stays held."""
    with tempfile.TemporaryDirectory() as folder, site("--delay", "60s") as url, \
            contextlib.ExitStack() as stack:
        env = {**settings(url), "INTERLOCK_STORE": f"sqlite:{folder}/s.db"}
        commands = [(signal.SIGINT, ["source", EVENT, "--track", TRACK]),
                    (signal.SIGTERM, ["tracks"]),
                    (signal.SIGHUP, ["recent", "--track", TRACK])]
        children = [subprocess.Popen([lib.BINARY, "ingest", *args, "--json"], env={**os.environ, **env},
                                     stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                    for _, args in commands]
        for child in children:
            stack.callback(child.kill)

        def busy():
            done = lib.run("runs", "--json", env=env)
            if done.returncode != 0:  # nobody has created the store yet
                return False
            return sum(r["state"] == "RUNNING" for r in json.loads(done.stdout)["items"]) == len(commands)
        lib.eventually(busy, 30, "three ingestions")
        for child, (sig, _) in zip(children, commands):
            child.send_signal(sig)
        for child, (sig, _) in zip(children, commands):
            out, err = child.communicate(timeout=60)
            assert child.returncode == 128 + sig, (child.returncode, out, err)
            run = json.loads(out)
            assert run["status"] == "CANCELLED", run
            assert run["error"]["message"] == f"stopped by signal {sig:d}", run
        for tenant in ("default", "interlock.liverc"):
            held = json.loads(lib.run("locks", "--tenant", tenant, "--json", env=env).stdout)["items"]
            assert held == [], held


def test_processes_and_a_server():
    """Two processes and a server want the same 20 events: each is ingested once at a time, and all
    are complete."""
    with tempfile.TemporaryDirectory() as folder, site("--events", "5") as url:
        env = settings(url, INGEST_CONCURRENCY=4, INGEST_RACE_FETCH_CONCURRENCY=4)
        store = f"sqlite:{folder}/s.db"
        with lib.Server(store=store, env=env) as s:
            run = ended(s, s.post("/api/v1/tracks/sync", {}).expect(202).json["job_id"])
            assert run["status"] == "COMPLETED"
            own = {**os.environ, **env, "INTERLOCK_STORE": store}
            command = [lib.BINARY, "ingest", "recent", "--days", "3650", "--force", "--json"]
            children = [subprocess.Popen(command + (["--wait"] if i else []), env=own, stdout=subprocess.PIPE,
                                         stderr=subprocess.PIPE, text=True) for i in range(2)]
            job = s.post("/api/v1/events/recent", {"days": 3650, "on_conflict": "queue"}).expect(202).json["job_id"]
            run = ended(s, job)
            assert run["status"] == "COMPLETED" and len(run["result"]["items"]) == 20, run
            for i in run["result"]["items"]:
                ended(s, i["job_id"])
            for c in children:
                out, err = c.communicate(timeout=60)
                # the one that does not wait may be told that somebody refreshes already
                assert c.returncode in (0, 75), (c.returncode, out, err)
            events = s.get("/api/v1/events?limit=100").expect(200).json["items"]
            assert len(events) == 20, events
            # one of them has no races yet
            assert sum(e["ingest_depth"] == "laps_full" for e in events) == 19, events
            assert s.get("/api/v1/locks").json["items"] == []
            runs = s.get("/api/v1/runs?prefix=ingest:liverc:&limit=1000").expect(200).json["items"]
            spans = sorted((r["key"], r["started_at"], r["ended_at"]) for r in runs)
            for (key, _, end), (other, start, _) in zip(spans, spans[1:]):
                assert key != other or end <= start, (key, end, start)
        out = lib.run("check", env={"INTERLOCK_STORE": store})
        assert out.returncode == 0, out.stderr


lib.main(globals())
