"""Limits of a tenant: rate, long polls, streams, locks, jobs; changes apply within a second."""
import json
import re
import socket
import threading
import time

import lib

ACQUIRE = "/api/v1/locks/acquire"


def tenant(s, name, role="write", **limits):
    key = s.key_for(name, role)
    s.put("/api/v1/admin/tenants/" + name, {"limits": limits}).expect(200)
    # The limits are read with the key, at its next look-up.
    client = s.new_client(key)
    return client


def test_rate_and_burst():
    with lib.Server() as s:
        s.key_for("acme")
        s.put("/api/v1/admin/tenants/acme", {"limits": {"requests_per_second": 10, "burst": 20}}).expect(200)
        with s.new_client(s.key_for("acme")) as c:
            answers = [c.get("/api/v1/locks") for _ in range(40)]
            good = sum(a.status == 200 for a in answers)
            assert 20 <= good <= 30, good
            refused = [a for a in answers if a.status != 200]
            for answer in refused:
                answer.expect(429, "RATE_LIMITED")
                assert int(answer.headers["Retry-After"]) == 1, answer.headers["Retry-After"]
                assert 0 < answer.json["error"]["details"]["retry_after_ms"] <= 100
            # it fills up again at its rate
            time.sleep(refused[-1].json["error"]["details"]["retry_after_ms"] / 1000 + 0.01)
            c.get("/api/v1/locks").expect(200)
            # others do not feel it
            s.get("/api/v1/locks").expect(200)
            # a whole second at full speed: no more than the rate
            began, n = time.monotonic(), 0
            while time.monotonic() - began < 1:
                n += c.get("/api/v1/locks").status == 200
            assert 5 <= n <= 15, n


def test_each_op_of_a_batch_counts():
    """a batch is admitted while the bucket is positive, and may leave it in debt"""
    with lib.Server() as s:
        s.key_for("acme")
        s.put("/api/v1/admin/tenants/acme", {"limits": {"requests_per_second": 10, "burst": 20}}).expect(200)
        with s.new_client(s.key_for("acme")) as c:
            batch = {"ops": [{"op": "get", "key": "k"}] * 200}
            c.post("/api/v1/batch", batch).expect(200)
            answer = c.get("/api/v1/locks").expect(429, "RATE_LIMITED")
            # 201 at 10 per second, less the 20 of the burst and what has passed meanwhile
            assert 10_000 < answer.json["error"]["details"]["retry_after_ms"] < 19_000, answer.json
            s.get("/api/v1/locks").expect(200)
        # so do those that a quota refuses
        with tenant(s, "small", requests_per_second=10, burst=20, locks=1) as c:
            batch = {"ops": [{"op": "acquire", "key": f"k{i}"} for i in range(200)]}
            results = c.post("/api/v1/batch", batch).expect(200).json["results"]
            assert [r["status"] for r in results] == ["OK"] + ["QUOTA_EXCEEDED"] * 199, results
            answer = c.get("/api/v1/locks").expect(429, "RATE_LIMITED")
            assert 10_000 < answer.json["error"]["details"]["retry_after_ms"] < 19_000, answer.json


def test_results_that_nobody_reads():
    """answers that wait to be read have a limit per tenant; small ones pass, and it heals"""
    body = json.dumps({"ops": [{"op": "cache_get", "key": "large"}] * 8}).encode()
    with lib.Server() as s:
        key = s.key_for("acme", "write")
        with s.new_client(key) as c:
            lead = c.post("/api/v1/cache/lookup", {"key": "large", "holder": "h"}).expect(202).json
            c.post("/api/v1/cache/fill", {"key": "large", "holder": "h", "token": lead["token"], "ttl_ms": 600_000,
                                          "value": "v" * 1_000_000}).expect(200)
            request = (b"POST /api/v1/batch HTTP/1.1\r\nHost: a\r\nX-API-Key: %s\r\nContent-Type: application/json\r\n"
                       b"Content-Length: %d\r\n\r\n%s" % (key.encode(), len(body), body))
            sockets = []
            def is_full():
                sock = s.socket(timeout=30)
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                sock.sendall(request)
                sockets.append(sock)
                return b" 503 " in sock.recv(20, socket.MSG_PEEK)
            lib.eventually(is_full, 60, "a refusal")
            assert 10 < len(sockets) < 40, len(sockets)
            c.post("/api/v1/batch", json.loads(body)).expect(503, "RESULTS_FULL")
            c.post(ACQUIRE, {"key": "k", "holder": "h"}).expect(200)
            s.get("/api/v1/cache/stats").expect(200)
            for sock in sockets:
                sock.close()
            lib.eventually(lambda: c.post("/api/v1/batch", json.loads(body)).status == 200, 30, "room")
        with open(f"/proc/{s.pid}/status", encoding="ascii") as file:
            assert int(re.search(r"VmHWM:\s*(\d+)", file.read()).group(1)) < 600_000 * lib.SLOW


