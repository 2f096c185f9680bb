"""Tenants are isolated: another tenant's objects look like missing ones."""
import json
import os
import random
import uuid

import lib

PROBES = int(os.environ.get("IL_TEST_PROBES", "10000"))
CANARY = "canary-of-alpha"


def fill(c):
    """Things of one tenant; the canary is in everything that a caller can put into them."""
    ids = {"run": [], "job": [], "queue": [], "key": [], "fence": [], "token": [], "cron": [], "cache": [], "pipeline": []}
    for i in range(10):
        key = f"pipeline:secret-{i}-{uuid.uuid4().hex}"
        got = c.post("/api/v1/locks/acquire", {"key": key, "holder": f"{CANARY}-{i}", "ttl_ms": 3600000, "meta": CANARY}).expect(200).json
        ids["key"].append(key)
        ids["fence"].append(got["fence"])
        ids["pipeline"].append(key.split(":", 1)[1])
        run = c.post("/api/v1/runs", {"key": f"run-{uuid.uuid4().hex}", "ttl_ms": 3600000, "meta": CANARY, "by": CANARY}).expect(201).json
        c.post(f"/api/v1/runs/{run['id']}/stage", {"holder": run["id"], "fence": run["fence"], "stage": CANARY, "log": CANARY + "\n"}).expect(200)
        ids["run"].append(run["id"])
        queue = f"queue-{i}-{uuid.uuid4().hex}"
        c.post(f"/api/v1/queues/{queue}/jobs", {"payload": CANARY, "group": CANARY}).expect(201)
        job = c.post(f"/api/v1/queues/{queue}/claim", {"worker": CANARY, "lease_ms": 3600000}).expect(200).json["items"][0]
        c.post(f"/api/v1/queues/{queue}/jobs", {"payload": CANARY, "unique_key": CANARY}).expect(201)
        ids["queue"].append(queue)
        ids["job"].append(job["id"])
        ids["token"].append(job["token"])
        name = f"cron-{i}-{uuid.uuid4().hex}"
        c.put(f"/api/v1/crons/{name}", {"queue": queue, "schedule": "0 0 1 1 *", "payload": CANARY}).expect(200)
        ids["cron"].append(name)
        cache = f"cache-{uuid.uuid4().hex}"
        led = c.post("/api/v1/cache/lookup", {"key": cache, "holder": CANARY}).expect(202).json
        c.post("/api/v1/cache/fill", {"key": cache, "holder": CANARY, "token": led["token"], "value": CANARY, "ttl_ms": 3600000}).expect(200)
        ids["cache"].append(cache)
    return ids


def snapshot(c, ids):
    """All that the tenant has, without what time changes (when a lease was acquired is reckoned from its age)."""
    def clean(thing):
        if isinstance(thing, dict):
            return {k: clean(v) for k, v in thing.items() if not k.endswith("_ms") and k not in ("expires_at", "acquired_at", "now", "workers")}
        return [clean(t) for t in thing] if isinstance(thing, list) else thing

    paths = ["/api/v1/locks?limit=1000", "/api/v1/runs?limit=1000", "/api/v1/queues?limit=1000", "/api/v1/crons?limit=1000",
             "/api/v1/locks/order?limit=1000", "/api/v1/locks/history?key=k", "/api/v1/cache/stats"]
    paths += [f"/api/v1/runs/{i}" for i in ids["run"]] + [f"/api/v1/runs/{i}/log" for i in ids["run"]]
    paths += [f"/api/v1/jobs/{i}" for i in ids["job"]] + [f"/api/v1/queues/{q}/jobs" for q in ids["queue"]]
    return [clean(c.get(path).expect(200).json) for path in paths]


