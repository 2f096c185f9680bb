"""Locks over HTTP: waiting, order of waiters, cancelled waits, breaks, modes, deadlocks."""
import json
import threading
import time

import lib

A = "/api/v1/locks/acquire"


def release(client, lease):
    return client.post("/api/v1/locks/release", {k: lease[k] for k in ("key", "holder", "fence")}).expect(200)


def waiters(s, key):
    return s.get(f"/api/v1/locks/why?key={key}").expect(200).json["waiters"]


def in_thread(work):
    box = {}

    def run():
        try:
            box["got"] = work()
        except BaseException as why:  # pylint: disable=broad-except
            box["failed"] = why

    thread = threading.Thread(target=run)
    thread.start()

    def join():
        thread.join(60)
        assert not thread.is_alive()
        if "failed" in box:
            raise box["failed"]
        return box["got"]

    return join


def test_waiting_for_a_key():
    """wait_ms, and ?wait: granted when it is released, 409 LOCK_HELD when the time is over"""
    for store in ("memory:", "sqlite"):
        with lib.Server(store=store) as s:
            lease = s.post(A, {"key": "k", "holder": "a"}).expect(200).json
            for body, query in (({"wait_ms": 20000}, ""), ({}, "?wait=20s"), ({"wait_ms": 60000}, "?wait=20s")):
                holder = f"b{query}{body}"
                client = s.new_client()
                join = in_thread(lambda c=client, b=body, q=query, h=holder: c.post(A + q, {"key": "k", "holder": h, **b}))
                lib.eventually(lambda: waiters(s, "k"), what="the waiter")
                release(s, lease)
                lease = join().expect(200).json
                assert lease["holder"] == holder
                client.close()
            began = time.monotonic()
            s.post(A, {"key": "k", "holder": "c", "wait_ms": 700}).expect(409, "LOCK_HELD")
            assert 0.5 < time.monotonic() - began < 10
            assert waiters(s, "k") == []


def test_waiters_are_served_in_order():
    """20 waiters of one key get it in the order they came"""
    with lib.Server(store="sqlite") as s:
        lease = s.post(A, {"key": "k", "holder": "first"}).expect(200).json
        order, joins, clients = [], [], []
        for i in range(20):
            client = s.new_client()
            clients.append(client)

            def work(i=i, client=client):
                mine = client.post(A, {"key": "k", "holder": f"w{i}", "wait_ms": 50000}).expect(200).json
                order.append(i)
                release(client, mine)

            joins.append(in_thread(work))
            lib.eventually(lambda n=i + 1: len(waiters(s, "k")) == n, what=f"waiter {i}")
        release(s, lease)
        for join in joins:
            join()
        assert order == list(range(20)), order
        for client in clients:
            client.close()


def test_a_wait_beyond_a_minute_is_kept_in_the_queue():
    """a longer own wait than the request is kept open: 202 QUEUED, the place stays, a repeat goes on"""
    with lib.Server() as s:
        lease = s.post(A, {"key": "k", "holder": "a"}).expect(200).json
        first = s.post(A + "?wait=300ms", {"key": "k", "holder": "b", "wait_ms": 3600000}).expect(202).json
        assert first["status"] == "QUEUED" and first["position"] == 1, first
        s.post(A + "?wait=300ms", {"key": "k", "holder": "c", "wait_ms": 3600000}).expect(202)
        again = s.post(A + "?wait=300ms", {"key": "k", "holder": "b", "wait_ms": 3600000}).expect(202).json
        assert again["ticket"] == first["ticket"]
        release(s, lease)
        s.post(A + "?wait=10s", {"key": "k", "holder": "b", "wait_ms": 3600000}).expect(200)


def test_a_client_that_hangs_up_leaves_the_queue():
    """a waiter whose connection ends does not get the key"""
    with lib.Server() as s:
        lease = s.post(A, {"key": "k", "holder": "a"}).expect(200).json
        sock = s.socket()
        body = b'{"key":"k","holder":"gone","wait_ms":60000}'
        sock.sendall(b"POST /api/v1/locks/acquire HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nX-API-Key: " + s.key.encode() +
                     b"\r\nContent-Length: " + str(len(body)).encode() + b"\r\n\r\n" + body)
        lib.eventually(lambda: waiters(s, "k"), what="the waiter")
        sock.close()
        lib.eventually(lambda: not waiters(s, "k"), what="its leaving")
        release(s, lease)
        assert s.get("/api/v1/locks/why?key=k").json["state"] == "free"