def made(s, path, body):
    """The answer, once the server lets us."""
    answer = s.post(path, body)
    return answer.json if answer.status in (201, 409) else None


def test_defaults_of_the_server_and_limits_of_a_tenant():
    with lib.Server(env={"INTERLOCK_LIMIT_REQUESTS_PER_SECOND": "1", "INTERLOCK_LIMIT_BURST": "3"}) as s:
        time.sleep(1.2)  # the server's own key has the same limit
        assert [s.get("/api/v1/locks").status for _ in range(6)].count(429) >= 2
        lib.eventually(lambda: made(s, "/api/v1/admin/tenants", {"id": "big", "limits": {"requests_per_second": 1000}}), 10, "a tenant")
        key = lib.eventually(lambda: made(s, "/api/v1/admin/api-keys", {"tenant": "big", "role": "read"}), 10, "a key")["key"]
        with s.new_client(key) as c:
            assert all(c.get("/api/v1/locks").status == 200 for _ in range(50))


def test_limits_are_read_again():
    with lib.Server() as s:
        with s.new_client(s.key_for("acme")) as c:
            assert all(c.get("/api/v1/locks").status == 200 for _ in range(50))
            s.put("/api/v1/admin/tenants/acme", {"limits": {"requests_per_second": 1, "burst": 1}}).expect(200)
            began = time.monotonic()
            asked = began
            while c.get("/api/v1/locks").status == 200:
                assert asked - began < 3
                asked = time.monotonic()
            s.put("/api/v1/admin/tenants/acme", {"limits": {"requests_per_second": 0, "burst": 0}}).expect(200)
            lib.eventually(lambda: all(c.get("/api/v1/locks").status == 200 for _ in range(10)), 3, "the end of the limit")


def test_waiters():
    with lib.Server() as s:
        with tenant(s, "acme", waiters=3) as c:
            c.post(ACQUIRE, {"key": "k", "holder": "h"}).expect(200)
            waiting = [s.new_client(c.key) for _ in range(3)]
            answers = []
            threads = [threading.Thread(target=lambda i=i, w=w: answers.append(
                w.post(ACQUIRE, {"key": "k", "holder": f"w{i}", "wait_ms": 1500}))) for i, w in enumerate(waiting)]
            for thread in threads:
                thread.start()
            lib.eventually(lambda: len(c.get("/api/v1/locks?waiters=true").json["items"]) == 3, 5, "three waiters")
            refused = c.post(ACQUIRE, {"key": "k", "holder": "w4", "wait_ms": 5000}).expect(429, "QUOTA_EXCEEDED")
            assert refused.json["error"]["details"]["limit"] == 3
            assert "Retry-After" in refused.headers
            c.post(ACQUIRE, {"key": "k", "holder": "w5"}).expect(409, "LOCK_HELD")  # one that does not wait
            for thread in threads:
                thread.join()
            assert [a.status for a in answers] == [409] * 3, answers
            # their places are free again
            c.post(ACQUIRE, {"key": "k", "holder": "w6", "wait_ms": 50}).expect(409)
            for w in waiting:
                w.close()


