"""POST /batch: mixed ops, results in order, each op with the permission of its own route."""
import re

import lib

B = "/api/v1/batch"


def batch(s, *ops, **more):
    return s.post(B, {"ops": list(ops), **more}).expect(200).json["results"]


def test_every_op():
    """all op types work in a batch, raw too: it is what `--server` uses for everything"""
    with lib.Server() as s:
        doc = s.get("/openapi.json").json["components"]["schemas"]
        names = {doc[ref["$ref"].rsplit("/", 1)[1]]["properties"]["op"]["const"] for ref in doc["Op"]["oneOf"]}
        assert len(names) == 47, names
        seen = set()

        def one(expected, **op):
            result = batch(s, op, raw=True)[0]
            assert result["status"] == expected, (op, result)
            seen.add(op["op"])
            return result

        lease = one("OK", op="acquire", key="a", holder="h", ttl_ms=30000)
        one("OK", op="renew", key="a", holder="h", fence=lease["fence"])
        one("OK", op="get", key="a")
        one("OK", op="list", prefix="a")
        one("OK", op="order_list")
        one("OK", op="refused", key="a", meta="m")
        one("OK", op="history", key="a")
        one("OK", op="check_fence", key="a", fence=lease["fence"])
        one("OK", op="break", key="a", fence=lease["fence"], reason="r")
        one("OK", op="release", key="a", holder="h", fence=lease["fence"])
        one("OK", op="sweep")
        run = one("OK", op="run_start", key="p", id="r1", holder="h1")
        one("OK", op="run_stage", id="r1", holder="h1", fence=run["fence"], stage="s", log="x")
        one("OK", op="run_get", id="r1")
        one("OK", op="run_log", id="r1")
        one("OK", op="run_list")
        one("OK", op="run_cancel", id="r1", reason="r")
        one("OK", op="run_finish", id="r1", holder="h1", fence=run["fence"], state="COMPLETED")
        once = one("OK", op="once_begin", key="o", attempt="a1")
        one("IN_PROGRESS", op="once_get", key="o")
        one("OK", op="once_finish", key="o", attempt="a1", token=once["token"], response="done", code=201)
        again = one("REPLAY", op="once_begin", key="o", attempt="a2")
        assert (again["value"] if "value" in again else again["response"]) == "done" and again["code"] == 201, again
        other = one("OK", op="once_begin", key="o2", attempt="a1")
        one("OK", op="once_abandon", key="o2", attempt="a1", token=other["token"])
        for i in range(6):
            one("OK", op="push", queue="q", id=f"j{i}", payload={"n": i})
        jobs = one("OK", op="claim", queue="q", worker="w", claim_id="c1", limit=4)["items"]
        assert [j["payload"] for j in jobs] == ['{"n":%d}' % i for i in range(4)], jobs  # raw: the text
        token = {j["id"]: j["token"] for j in jobs}
        one("OK", op="heartbeat", id="j0", token=token["j0"], progress=5)
        one("OK", op="job_finish", id="j0", token=token["j0"], result="r")
        one("OK", op="job_fail", id="j1", token=token["j1"], error="e")
        one("OK", op="snooze", id="j2", token=token["j2"], delay_ms=1000)
        one("OK", op="job_cancel", id="j3", reason="r")
        one("OK", op="job_retry", id="j2")
        one("OK", op="push", queue="q", id="parent", is_parent=True)
        one("OK", op="job_seal", id="parent")
        one("OK", op="job_get", id="j0")
        one("OK", op="job_list", queue="q")
        one("OK", op="job_purge", queue="q", state="COMPLETED")
        one("OK", op="queue_set", queue="q", max_attempts=2)
        one("OK", op="queue_pause", queue="q", reason="r")
        one("OK", op="queue_pause", queue="q", resume=True)
        one("OK", op="queue_list")
        one("OK", op="cron_set", name="c", queue="q", schedule="@daily", payload="x")
        one("OK", op="cron_list")
        one("OK", op="cron_remove", name="c")
        assert one("OK", op="usage")["usage"]["rows"] > 5
        one("NOT_FOUND", op="cache_get", key="k")
        lead = one("LEAD", op="cache_lookup", key="k", holder="h")
        one("WAIT", op="cache_lookup", key="k", holder="h2")
        one("OK", op="cache_fill", key="k", holder="h", token=lead["token"], value="v", ttl_ms=60000)
        one("HIT", op="cache_get", key="k")
        one("OK", op="cache_abandon", key="k", holder="h", token=lead["token"])
        one("OK", op="cache_drop", key="k")
        one("OK", op="cache_stats")
        assert seen == names, names - seen


