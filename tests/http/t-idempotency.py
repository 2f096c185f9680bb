"""Idempotency-Key (R4.1): one effect and one answer per key, also when all come at once, and across crashes of the server."""
import os
import sqlite3
import threading

import lib

J = "/api/v1/queues/q/jobs"


def push(client, key, payload="p", **more):
    return client.post(J, {"payload": payload}, headers={"Idempotency-Key": key}, **more)


def n_jobs(s):
    return s.get("/api/v1/queues/q").expect(200).json["totals"]["pushed"]


def test_a_storm_of_duplicates():
    """50 same requests at once: one job, one answer (R4.1)"""
    for store in ("memory:", "sqlite"):
        with lib.Server(store=store) as s:
            for round_ in range(3):
                clients = [s.new_client() for _ in range(50)]
                answers = lib.together(50, lambda i, c=clients, r=round_: push(c[i], f"storm-{r}"))
                assert {a.status for a in answers} == {201}, answers
                assert len({a.body for a in answers}) == 1
                assert sum("Idempotent-Replayed" not in a.headers for a in answers) == 1
                for client in clients:
                    client.close()
                assert n_jobs(s) == round_ + 1


def test_replay_and_mismatch():
    """the same answer again, byte for byte; another request: 422 with the id that exists"""
    with lib.Server() as s:
        first = push(s, "k").expect(201)
        again = push(s, "k").expect(201)
        assert again.body == first.body and again.headers["Idempotent-Replayed"] == "true"
        assert "Idempotent-Replayed" not in first.headers
        for answer in (push(s, "k", "other"), s.post("/api/v1/queues/r/jobs", {"payload": "p"}, headers={"Idempotency-Key": "k"}),
                       s.post("/api/v1/runs", {"key": "x"}, headers={"Idempotency-Key": "k"})):
            answer.expect(422, "IDEMPOTENCY_MISMATCH")
            assert answer.json["error"]["details"]["id"] == first.json["id"]
        assert n_jobs(s) == 1


def test_the_key():
    """1..255 printable characters"""
    with lib.Server() as s:
        for key in ("x", "x" * 255, "a b:c/~"):
            push(s, key).expect(201)
        for key in ("x" * 256, "é".encode().decode("latin-1"), "a\tb"):
            answer = push(s, key)
            assert answer.status == 400, (key, answer)
        assert n_jobs(s) == 3


def test_tenants_have_their_own_keys():
    """the same key in another tenant is another key; also for keys with a prefix"""
    with lib.Server() as s:
        first = push(s, "k").expect(201).json
        with s.new_client(s.key_for("other", "write")) as client:
            other = push(client, "k").expect(201)
            assert other.json["id"] != first["id"] and "Idempotent-Replayed" not in other.headers
        with s.new_client(s.key_for("default", "write", prefix="q")) as client:
            mine = push(client, "k").expect(201)
            assert mine.json["id"] != first["id"]
            assert push(client, "k").expect(201).body == mine.body
        with s.new_client(s.key_for("default", "write", prefix="z")) as client:
            push(client, "k").expect(403, "FORBIDDEN")


def test_what_is_not_kept():
    """a refused request is not an answer: the key can be used again"""
    with lib.Server() as s:
        s.post(J, {"payload": "p", "nonsense": 1}, headers={"Idempotency-Key": "k"}).expect(400)
        first = push(s, "k").expect(201)
        assert "Idempotent-Replayed" not in first.headers
        # what was tried and refused by the store is an answer
        s.post("/api/v1/runs", {"key": "busy"}).expect(201)
        body = {"key": "busy", "policy": "reject"}
        s.post("/api/v1/runs", body, headers={"Idempotency-Key": "r"}).expect(409, "LOCK_HELD")
        again = s.post("/api/v1/runs", body, headers={"Idempotency-Key": "r"}).expect(409, "LOCK_HELD")
        assert again.headers["Idempotent-Replayed"] == "true"


def test_items():
    """several jobs with one key: made once"""
    with lib.Server() as s:
        body = {"items": [{"payload": str(i)} for i in range(20)]}
        first = s.post(J, body, headers={"Idempotency-Key": "k"}).expect(201)
        assert s.post(J, body, headers={"Idempotency-Key": "k"}).expect(201).body == first.body
        assert len({item["id"] for item in first.json["items"]}) == 20
        assert n_jobs(s) == 20


def test_api_keys():
    """a secret is shown once: the kept answer is without it, in the store's file too, and there is no second key"""
    with lib.Server(store="sqlite") as s:
        body = {"tenant": "default", "role": "read", "name": "mine"}
        first = s.post("/api/v1/admin/api-keys", body, headers={"Idempotency-Key": "k"}).expect(201).json
        again = s.post("/api/v1/admin/api-keys", body, headers={"Idempotency-Key": "k"}).expect(201)
        assert again.headers["Idempotent-Replayed"] == "true"
        assert again.json == {**first, "key": None}, again
        s.get("/api/v1/status", key=first["key"]).expect(200)
        assert sum(key["name"] == "mine" for key in s.get("/api/v1/admin/api-keys").json["items"]) == 1
        s.stop()
        for name in os.listdir(s.folder):
            path = os.path.join(s.folder, name)
            if os.path.isfile(path):
                with open(path, "rb") as file:
                    assert first["key"].encode() not in file.read(), name