def test_waiters_that_hang_up_give_their_place_back():
    with lib.Server() as s:
        with tenant(s, "acme", waiters=1) as c:
            c.post(ACQUIRE, {"key": "k", "holder": "h"}).expect(200)
            for i in range(5):
                body = b'{"key":"k","holder":"w%d","wait_ms":30000}' % i
                with s.socket() as sock:
                    sock.sendall(b"POST /api/v1/locks/acquire HTTP/1.1\r\nHost: x\r\nX-API-Key: " + c.key.encode() +
                                 b"\r\nContent-Type: application/json\r\nContent-Length: " + str(len(body)).encode() + b"\r\n\r\n" + body)
                    lib.eventually(lambda: len(c.get("/api/v1/locks?waiters=true").json["items"]) == 1, 5, "a waiter")
                lib.eventually(lambda: not c.get("/api/v1/locks?waiters=true").json["items"], 5, "its end")
            c.post(ACQUIRE, {"key": "k", "holder": "last", "wait_ms": 50}).expect(409)


def test_streams():
    with lib.Server() as s:
        with tenant(s, "acme", streams=2) as c:
            head = f"GET /api/v1/stream HTTP/1.1\r\nHost: x\r\nX-API-Key: {c.key}\r\n\r\n".encode()
            open_ones = []
            for _ in range(2):
                sock = s.socket()
                sock.sendall(head)
                assert b" 200 " in sock.recv(4096)
                open_ones.append(sock)
            c.get("/api/v1/stream").expect(429, "QUOTA_EXCEEDED")
            open_ones.pop().close()

            def another():
                sock = s.socket()
                sock.sendall(head)
                ok = b" 200 " in sock.recv(4096)
                (open_ones.append if ok else lambda x: x.close())(sock)
                return ok
            lib.eventually(another, 5, "a place for another stream")
            for sock in open_ones:
                sock.close()


def test_locks():
    with lib.Server() as s:
        with tenant(s, "acme", locks=20) as c:
            grants = []
            for i in range(200):
                answer = c.post(ACQUIRE, {"key": f"k{i}", "holder": f"h{i}"})
                if answer.status == 200:
                    grants.append((i, answer.json["fence"]))
                else:
                    answer.expect(429, "QUOTA_EXCEEDED")
            assert 20 <= len(grants) <= 23, len(grants)  # what is granted during a look may pass it
            c.post("/api/v1/runs", {"key": "r"}).expect(429, "QUOTA_EXCEEDED")
            i, fence = grants[0]
            held = {"key": f"k{i}", "holder": f"h{i}", "fence": fence}
            ops = [{"op": "acquire", "key": "x", "holder": "x"}, {"op": "renew", **held}]
            results = c.post("/api/v1/batch", {"ops": ops}).expect(200).json["results"]
            assert [r["status"] for r in results] == ["QUOTA_EXCEEDED", "OK"], results
            assert results[0]["message"] == "the tenant has reached its limit of 20 concurrent locks", results
            # reading and giving back go on
            c.get("/api/v1/locks").expect(200)
            for i, fence in grants[:5]:
                c.post("/api/v1/locks/release", {"key": f"k{i}", "holder": f"h{i}", "fence": fence}).expect(200)
            n = len(grants) - 5
            for i in range(20 - n):
                c.post(ACQUIRE, {"key": f"n{i}", "holder": "h"}).expect(200)
            lib.eventually(lambda: c.post(ACQUIRE, {"key": "last", "holder": "h"}).status == 429, 3, "the limit")


def test_locks_of_others_servers_count():
    with lib.Server(store="sqlite") as a, lib.Server(store=a.store, key=a.key) as b:
        with tenant(a, "acme", locks=5) as c, b.new_client(c.key) as d:
            for i in range(5):
                c.post(ACQUIRE, {"key": f"k{i}", "holder": "h"}).expect(200)
            # b looks once a second
            d.post(ACQUIRE, {"key": "probe", "holder": "h"})
            lib.eventually(lambda: d.post(ACQUIRE, {"key": "probe2", "holder": "h"}).status == 429, 5, "the count")
            assert len(c.get("/api/v1/locks").json["items"]) <= 7


