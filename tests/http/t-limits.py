"""How much a tenant may do: rate, long polls, streams, locks, jobs; read again within a second (R1.17)."""
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


def made(s, path, body):
    """The answer, once the server lets us."""
    answer = s.post(path, body)
    return answer.json if answer.status in (201, 409) else None


def test_defaults_of_the_server_and_limits_of_a_tenant():
    with lib.Server(env={"INTERLOCK_LIMIT_REQUESTS": "1", "INTERLOCK_LIMIT_BURST": "3"}) as s:
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
            c.post("/api/v1/batch", {"ops": [{"op": "acquire", "key": "x", "holder": "x"}]}).expect(429)
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
            c.post(f"/api/v1/jobs/{job['id']}/finish", {"token": job["token"]}).expect(200)
            c.post("/api/v1/queues/q/jobs", {"payload": "x"}).expect(201)


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