def test_somebody_is_at_it():
    """the first attempt still runs: 409 with Retry-After after ?wait; its answer if that comes in time"""
    with lib.Server() as s:
        # an attempt that another server would have begun, with the fingerprint unknown to us: another request
        began = s.post("/api/v1/batch", {"ops": [{"op": "once_begin", "key": "k", "attempt": "a", "meta": "the-id"}]}).json["results"][0]
        push(s, "k").expect(422)
        s.post("/api/v1/batch", {"ops": [{"op": "once_abandon", "key": "k", "attempt": "a", "token": began["token"]}]}).expect(200)
        # a run that waits for its turn keeps the claim while its request is open
        s.post("/api/v1/runs", {"key": "busy", "id": "first", "holder": "h"}).expect(201)
        client, got = s.new_client(), []
        start = ("/api/v1/runs?wait=20s", {"key": "busy", "policy": "queue"})
        thread = threading.Thread(target=lambda: got.append(client.post(*start, headers={"Idempotency-Key": "w"})))
        thread.start()
        lib.eventually(lambda: s.get("/api/v1/status").json["waiters"] == 1, what="the first attempt")
        busy = s.post("/api/v1/runs?wait=300ms", start[1], headers={"Idempotency-Key": "w"}).expect(409, "IN_PROGRESS")
        assert busy.headers["Retry-After"] and busy.json["error"]["details"]["id"]
        second, also = s.new_client(), []
        other = threading.Thread(target=lambda: also.append(second.post("/api/v1/runs?wait=20s", start[1], headers={"Idempotency-Key": "w"})))
        other.start()
        lib.eventually(lambda: s.get("/api/v1/status").json["waiters"] == 2, what="the second attempt")
        run = s.get("/api/v1/runs/first").json
        s.post("/api/v1/runs/first/finish", {"holder": "h", "fence": run["fence"], "state": "COMPLETED"}).expect(200)
        thread.join(20)
        other.join(20)
        assert got[0].expect(201).json["state"] == "RUNNING" and also[0].expect(201).body == got[0].body
        client.close()
        second.close()


def test_replay_after_a_restart():
    """the answer outlives the server"""
    with lib.Server(store="sqlite") as s:
        first = push(s, "k").expect(201)
        s.stop()
        s.start()
        assert push(s, "k").expect(201).body == first.body
        s.kill()
        s.start()
        assert push(s, "k").expect(201).body == first.body
        assert n_jobs(s) == 1


def test_a_crash_between_making_and_answering():
    """the server dies after the job was made, before its answer was kept: the repeat makes no second one"""
    with lib.Server(store="sqlite") as s:
        first = push(s, "k").expect(201)
        s.stop()
        # as if it had died in between: the claim is there, without an answer, and its time is over
        path = s.store.split(":", 1)[1]
        db = sqlite3.connect(path)
        tables = [row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type='table' AND name LIKE '%once%'")]
        assert len(tables) == 1, tables
        columns = [row[1] for row in db.execute(f"PRAGMA table_info({tables[0]})")]
        assert "state" in columns and "expires_ms" in columns, columns
        db.execute(f"UPDATE {tables[0]} SET state = 1, expires_ms = 1, purge_ms = 9000000000000000")
        db.commit()
        db.close()
        s.start()
        again = push(s, "k").expect(201)
        assert again.json["id"] == first.json["id"]
        assert n_jobs(s) == 1
        assert push(s, "k").expect(201).body == again.body


def every_job(s):
    """payload -> id of every job; none may be there twice."""
    seen, cursor = {}, ""
    while cursor is not None:
        page = s.get(J + "?limit=1000" + (f"&cursor={cursor}" if cursor else "")).expect(200).json
        for job in page["items"]:
            assert job["payload"] not in seen, f"{job['payload']} was made twice"
            seen[job["payload"]] = job["id"]
        cursor = page["next"]
    return seen


def test_killed_under_load():
    """kill -9 in the middle, again and again: what was acknowledged is there, and nothing twice (SQLite)"""
    with lib.Server(store="sqlite") as s:
        acknowledged, unsure, lock, stop = {}, [], threading.Lock(), threading.Event()

        def work(i):
            n, client = 0, None
            while not stop.is_set():
                if s.address is None:  # between kill and start
                    stop.wait(0.01)
                    continue
                n += 1
                key = f"{i}-{n}"
                try:
                    client = client or s.new_client(timeout=10)
                    answer = push(client, key, key)
                    if answer.status == 201:
                        with lock:
                            acknowledged[key] = answer.json["id"]
                        continue
                except (OSError, AttributeError, lib.http.client.HTTPException):
                    client = None
                    stop.wait(0.02)
                with lock:
                    unsure.append(key)

        threads = [threading.Thread(target=work, args=(i,), daemon=True) for i in range(8)]
        for thread in threads:
            thread.start()
        try:
            for _ in range(4):
                before = len(acknowledged)
                lib.eventually(lambda b=before: len(acknowledged) > b + 50, seconds=30, what="the load")
                s.kill()
                s.start()
        finally:
            stop.set()
            for thread in threads:
                thread.join(30)
        seen = every_job(s)
        lost = {key for key, id_ in acknowledged.items() if seen.get(key) != id_}
        assert not lost, f"{len(lost)} of {len(acknowledged)} acknowledged jobs are lost"
        # those that were being made: their claims die within a minute, and then they are made with the same id, or were
        made_before = {key: seen[key] for key in unsure if key in seen}
        for key in unsure:
            answer = lib.eventually(lambda k=key: [a for a in [push(s, k, k)] if a.status == 201], seconds=90, what=key)[0]
            assert answer.json["id"] == made_before.get(key, answer.json["id"])
        every_job(s)
        print(f"# {len(acknowledged)} acknowledged; of {len(unsure)} unsure ones {len(made_before)} were made")


lib.main(globals())
