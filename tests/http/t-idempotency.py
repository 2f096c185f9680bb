"""Idempotency-Key: one effect and one response per key, even with concurrent requests and across
server crashes."""
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
    """50 same requests at once: one job, one answer"""
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


def entries(s):
    """key -> fingerprint of what the store keeps, of a server that is stopped."""
    db = sqlite3.connect(s.store.split(":", 1)[1])
    rows = dict(db.execute("SELECT key, fingerprint FROM il_once"))
    db.close()
    return rows


def expire_claims(s, also="", which="state = 1"):
    """The time of the claims is over, as it would be after a minute; the server is stopped."""
    db = sqlite3.connect(s.store.split(":", 1)[1])
    n = db.execute(f"UPDATE il_once SET {also}expires_ms = 1 WHERE {which}").rowcount
    db.commit()
    db.close()
    return n


def once(client, op, **more):
    return client.post("/api/v1/batch", {"ops": [dict(more, op=op)]}).expect(200).json["results"][0]


def test_once_ops_have_other_names():
    """once_* ops neither find nor forge what an Idempotency-Key has stored, nor vice versa"""
    with lib.Server(store="sqlite") as s:
        narrow = s.new_client(s.key_for("default", "write", prefix="idem"))
        wide = s.new_client(s.key_for("default", "write"))
        pushed = push(s, "idem-k").expect(201)
        for client in (narrow, wide):
            assert once(client, "once_get", key="idem-k")["status"] == "NOT_FOUND"
        for i, client in enumerate((narrow, wide)):
            claim = once(client, "once_begin", key=f"idem-{i}", attempt="a", meta="forged")
            assert claim["status"] == "OK", claim
            done = once(client, "once_finish", key=f"idem-{i}", attempt="a", token=claim["token"],
                        code=101, response="{}")
            assert done["status"] == "OK", done
            assert "Idempotent-Replayed" not in push(s, f"idem-{i}").expect(201).headers
        s.stop()
        kept = [key for key in entries(s) if not key.startswith("idem-")]
        assert len(kept) == 3, entries(s)
        s.start()
        narrow, wide = s.new_client(narrow.key), s.new_client(wide.key)
        for client in (narrow, wide, s):
            for op, more in (("once_get", {}), ("once_begin", {"attempt": "b"}),
                             ("once_abandon", {"attempt": "b", "token": 1}),
                             ("once_finish", {"attempt": "b", "token": 1, "response": "{}"})):
                result = once(client, op, key=kept[0], **more)
                assert result["status"] == "KEY_RESERVED", (op, result)
            client.post("/api/v1/idempotency/get", {"key": kept[0]}).expect(403, "KEY_RESERVED")
        narrow.post("/api/v1/idempotency/get", {"key": "other"}).expect(404)
        assert push(s, "idem-k").expect(201).body == pushed.body
        narrow.close()
        wide.close()


def test_nothing_to_guess_in_the_store():
    """names and fingerprints are keyed with the pepper: they differ between servers"""
    kept = []
    for _ in range(2):
        with lib.Server(store="sqlite") as s:
            push(s, "order-1042").expect(201)
            s.stop()
            kept.append(entries(s))
    (first,), (second,) = kept
    assert "order" not in first and first != second, kept
    assert kept[0][first] != kept[1][second], kept


def test_only_final_statuses_are_replayed():
    """a stored status outside 200..599 is an error of the server, not an answer"""
    with lib.Server(store="sqlite") as s:
        for code in (101, 199, 600, -1):
            push(s, f"k{code}").expect(201)
            s.stop()
            db = sqlite3.connect(s.store.split(":", 1)[1])
            assert db.execute("UPDATE il_once SET code = ?", (code,)).rowcount > 0
            db.commit()
            db.close()
            s.start()
            push(s, f"k{code}").expect(500, "INTERNAL")


def test_what_is_not_kept():
    """a refused request is not an answer: the key can be used again"""
    with lib.Server() as s:
        s.post(J, {"payload": "p", "nonsense": 1}, headers={"Idempotency-Key": "k"}).expect(400)
        first = push(s, "k").expect(201)
        assert "Idempotent-Replayed" not in first.headers
        # what was tried and refused by the store is an answer
        s.post("/api/v1/runs", {"key": "busy"}).expect(201)
        body = {"key": "busy", "on_conflict": "reject"}
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
        # a run that waits for its turn keeps the claim while its request is open
        s.post("/api/v1/runs", {"key": "busy", "id": "first", "holder": "h"}).expect(201)
        client, got = s.new_client(), []
        start = ("/api/v1/runs?wait=20s", {"key": "busy", "on_conflict": "queue"})
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
        # as if it had died in between: the claim exists, without an answer, and its time is over
        assert expire_claims(s, "state = 1, purge_ms = 9000000000000000, ", "TRUE") == 1
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
        # those that were being made: once their claims are over, they are made with the same id, or
        # were
        made_before = {key: seen[key] for key in unsure if key in seen}
        s.stop()
        expire_claims(s)
        s.start()
        for key in unsure:
            answer = push(s, key, key).expect(201)
            assert answer.json["id"] == made_before.get(key, answer.json["id"])
        every_job(s)
        print(f"# {len(acknowledged)} acknowledged; of {len(unsure)} unsure ones {len(made_before)} were made")


lib.main(globals())