# What is asked about one thing: ids → method, path, body. Nothing of it makes anything in the tenant of who asks.
def probes(i):
    run, job, queue, key, fence, token, cron, cache, pipeline = (
        i[k] for k in ("run", "job", "queue", "key", "fence", "token", "cron", "cache", "pipeline"))
    return [
        ("GET", f"/api/v1/runs/{run}", None), ("GET", f"/api/v1/runs/{run}/log", None),
        ("POST", f"/api/v1/runs/{run}/stage", {"holder": "h", "stage": "x", "fence": fence}),
        ("POST", f"/api/v1/runs/{run}/finish", {"holder": "h", "state": "COMPLETED", "fence": fence}),
        ("POST", f"/api/v1/runs/{run}/cancel", {"reason": "x"}),
        ("GET", f"/api/v1/jobs/{job}", None),
        ("POST", f"/api/v1/jobs/{job}/heartbeat", {"token": token}), ("POST", f"/api/v1/jobs/{job}/finish", {"token": token}),
        ("POST", f"/api/v1/jobs/{job}/fail", {"token": token, "error": "x"}),
        ("POST", f"/api/v1/jobs/{job}/snooze", {"token": token, "delay_ms": 1000}),
        ("POST", f"/api/v1/jobs/{job}/cancel", {"reason": "x", "now": True}), ("POST", f"/api/v1/jobs/{job}/retry", {}),
        ("POST", f"/api/v1/jobs/{job}/seal", {}),
        ("POST", "/api/v1/jobs/finish", {"items": [{"id": job, "token": token}]}),
        ("POST", "/api/v1/jobs/heartbeat", {"items": [{"id": job, "token": token}]}),
        ("GET", f"/api/v1/queues/{queue}", None), ("GET", f"/api/v1/queues/{queue}/jobs", None),
        ("POST", f"/api/v1/queues/{queue}/claim", {"worker": "w"}),
        ("POST", f"/api/v1/queues/{queue}/purge", {"state": ["READY", "COMPLETED"]}),
        ("GET", f"/api/v1/queues?prefix={queue}", None), ("GET", f"/api/v1/locks?prefix={key}", None),
        ("GET", f"/api/v1/locks?prefix={key}&waiters=true", None), ("GET", f"/api/v1/runs?prefix={key}", None),
        ("GET", f"/api/v1/locks/get?key={key}", None), ("GET", f"/api/v1/locks/why?key={key}", None),
        ("POST", "/api/v1/locks/renew", {"key": key, "holder": "h", "fence": fence}),
        ("POST", "/api/v1/locks/release", {"key": key, "holder": "h", "fence": fence}),
        ("POST", "/api/v1/locks/break", {"key": key, "reason": "x", "now": True}),
        ("POST", "/api/v1/fences/check", {"key": key, "fence": fence}),
        ("DELETE", f"/api/v1/crons/{cron}", None), ("GET", f"/api/v1/crons?prefix={cron}", None),
        ("POST", "/api/v1/cache/get", {"key": cache}), ("POST", "/api/v1/cache/abandon", {"key": cache, "holder": "h", "token": token}),
        ("POST", "/api/v1/cache/fill", {"key": cache, "holder": "h", "token": token, "value": "x", "ttl_ms": 1000}),
        ("GET", f"/api/v1/cache/stats?prefix={cache}", None),
        ("DELETE", f"/api/v1/admin/locks/alpha/{pipeline}", {"reason": "x", "now": True}),
        ("DELETE", f"/api/v1/admin/locks/beta/{pipeline}", {"reason": "x", "now": True}),
        ("POST", "/api/v1/batch", {"ops": [{"op": "get", "key": key}, {"op": "job_get", "id": job}, {"op": "run_get", "id": run},
                                           {"op": "cache_get", "key": cache}, {"op": "job_cancel", "id": job, "reason": "x"},
                                           {"op": "run_cancel", "id": run, "reason": "x"},
                                           {"op": "release", "key": key, "holder": "h", "fence": fence}]}),
    ]


def alike(ids, rng):
    """Ids of the same form, of nothing."""
    out = {}
    for kind, value in ids.items():
        if isinstance(value, int):
            out[kind] = value + rng.choice([-1, 1]) * rng.randrange(1000, 100000)
        else:
            out[kind] = "".join(rng.choice("0123456789abcdef") if c in "0123456789abcdef" and n >= len(value) - 12 else c
                                for n, c in enumerate(value))
    return out


def neutral(answer, ids):
    text = answer.body.decode()
    for kind, value in sorted(ids.items(), key=lambda item: -len(str(item[1]))):
        text = text.replace(str(value), "<" + kind + ">")
    return answer.status, answer.headers.get("Content-Type"), answer.headers.get("Retry-After"), without_now(text)