def test_modes_and_semaphores():
    """shared leases get along, permits are counted"""
    with lib.Server() as s:
        one = s.post(A, {"key": "k", "holder": "a", "mode": "shared"}).expect(200).json
        s.post(A, {"key": "k", "holder": "b", "mode": "shared"}).expect(200)
        s.post(A, {"key": "k", "holder": "c"}).expect(409, "LOCK_HELD")
        assert len(s.get("/api/v1/locks/get?key=k").json["leases"]) == 2
        s.post("/api/v1/fences/check", {"key": "k", "fence": one["fence"]}).expect(200)
        for i in range(3):
            s.post(A, {"key": "pool", "holder": f"h{i}", "mode": "permit", "permits": 3}).expect(200)
        s.post(A, {"key": "pool", "holder": "h3", "mode": "permit", "permits": 3}).expect(409, "LOCK_HELD")
        s.post(A, {"key": "pool", "holder": "h3", "mode": "permit", "permits": 4}).expect(422, "MISMATCH")
        s.post("/api/v1/locks/break", {"key": "pool", "reason": "all of them", "now": True}).expect(200)
        s.get("/api/v1/locks/get?key=pool").expect(404, "NOT_HELD")


def test_deadlock():
    """a wait that would close a cycle is refused, with the cycle in the message"""
    with lib.Server() as s:
        s.post(A, {"key": "a", "holder": "one"}).expect(200)
        second = s.post(A, {"key": "b", "holder": "two"}).expect(200).json
        client = s.new_client()
        join = in_thread(lambda: client.post(A, {"key": "b", "holder": "one", "wait_ms": 30000}))
        lib.eventually(lambda: waiters(s, "b"), what="the waiter")
        refused = s.post(A, {"key": "a", "holder": "two", "wait_ms": 30000}).expect(409, "DEADLOCK")
        assert "one" in refused.json["error"]["message"] and "two" in refused.json["error"]["message"]
        release(s, second)
        join().expect(200)
        client.close()


def test_break_closes_until_the_holder_lets_go():
    """a plain break: the key stays closed, the holder is told, then it is free"""
    with lib.Server() as s:
        lease = s.post(A, {"key": "k", "holder": "a"}).expect(200).json
        broken = s.post("/api/v1/locks/break", {"key": "k", "reason": "test"}).expect(200).json
        assert broken["closing"] and broken["holder"] == "a"
        s.post("/api/v1/locks/renew", {k: lease[k] for k in ("key", "holder", "fence")}).expect(409, "LEASE_LOST")
        s.post(A, {"key": "k", "holder": "b"}).expect(409, "LOCK_HELD")
        release(s, lease)
        s.post(A, {"key": "k", "holder": "b"}).expect(200)
        s.post("/api/v1/locks/break", {"key": "k", "reason": "late", "fence": lease["fence"]}).expect(409, "FENCE_STALE")


def test_break_of_more_holders_than_are_shown():
    """The server refuses to break only some of them; the command breaks all."""
    with lib.Server(store="sqlite") as s:
        many = [{"op": "acquire", "key": "many", "holder": f"h{i}", "mode": "shared"} for i in range(1100)]
        last = s.post("/api/v1/batch", {"ops": many + [{"op": "acquire", "key": "many-more"}]}).expect(200).json["results"][-2]
        s.post("/api/v1/locks/break", {"key": "many", "reason": "r", "now": True}).expect(409, "WRONG_STATE")
        s.post("/api/v1/locks/break", {"key": "many", "reason": "r", "now": True, "fence": last["fence"]}).expect(200)
        for now in ([], ["--now"]):
            done = lib.run("break", "many", "--reason", "r", *now, "--store", s.store)
            assert done.returncode == 0 and done.stdout.count("broken: many,") == 1099, done
        s.get("/api/v1/locks/get?key=many").expect(404)
        s.get("/api/v1/locks/get?key=many-more").expect(200)