def test_jobs():
    with lib.Server() as s:
        with tenant(s, "acme", jobs=10) as c:
            statuses = [c.post("/api/v1/queues/q/jobs", {"payload": "x"}).status for _ in range(30)]
            assert 10 <= statuses.count(201) <= 13 and set(statuses) == {201, 429}, statuses
            for _ in range(statuses.count(201) - 10):
                job = c.post("/api/v1/queues/q/claim", {}).expect(200).json["items"][0]
                c.post(f"/api/v1/jobs/{job['id']}/finish", {"token": job["token"]}).expect(200)
            c.post("/api/v1/queues/q/jobs", {"items": [{"payload": "x"}]}).expect(429, "QUOTA_EXCEEDED")
            job = c.post("/api/v1/queues/q/claim", {}).expect(200).json["items"][0]
            named = {"id": job["id"], "token": job["token"]}
            push = {"op": "push", "queue": "q", "payload": "x"}
            ops = [push, {"op": "heartbeat", **named}, push, {"op": "job_finish", **named}]
            results = c.post("/api/v1/batch", {"ops": ops}).expect(200).json["results"]
            refused = "QUOTA_EXCEEDED"
            assert [r["status"] for r in results] == [refused, "OK", refused, "OK"], results
            # one place is free: the first push of a batch has it
            results = c.post("/api/v1/batch", {"ops": [push, push]}).expect(200).json["results"]
            assert [r["status"] for r in results] == ["OK", refused], results
            job = c.post("/api/v1/queues/q/claim", {}).expect(200).json["items"][0]
            c.post(f"/api/v1/jobs/{job['id']}/finish", {"token": job["token"]}).expect(200)
            c.post("/api/v1/queues/q/jobs", {"payload": "x"}).expect(201)


def fill(c, key, n_bytes):
    who = {"key": key, "holder": "h"}
    token = c.post("/api/v1/cache/lookup", who).expect(202).json["token"]
    value = {"token": token, "value": "x" * n_bytes, "ttl_ms": 600000}
    return c.post("/api/v1/cache/fill", {**who, **value})


def test_bytes():
    """507 for what brings bytes beyond the limit; what ends or deletes something passes"""
    jobs, batch = "/api/v1/queues/q/jobs", "/api/v1/batch"
    for store in ("memory:", "sqlite"):
        with lib.Server(store=store) as s:
            c = tenant(s, "acme", bytes=100000)
            job = c.post(jobs, {"payload": "x"}).expect(201).json
            job = c.post("/api/v1/queues/q/claim", {}).expect(200).json["items"][0]
            run = c.post("/api/v1/runs", {"key": "k", "id": "r", "holder": "h"}).expect(201).json
            claim = {"op": "once_begin", "key": "o", "attempt": "a"}
            token = c.post(batch, {"ops": [claim]}).expect(200).json["results"][0]["token"]
            answer = {"op": "once_finish", "key": "o", "attempt": "a", "token": token}
            statuses = [fill(c, f"v{i}", 20000).status for i in range(10)]
            assert statuses == [200] * 4 + [507] * 6, (store, statuses)
            large = "x" * 20000
            full = (507, "STORAGE_QUOTA_EXCEEDED")
            error = c.post(jobs, {"payload": large}).expect(*full).json["error"]
            assert error["details"]["limit"] == 100000 and error["details"]["used"] > 80000, error
            finish, held = f"/api/v1/jobs/{job['id']}/finish", {"holder": "h", "fence": run["fence"]}
            body = {"items": [{"payload": "x"}, {"payload": large}]}
            assert c.post(jobs, body).expect(*full).headers["Retry-After"]
            # small ones still fit; then neither does a row
            while c.post(jobs, {"payload": "x" * 1000}).status == 201:
                pass
            while c.post(jobs, {"payload": "x"}).status == 201:
                pass
            for path, body in ((jobs, {"payload": "x"}), ("/api/v1/runs", {"key": "other"}),
                               ("/api/v1/runs", {"key": "k2", "slot": True})):
                c.post(path, body).expect(*full)
                c.post(path, body, headers={"Idempotency-Key": "k"}).expect(*full)
            # others have their own
            with s.new_client(s.key_for("other")) as other:
                fill(other, "v", 200000).expect(200)
            # what ends work, which would be done again otherwise, or deletes something
            c.post(finish, {"token": job["token"], "result": large}).expect(200)
            c.post("/api/v1/runs/r/stage", {**held, "log": large}).expect(200)
            ended = c.post(batch, {"ops": [{**answer, "response": large}]}).expect(200).json
            assert ended["results"][0]["status"] == "OK", ended
            ended = {**held, "state": "COMPLETED", "log": "done"}
            c.post("/api/v1/runs/r/finish", ended).expect(200)
            c.post("/api/v1/locks/acquire", {"key": "l"}).expect(200)
            c.post("/api/v1/cache/drop", {"key": "v0"}).expect(200)
            c.close()