def without_now(text):
    try:
        found = json.loads(text)
    except ValueError:
        return text
    for name in ("now", "at"):
        if isinstance(found, dict):
            found.pop(name, None)
    return json.dumps(found)


def test_cross_tenant_probes():
    rng = random.Random(5)
    with lib.Server() as s:
        alpha = s.new_client(s.key_for("alpha", "operator"))
        beta = s.key_for("beta", "operator")
        ids = fill(alpha)
        before = snapshot(alpha, ids)
        rounds = [({kind: rng.choice(values) for kind, values in ids.items()}, rng.randrange(1 << 30)) for _ in range(PROBES)]

        def work(i):
            n, seen = 0, set()
            with s.new_client(beta) as c:
                for theirs, seed in rounds[i::4]:
                    nothing = alike(theirs, random.Random(seed))
                    at = random.Random(seed).randrange(len(probes(theirs)))
                    method, path, body = probes(theirs)[at]
                    got = c.ask(method, path, body=body)
                    assert CANARY.encode() not in got.body, (method, path, got)
                    method, path2, body2 = probes(nothing)[at]
                    blank = c.ask(method, path2, body=body2)
                    assert neutral(got, theirs) == neutral(blank, nothing), (method, path, got, blank)
                    assert got.status in (200, 404, 409), (method, path, got)
                    seen.add((at, got.status))
                    n += 1
            return n, seen

        results = lib.together(4, work)
        assert sum(n for n, _ in results) == PROBES
        seen = set().union(*(found for _, found in results))
        print(f"# {PROBES} probes of {len(set(at for at, _ in seen))} kinds; statuses: {sorted(set(status for _, status in seen))}")
        for was, is_now in zip(before, snapshot(alpha, ids)):
            assert was == is_now, f"a probe has changed something:\n{json.dumps(was)}\n{json.dumps(is_now)}"
        alpha.close()


def test_same_names_never_meet():
    with lib.Server() as s:
        a, b = s.new_client(s.key_for("alpha", "operator")), s.new_client(s.key_for("beta", "operator"))
        for c in (a, b):
            c.post("/api/v1/locks/acquire", {"key": "k", "holder": CANARY + str(id(c))}).expect(200)
            c.post("/api/v1/queues/q/jobs", {"payload": str(id(c)), "unique_key": "u"}).expect(201)
            c.post("/api/v1/runs", {"key": "r"}).expect(201)
        assert len(a.get("/api/v1/locks").json["items"]) == 2 and len(b.get("/api/v1/queues/q/jobs").json["items"]) == 1
        assert str(id(a)) not in b.get("/api/v1/queues/q/jobs").body.decode()
        a.post("/api/v1/locks/break", {"key": "k", "reason": "x", "now": True}).expect(200)
        assert [i["key"] for i in b.get("/api/v1/locks?prefix=k").json["items"]] == ["k"]
        a.close()
        b.close()


def test_idempotency_keys_are_the_tenants_own():
    with lib.Server() as s:
        a, b = s.new_client(s.key_for("alpha")), s.new_client(s.key_for("beta"))
        header = {"Idempotency-Key": "the-same"}
        one = a.post("/api/v1/queues/q/jobs", {"payload": CANARY}, headers=header).expect(201).json
        two = b.post("/api/v1/queues/q/jobs", {"payload": "other"}, headers=header).expect(201).json
        assert one["id"] != two["id"]
        a.close()
        b.close()


def test_audit_of_others_is_hidden():
    with lib.Server() as s:
        a, b = s.new_client(s.key_for("alpha", "operator")), s.new_client(s.key_for("beta", "operator"))
        a.post("/api/v1/queues/q/jobs", {"payload": "x"}).expect(201)
        a.post("/api/v1/queues/q/pause", {"reason": CANARY}).expect(200)
        assert CANARY in a.get("/api/v1/admin/audit").expect(200).body.decode()
        assert CANARY not in b.get("/api/v1/admin/audit").expect(200).body.decode()
        b.get("/api/v1/admin/audit?tenant=alpha").expect(403)
        assert b.get("/api/v1/admin/audit?tenant=alpha").body == b.get("/api/v1/admin/audit?tenant=nobody").body
        assert CANARY in s.get("/api/v1/admin/audit?tenant=alpha").expect(200).body.decode()
        a.close()
        b.close()


lib.main(globals())
