"""Queues over HTTP: long polls, N workers and M jobs, batches, schedules."""
import collections
import threading
import time

import lib

Q = "/api/v1/queues/q"


def test_each_job_is_done_once():
    """8 workers with long polls, 400 jobs pushed meanwhile: each is finished once"""
    for store in ("memory:", "sqlite"):
        with lib.Server(store=store) as s:
            s.put(Q, {}).expect(200)
            done, lock, n_jobs = collections.Counter(), threading.Lock(), 400

            def work(i, s=s, done=done, lock=lock):
                with s.new_client() as client:
                    if i >= 8:  # two that push
                        for k in range(n_jobs // 2):
                            client.post(Q + "/jobs", {"payload": {"n": (i - 8) * n_jobs + k}}).expect(201)
                        return
                    while True:
                        jobs = client.post(Q + "/claim", {"worker": f"w{i}", "limit": 5, "wait_ms": 1500}).expect(200).json["items"]
                        if not jobs:
                            return
                        items = [{"id": j["id"], "token": j["token"], "result": str(i)} for j in jobs]
                        results = client.post("/api/v1/jobs/finish", {"items": items}).expect(200).json["results"]
                        assert all(r["status"] == "OK" for r in results)
                        with lock:
                            done.update(j["payload"]["n"] for j in jobs)

            lib.together(10, work)
            assert len(done) == n_jobs and set(done.values()) == {1}, (len(done), done.most_common(3))
            totals = s.get(Q).json["totals"]
            assert totals["completed"] == n_jobs and totals["stale"] == 0, totals


def test_claim_waits():
    """a claim with a wait gets the job that is pushed meanwhile"""
    for store in ("memory:", "sqlite"):
        with lib.Server(store=store) as s:
            s.put(Q, {}).expect(200)
            client, got = s.new_client(), []
            thread = threading.Thread(target=lambda c=client, g=got: g.append(c.post(Q + "/claim?wait=30s", {}).expect(200).json))
            thread.start()
            lib.eventually(lambda: s.get("/api/v1/status").json["waiters"] == 1, what="the long poll")
            pushed = s.post(Q + "/jobs", {"payload": "x"}).expect(201).json
            thread.join(20)
            assert got and [j["id"] for j in got[0]["items"]] == [pushed["id"]], got
            client.close()


def test_waiting_for_a_job():
    """GET ?wait answers when the job changes, at once when it has ended"""
    with lib.Server(store="sqlite") as s:
        job = s.post(Q + "/jobs", {"payload": "x"}).expect(201).json
        client, got = s.new_client(), []
        thread = threading.Thread(target=lambda: got.append(client.get(f"/api/v1/jobs/{job['id']}?wait=30s").expect(200).json))
        thread.start()
        lib.eventually(lambda: s.get("/api/v1/status").json["waiters"] == 1, what="the long poll")
        mine = s.post(Q + "/claim", {"worker": "w"}).expect(200).json["items"][0]
        thread.join(20)
        assert got and got[0]["state"] == "RUNNING" and got[0]["worker"] == "w", got
        s.post(f"/api/v1/jobs/{job['id']}/finish", {"token": mine["token"], "result": "done"}).expect(200)
        began = time.monotonic()
        assert s.get(f"/api/v1/jobs/{job['id']}?wait=30s").json["result"] == "done"
        assert time.monotonic() - began < 5
        client.close()


def test_ids_are_the_callers():
    """a push with an id can be repeated; with another payload it is another request"""
    with lib.Server() as s:
        first = s.post(Q + "/jobs", {"id": "mine-1", "payload": "x"}).expect(201).json
        assert s.post(Q + "/jobs", {"id": "mine-1", "payload": "x"}).expect(201).json["id"] == first["id"] == "mine-1"
        s.post(Q + "/jobs", {"id": "mine-1", "payload": "y"}).expect(422, "MISMATCH")
        assert s.get(Q).json["totals"]["pushed"] == 1


def test_payloads():
    """JSON comes back as JSON, text as text, bytes as base64"""
    with lib.Server() as s:
        for given, shown in (({"payload": {"a": [1, 2]}}, {"payload": {"a": [1, 2]}}), ({"payload": "text"}, {"payload": "text"}),
                             ({"payload_base64": "AP8="}, {"payload": None, "payload_base64": "AP8="}), ({"payload": "é"}, {"payload": "é"})):
            made = s.post(Q + "/jobs", given).expect(201).json
            job = s.get(f"/api/v1/jobs/{made['id']}").expect(200).json
            assert {k: job.get(k) for k in shown} == shown, job
        s.post(Q + "/jobs", {"payload": "x" * (1024 * 1024 + 1)}).expect(400, "BAD_REQUEST")
        s.post(Q + "/jobs", {"payload": "x" * (1024 * 1024)}).expect(201)


def test_push_many_with_some_bad():
    """what is wrong with one of several is said of that one"""
    with lib.Server() as s:
        answer = s.post(Q + "/jobs", {"items": [{"payload": "a"}, {"payload": "b", "priority": 5000}]}).expect(400)
        assert "items[1]" in answer.json["error"]["message"] and "priority" in answer.json["error"]["message"]
        items = s.post(Q + "/jobs", {"items": [{"payload": "a"}, {"payload": "b", "parent": "nobody"}]}).expect(201).json["items"]
        assert [i["status"] for i in items] == ["OK", "NOT_FOUND"]
        s.post(Q + "/jobs", {"items": []}).expect(400)
        s.post(Q + "/jobs", {"items": [{"payload": "a"}], "payload": "b"}).expect(400)
        s.post(Q + "/jobs", {"items": [{"payload": str(i)} for i in range(4096)]}).expect(201)
        s.post(Q + "/jobs", {"items": [{}] * 4097}).expect(400)


def test_stale_tokens():
    """a worker that was declared dead cannot finish its job"""
    with lib.Server() as s:
        s.post(Q + "/jobs", {"payload": "x"}).expect(201)
        first = s.post(Q + "/claim", {"worker": "a", "lease_ms": 1000}).expect(200).json["items"][0]
        second = lib.eventually(lambda: s.post(Q + "/claim", {"worker": "b", "wait_ms": 2000}).json["items"], what="the recovery")[0]
        assert second["id"] == first["id"] and second["token"] > first["token"]
        path = f"/api/v1/jobs/{first['id']}"
        for verb in ("heartbeat", "finish", "fail", "snooze"):
            stale = s.post(f"{path}/{verb}", {"token": first["token"]}).expect(409, "JOB_STALE")
            assert str(second["token"]) not in stale.body.decode()
        s.post(path + "/finish", {"token": second["token"], "result": "ok"}).expect(200)
        s.post(path + "/finish", {"token": second["token"], "result": "ok"}).expect(200)
        s.post(path + "/finish", {"token": second["token"], "result": "other"}).expect(422, "MISMATCH")


def test_retry_with_a_taken_unique_key():
    """a retry whose unique key another job has: 409 with that job's id"""
    with lib.Server() as s:
        first = s.post(Q + "/jobs", {"payload": "x", "key": "u"}).expect(201).json
        s.post(f"/api/v1/jobs/{first['id']}/cancel", {"reason": "x"}).expect(200)
        second = s.post(Q + "/jobs", {"payload": "y", "key": "u"}).expect(201).json
        answer = s.post(f"/api/v1/jobs/{first['id']}/retry").expect(409, "DUPLICATE")
        assert answer.json["error"]["details"]["id"] == second["id"]


def test_cron():
    """a schedule pushes jobs by itself"""
    with lib.Server(store="sqlite") as s:
        s.put("/api/v1/crons/every", {"queue": "q", "schedule": "* * * * *", "payload": {"a": 1}, "missed": "one"}).expect(200)
        entry = s.get("/api/v1/crons?prefix=ev").expect(200).json["items"][0]
        assert entry["payload"] == {"a": 1} and entry["next_at"].endswith(":00.000Z")
        assert s.get("/api/v1/crons?queue=other").expect(200).json["items"] == []


lib.main(globals())