def test_order_and_commit():
    """results in the order of the ops; each sees what those before it did"""
    with lib.Server(store="sqlite") as s:
        results = batch(s, *[{"op": "acquire", "key": "k", "holder": f"h{i}"} for i in range(3)], {"op": "get", "key": "k"},
                        *[{"op": "push", "queue": "q", "payload": str(i)} for i in range(100)], {"op": "claim", "queue": "q", "limit": 100})
        assert [r["status"] for r in results[:4]] == ["OK", "LOCK_HELD", "LOCK_HELD", "OK"]
        assert [j["payload"] for j in results[-1]["items"]] == [str(i) for i in range(100)]


def test_limits():
    """1 to 4096 ops; what is wrong is named with its place"""
    with lib.Server() as s:
        s.post(B, {"ops": []}).expect(400)
        s.post(B, {}).expect(400)
        s.post(B, {"ops": {}}).expect(400)
        s.post(B, {"ops": [{"op": "get", "key": "k"}] * 4097}).expect(400)
        assert len(batch(s, *[{"op": "get", "key": "k"}] * 4096)) == 4096
        for op, word in (({}, "op"), ({"op": "nonsense"}, "nonsense"), ({"op": "get"}, "key"), ({"op": "get", "key": "k", "tenant": "x"}, "tenant"),
                         ({"op": "acquire", "key": "k", "holder": "h", "ttl_ms": 1}, "ttl_ms"), (1, "ops[1]"), ({"op": "get", "key": ""}, "key")):
            message = s.post(B, {"ops": [{"op": "get", "key": "k"}, op]}).expect(400, "BAD_REQUEST").json["error"]["message"]
            assert "ops[1]" in message and word in message, message
        message = s.post(B, {"ops": [{"op": "get", "key": "k"}], "nonsense": 1}).expect(400).json["error"]["message"]
        assert "nonsense" in message
        s.post(B, {"ops": [{"op": "get", "key": "k"}]}, headers={"Idempotency-Key": "x"}).expect(400)


def test_permissions():
    """an op that the key may not do is refused in its own result; the others go on"""
    with lib.Server() as s:
        ops = [{"op": "acquire", "key": "k", "holder": "h"}, {"op": "get", "key": "k"}, {"op": "queue_set", "queue": "q"}, {"op": "sweep"},
               {"op": "once_begin", "key": "o", "attempt": "a"}]
        for role, allowed in (("read", [0, 1, 0, 0, 0]), ("write", [1, 1, 0, 0, 1]), ("operator", [1, 1, 1, 1, 1])):
            with s.new_client(s.key_for("t_" + role, role)) as client:
                results = batch(client, *ops)
                assert [r["status"] != "FORBIDDEN" for r in results] == [bool(a) for a in allowed], (role, results)
        with s.new_client(s.key_for("t_named", "none", permissions=["queue:claim"])) as client:
            results = batch(client, {"op": "claim", "queue": "q"}, {"op": "push", "queue": "q"})
            assert [r["status"] for r in results] == ["NOT_FOUND", "FORBIDDEN"], results
            assert "queue_push" in results[1]["message"] or "write" in results[1]["message"]
        counted = re.search(rb"^interlock_auth_forbidden_total (\d+)", s.get("/metrics").body, re.M)
        assert int(counted.group(1)) == 4 + 2 + 1, counted


def test_tenants():
    """an op in a batch is the caller's tenant's, whatever it says"""
    with lib.Server() as s:
        s.post("/api/v1/locks/acquire", {"key": "k", "holder": "h"}).expect(200)
        with s.new_client(s.key_for("other", "operator")) as client:
            assert batch(client, {"op": "get", "key": "k"})[0]["status"] == "NOT_HELD"
            assert batch(client, {"op": "acquire", "key": "k", "holder": "h2"})[0]["status"] == "OK"


def test_a_wait():
    """wait_ms of a batch with one op keeps the request open; that of the op is its place in the queue"""
    with lib.Server() as s:
        s.post("/api/v1/locks/acquire", {"key": "k", "holder": "h"}).expect(200)
        wait = {"op": "acquire", "key": "k", "holder": "w", "wait_ms": 60000}
        assert batch(s, wait)[0]["status"] == "QUEUED"
        assert batch(s, wait, wait_ms=300)[0]["status"] == "QUEUED"
        assert len(s.get("/api/v1/locks?waiters=true").json["items"]) == 1
        assert batch(s, {**wait, "wait_ms": 0})[0]["status"] == "LOCK_HELD"
        refused = s.post(B, {"ops": [wait, {"op": "list"}], "wait_ms": 100}).expect(400, "BAD_REQUEST")
        assert "one op can wait" in refused.json["error"]["message"]
        assert s.get("/api/v1/locks?waiters=true").json["items"] == []


lib.main(globals())