def test_key_with_a_prefix():
    """a key with a prefix: names outside are not found by reads and forbidden to writes; listings show what is inside"""
    with lib.Server() as s:
        s.post(A, {"key": "team:a", "holder": "h"}).expect(200)
        s.post(A, {"key": "other:b", "holder": "h"}).expect(200)
        s.post("/api/v1/queues/other:q/jobs", {"payload": "x"}).expect(201)
        job = s.post("/api/v1/queues/other:q/claim", {"worker": "w"}).expect(200).json["items"][0]
        run = s.post("/api/v1/runs", {"key": "other:run"}).expect(201).json
        s.post("/api/v1/runs", {"key": "team:run"}).expect(201)
        c = s.new_client(s.key_for("default", "operator", prefix="team:"))
        assert [i["key"] for i in c.get("/api/v1/locks").expect(200).json["items"]] == ["team:a", "team:run"]
        assert c.get("/api/v1/locks?prefix=other:").expect(200).json["items"] == []
        assert [i["key"] for i in c.get("/api/v1/locks?prefix=te").expect(200).json["items"]] == ["team:a", "team:run"]
        assert [i["key"] for i in c.get("/api/v1/runs").expect(200).json["items"]] == ["team:run"]
        assert c.get("/api/v1/queues").expect(200).json["items"] == []
        hidden, free = c.get("/api/v1/locks/get?key=other:b"), c.get("/api/v1/locks/get?key=team:nothing")
        assert (hidden.status, hidden.body) == (free.status, free.body) and hidden.status == 404
        assert c.get("/api/v1/locks/why?key=other:b").expect(200).json["state"] == "free"
        c.post("/api/v1/fences/check", {"key": "other:b", "fence": 1}).expect(409)
        c.post(A, {"key": "other:c", "holder": "h"}).expect(403, "FORBIDDEN")
        c.post("/api/v1/locks/break", {"key": "other:b", "reason": "x", "now": True})
        assert s.get("/api/v1/locks/get?key=other:b").status == 200
        nothing = c.get("/api/v1/jobs/nothing").expect(404)
        for answer in (c.get(f"/api/v1/jobs/{job['id']}"), c.post(f"/api/v1/jobs/{job['id']}/finish", {"token": job["token"]}),
                       c.post(f"/api/v1/jobs/{job['id']}/cancel")):
            assert (answer.status, answer.body) == (404, nothing.body), answer
        nothing = c.get("/api/v1/runs/nothing").expect(404)
        for answer in (c.get(f"/api/v1/runs/{run['id']}"), c.get(f"/api/v1/runs/{run['id']}/log"),
                       c.post(f"/api/v1/runs/{run['id']}/cancel", {"reason": "x"})):
            assert (answer.status, answer.body) == (404, nothing.body), answer
        c.post("/api/v1/queues/other:q/jobs", {"payload": "x"}).expect(403, "FORBIDDEN")
        c.post("/api/v1/queues/team:q/jobs", {"payload": "x"}).expect(201)
        results = c.post("/api/v1/batch", {"ops": [{"op": "acquire", "key": "other:z", "holder": "h"}, {"op": "acquire", "key": "team:z", "holder": "h"},
                                                   {"op": "get", "key": "other:b"}, {"op": "job_get", "id": job["id"]}, {"op": "list"},
                                                   {"op": "sweep"}]}).expect(200).json["results"]
        assert [r["status"] for r in results] == ["FORBIDDEN", "OK", "NOT_HELD", "NOT_FOUND", "OK", "FORBIDDEN"], results
        assert all(i["key"].startswith("team:") for i in results[4]["items"])
        assert s.get(f"/api/v1/jobs/{job['id']}").json["state"] == "RUNNING"
        c.close()


def learn(client, *keys):
    """one unit of work takes these keys, one after the other, and lets go of them; the warnings"""
    leases = [client.post(A, {"key": key, "holder": "h-" + "-".join(keys), "place": f"at {key}"}).expect(200).json for key in keys]
    for lease in leases:
        release(client, lease)
    return [lease.get("warning") for lease in leases]


def edges(client, query=""):
    """a>b: learned, !: inverted, +: declared"""
    items = client.get("/api/v1/locks/order" + query).expect(200).json["items"]
    return [f"{i['from']}>{i['to']}{'!' * i['inverted']}{'+' * i['declared']}" for i in items]


def test_lock_order():
    """what was learned is listed with both places, inversions on both sides; page by page, and only that of the tenant"""
    for store in ("memory:", "sqlite"):
        with lib.Server(store=store) as s:
            assert edges(s) == []
            assert learn(s, "a:1", "b:1", "c:1") == [None] * 3
            assert edges(s) == ["a>b", "a>c", "b>c"]
            assert learn(s, "d:1", "a:2") == [None] * 2
            warning = learn(s, "c:3", "b:3")[1]
            assert "at b:1" in warning and "at c:1" in warning, warning
            assert edges(s) == ["a>b", "a>c", "b>c!", "c>b!", "d>a"]
            there = s.get("/api/v1/locks/order").json["items"][3]
            assert (there["from_place"], there["to_place"]) == ("at c:3", "at b:3")
            page = s.get("/api/v1/locks/order?limit=3").expect(200).json
            assert page["next"] and edges(s, f"?limit=3&cursor={page['next']}") == ["c>b!", "d>a"]
            s.get("/api/v1/locks/order?limit=1001").expect(400, "BAD_REQUEST")
            with s.new_client(s.key_for("acme", "read")) as c:
                assert edges(c) == []