def full_tenant(s):
    """A client of a tenant that has no room for another row, and what it had before that."""
    c = tenant(s, "acme", "operator", bytes=20000)
    lease = c.post(ACQUIRE, {"key": "l", "holder": "h"}).expect(200).json
    first = [{"op": "once_begin", "key": key, "attempt": "a", "fingerprint": "f"}
             for key in ("answered", "begun")]
    results = c.post("/api/v1/batch", {"ops": first}).expect(200).json["results"]
    done = {"op": "once_finish", "key": "answered", "attempt": "a", "token": results[0]["token"],
            "response": "made", "code": 201}
    c.post("/api/v1/batch", {"ops": [done]}).expect(200)
    value = c.post("/api/v1/cache/lookup", {"key": "v", "holder": "h"}).expect(202).json
    c.post("/api/v1/queues/q/jobs", {"payload": "x" * 15000}).expect(201)
    while c.post("/api/v1/queues/q/jobs", {"payload": "x"}).status == 201:
        pass
    return c, {"key": "l", "holder": "h", "fence": lease["fence"]}, results[1], value["token"]


def test_bytes_in_a_batch():
    """an op that is refused does not take the others of its batch with it"""
    full = "STORAGE_QUOTA_EXCEEDED"
    for store in ("memory:", "sqlite"):
        with lib.Server(store=store) as s:
            c, held, begun, token = full_tenant(s)
            once = {"op": "once_begin", "attempt": "b", "fingerprint": "f"}
            steps = [
                ({"op": "cache_fill", "key": "v", "holder": "h", "token": token, "value": "x",
                  "ttl_ms": 600000}, full),
                ({"op": "renew", **held}, "OK"),
                ({"op": "push", "queue": "q", "payload": "x"}, full),
                ({"op": "get", "key": "l"}, "OK"),
                ({"op": "run_start", "key": "r", "holder": "h"}, full),
                ({"op": "cron_set", "queue": "q", "name": "n", "schedule": "@daily"}, full),
                # what exists is answered, as if there were no limit
                ({**once, "key": "answered"}, "REPLAY"),
                ({**once, "key": "answered", "fingerprint": "g"}, "MISMATCH"),
                ({**once, "key": "begun"}, "IN_PROGRESS"),
                ({**once, "key": "begun", "attempt": "a"}, "OK"),
                ({**once, "key": "new"}, full),
                ({"op": "once_get", "key": "new"}, "NOT_FOUND"),
                ({"op": "release", **held}, "OK"),
            ]
            ops = [op for op, _ in steps]
            results = c.post("/api/v1/batch", {"ops": ops}).expect(200).json["results"]
            expected = [status for _, status in steps]
            assert [r["status"] for r in results] == expected, (store, results)
            assert results[0]["message"].startswith("storage quota exceeded: "), results[0]
            assert (results[6]["response"], results[6]["code"]) == ("made", 201), results[6]
            assert results[9]["token"] == begun["token"], results[9]
            assert not c.get("/api/v1/locks").json["items"]
            # a key with a prefix, whose ops are looked up
            with s.new_client(s.key_for("acme", prefix="a")) as narrow:
                keys = ("answered", "begun", "anew", "begun")
                ops = [{**once, "key": key} for key in keys]
                ops.append({"op": "push", "queue": "a", "payload": "x"})
                results = narrow.post("/api/v1/batch", {"ops": ops}).expect(200).json["results"]
                expected = ["REPLAY", "FORBIDDEN", full, "FORBIDDEN", full]
                assert [r["status"] for r in results] == expected, results
            # the routes of one op
            cron = {"queue": "q", "schedule": "@daily", "payload": "x"}
            c.put("/api/v1/crons/n", cron).expect(507, full)
            # the command line
            env = {"INTERLOCK_API_KEY": c.key}
            got = lib.run("queue", "push", "q", "x", "--server", f"http://{s.address}", env=env)
            assert got.returncode == 75 and "storage quota exceeded: " in got.stderr, got
            c.close()