def test_lock_order_and_ranks():
    """the ranks of the server mark edges, and an edge against them is inverted"""
    with lib.Server(store="sqlite", env={"INTERLOCK_RANKS": "a,b"}) as s:
        learn(s, "a:1", "b:1")
        learn(s, "b:2", "c:2")
        assert edges(s) == ["a>b+", "b>c"]
        learn(s, "c:3", "a:3")
        assert edges(s) == ["a>b!+", "b>c!", "c>a!"]


def test_lock_order_within_a_prefix():
    """a key with a prefix sees edges between classes whose keys it all covers"""
    with lib.Server() as s:
        learn(s, "ta:1", "tb:1", "u:1")
        for prefix, seen in (("t", ["ta>tb"]), ("ta", []), ("ta:", []), ("u", []), ("x", [])):
            with s.new_client(s.key_for("default", "read", prefix=prefix)) as c:
                assert edges(c) == seen, prefix
                assert edges(c, "?prefix=u") == []
                told = c.post("/api/v1/batch", {"ops": [{"op": "order_list"}]}).expect(200).json["results"][0]
                assert len(told.get("items", [])) == len(seen), told


def past(client, key):
    return client.get(f"/api/v1/locks/history?key={key}").expect(200).json["items"]


def test_history():
    """what the server refuses is counted by caller, and in the history a moment later; breaks name who did it"""
    for store in ("memory:", "sqlite"):
        with lib.Server(store=store) as s:
            who = {"pid": 4711, "host": "a", "user": "u", "command": "sleep 20", "cwd": "/"}
            lease = s.post(A, {"key": "k", "holder": "h", "meta": json.dumps(who)}).expect(200).json
            for i in range(30):
                me = json.dumps({"pid": i, "host": "b", "command": "report.sh"})
                s.post(A, {"key": "k", "holder": f"r{i}", "meta": me}).expect(409, "LOCK_HELD")
            s.post(A, {"key": "k", "holder": "x"}).expect(409, "LOCK_HELD")
            lib.eventually(lambda: sum(e["count"] for e in past(s, "k")) == 31)
            events = {e["meta"].get("command"): e for e in past(s, "k")}
            assert len(events) == 2, events
            event = events["report.sh"]
            assert (event["event"], event["count"], event["holder"], event["fence"]) == ("refused", 30, "h", lease["fence"])
            assert event["meta"]["host"] == "b" and "pid" not in event["meta"] and "api_key" in event["meta"], event
            assert event["other"] == who and event["first_at"] <= event["last_at"] and event["since"]
            s.post("/api/v1/locks/break", {"key": "k", "reason": "stuck", "now": True}).expect(200)
            event = past(s, "k")[0]
            assert (event["event"], event["reason"], event["holder"]) == ("broken", "stuck", "h")
            assert event["other"]["api_key"], event
            why = s.get("/api/v1/locks/why?key=k").expect(200).json
            assert why["state"] == "free" and [e["event"] for e in why["events"]] == ["broken", "refused", "refused"]
            with s.new_client(s.key_for("acme", "read")) as c:
                assert past(c, "k") == []


def test_refused_runs():
    """a start that is skipped or rejected is a refusal, one that joins is none"""
    with lib.Server(store="sqlite") as s:
        s.post("/api/v1/runs", {"key": "p", "id": "r1", "holder": "h"}).expect(201)
        s.post("/api/v1/runs", {"key": "p", "id": "r2", "on_conflict": "join"})
        s.post("/api/v1/runs", {"key": "p", "id": "r3", "on_conflict": "skip", "by": "cron"})
        s.post("/api/v1/runs", {"key": "p", "id": "r4", "on_conflict": "reject", "by": "cron"}).expect(409)
        lib.eventually(lambda: sum(e["count"] for e in past(s, "p")) == 2)
        assert all(e["meta"]["by"] == "cron" and e["holder"] == "h" for e in past(s, "p"))


def test_history_within_a_prefix():
    """a key with a prefix sees the history of its own keys"""
    with lib.Server() as s:
        for key in ("ta", "u"):
            s.post("/api/v1/locks/refused", {"key": key, "meta": "m"}).expect(200)
        with s.new_client(s.key_for("default", "write", prefix="t")) as c:
            assert [e["meta"] for e in past(c, "ta")] == ["m"]
            assert past(c, "u") == []
            c.post("/api/v1/locks/refused", {"key": "u", "meta": "m"}).expect(403)
        with s.new_client(s.key_for("default", "read")) as c:
            c.post("/api/v1/locks/refused", {"key": "u", "meta": "m"}).expect(403)


lib.main(globals())