def test_schedules_count():
    with lib.Server(store="sqlite") as s:
        c = tenant(s, "acme", "operator", bytes=100000)
        def add(i, client):
            body = {"queue": "q", "schedule": "@yearly", "payload": "x" * 30000}
            return client.put(f"/api/v1/crons/n{i}", body).status
        statuses = [add(i, c) for i in range(5)]
        assert [status < 300 for status in statuses] == [True] * 3 + [False] * 2, statuses
        assert statuses[3:] == [507, 507], statuses
        s.put("/api/v1/admin/tenants/acme", {"limits": {"bytes": 90000}}).expect(200)
        c.close()
        s.stop()
        # another server has to measure them
        with lib.Server(store=s.store, key=s.key) as other, other.new_client(c.key) as c:
            push = ("/api/v1/queues/q/jobs", {"payload": "x"})
            lib.eventually(lambda: c.post(*push).status == 507, 20, "the measurement")
            c.delete("/api/v1/crons/n0").expect(200)
            lib.eventually(lambda: c.post(*push).status == 201, 20, "the next measurement")


def test_bytes_are_measured():
    """what is stored counts for a server that did not admit it, too, and no more when deleted"""
    with lib.Server(store="sqlite") as s:
        c = tenant(s, "acme")
        for i in range(5):
            fill(c, f"v{i}", 20000).expect(200)
        s.put("/api/v1/admin/tenants/acme", {"limits": {"bytes": 100000}}).expect(200)
        # The limit is read within a second; then an op that brings something is measured.
        push = ("/api/v1/queues/q/jobs", {"payload": "x"})
        lib.eventually(lambda: c.post(*push).status == 507, 20, "the measurement")
        for i in range(5):
            c.post("/api/v1/cache/drop", {"key": f"v{i}"}).expect(200)
        lib.eventually(lambda: c.post(*push).status == 201, 20, "the next measurement")
        # A value that is built again and again takes its room once.
        for _ in range(3):
            lib.eventually(lambda: fill(c, "v", 40000).status == 200, 20, "room for the same value")
            c.post("/api/v1/cache/drop", {"key": "v"}).expect(200)
        fill(c, "v", 50000)
        c.close()
        s.stop()
        with lib.Server(store=s.store, key=s.key, env={"INTERLOCK_LIMIT_BYTES": "40000"}) as other:
            s.put = other.put
            s.put("/api/v1/admin/tenants/acme", {"limits": {"bytes": 0}}).expect(200)
            with other.new_client(c.key) as c:
                lib.eventually(lambda: c.post(*push).status == 507, 20, "the server's default")


def test_quota_under_load():
    """Many at once do not slip through between the look and the grant, also when each must wait for a commit."""
    for store in ("memory:", "sqlite"):
        with lib.Server(store=store) as s:
            s.post("/api/v1/admin/tenants", {"id": "small", "limits": {"locks": 10, "jobs": 20}}).expect(201)
            key = s.key_for("small")

            def work(i):
                with s.new_client(key) as c:
                    return (c.post("/api/v1/locks/acquire", {"key": f"k{i}", "ttl_ms": 60000}).status,
                            c.post("/api/v1/queues/q/jobs", {"items": [{"payload": "x"}, {"payload": "y"}]}).status)

            got = lib.together(32, work)
            locks, jobs = [g[0] for g in got], [g[1] for g in got]
            assert locks.count(200) == 10 and locks.count(429) == 22, (store, locks)
            assert jobs.count(429) == 22, (store, jobs)
            # What was refused, or is over, takes no place.
            with s.new_client(key) as c:
                held = c.get("/api/v1/locks").expect(200).json["items"]
                assert len(held) == 10
                c.post("/api/v1/locks/release", {k: held[0][k] for k in ("key", "holder", "fence")}).expect(200)
                c.post("/api/v1/locks/acquire", {"key": "next"}).expect(200)
                c.post("/api/v1/locks/acquire", {"key": "too many"}).expect(429, "QUOTA_EXCEEDED")


lib.main(globals())
