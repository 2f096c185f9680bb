"""What a page shows at a glance: counts of the tenant, and samples of the last hour."""
import lib

STORES = ("memory:", "sqlite")
LONG_MS = 600000  # a TTL that ends in no test


def overview(client):
    return client.get("/api/v1/overview").expect(200).json


def acquire(client, keys, **more):
    ops = [{"op": "acquire", "key": key, "holder": "h", "ttl_ms": LONG_MS, **more} for key in keys]
    for i in range(0, len(ops), 100):
        results = client.post("/api/v1/batch", {"ops": ops[i:i + 100]}).expect(200).json["results"]
        assert all(r["status"] == "OK" for r in results), results[0]


def test_counts():
    """each number is that of the list behind it"""
    for store in STORES:
        with lib.Server(store=store) as s, s.new_client(s.key_for("default", "write")) as c:
            acquire(c, ["a:1", "a:2", "b:1"])
            c.post("/api/v1/runs", {"key": "r"}).expect(201)
            c.post("/api/v1/queues/mail/jobs", {"payload": "x"}).expect(201)
            c.post("/api/v1/queues/mail/jobs", {"payload": "x", "delay_ms": 600000}).expect(201)
            seen = overview(c)
            assert (seen.pop("leases_expiring"), seen.pop("runs_expiring")) == ([], []), seen
            assert not any(v["more"] for v in seen.values()), seen
            assert seen["locks"]["n"] == len(c.get("/api/v1/locks").json["items"]) == 4, seen
            assert (seen["runs"]["n"], seen["queues"]["n"], seen["waiters"]["n"]) == (1, 1, 0), seen
            jobs = [seen["jobs_" + what]["n"] for what in ("scheduled", "ready", "running", "failed")]
            assert jobs == [1, 1, 0, 0], seen
            (job,) = c.post("/api/v1/queues/mail/claim", {"worker": "w"}).expect(200).json["items"]
            fail = {"token": job["token"], "error": "no", "final": True}
            c.post(f"/api/v1/jobs/{job['id']}/fail", fail).expect(200)
            assert overview(c)["jobs_failed"]["n"] == 1


NEAR_MS = 20000  # a TTL: its last fifth, in which a lease is about to expire, is long enough to be seen


def near_many_others(store):
    """named, however many other locks and newer runs there are"""
    def named(answer):
        return [x["key"] for x in answer["leases_expiring"]], [x["key"] for x in answer["runs_expiring"]]

    with lib.Server(store=store) as s:
        acquire(s, [f"a:{i}" for i in range(120)] + ["z:other"])
        run = s.post("/api/v1/runs", {"key": "r", "holder": "w", "ttl_ms": LONG_MS, "by": "me"}).expect(201).json
        for i in range(60):
            s.post("/api/v1/runs", {"key": f"b:{i}", "ttl_ms": LONG_MS}).expect(201)
        s.post("/api/v1/locks/renew", {"key": "r", "holder": "w", "fence": run["fence"], "ttl_ms": NEAR_MS}).expect(200)
        acquire(s, ["z:last"], ttl_ms=NEAR_MS)
        seen = lib.eventually(lambda: (lambda o: o if named(o) == (["r", "z:last"], ["r"]) else None)(overview(s)),
                              seconds=30, what="the end of their TTL", pause=0.1)
        (near,) = seen["runs_expiring"]
        assert (near["run_id"], near["holder"], near["ttl_ms"]) == (run["id"], "w", NEAR_MS), seen
        assert 0 <= near["remaining_ms"] < NEAR_MS / 5 and seen["locks_expiring"]["n"] == 2, seen
        assert [x["run_id"] for x in seen["leases_expiring"]] == [None, None], seen


def near_at_once():
    """the first 20; all are counted"""
    with lib.Server() as s:
        acquire(s, [f"k:{i:02}" for i in range(30)], ttl_ms=NEAR_MS)
        assert overview(s)["locks_expiring"]["n"] == 0
        seen = lib.eventually(lambda: (lambda o: o if o["locks_expiring"]["n"] == 30 else None)(overview(s)),
                              seconds=30, what="the end of their TTL", pause=0.1)
        assert [x["key"] for x in seen["leases_expiring"]] == [f"k:{i:02}" for i in range(20)], seen


def test_near_their_end():
    """a lease with less than a fifth of its TTL left is about to expire"""
    parts = [near_at_once] + [lambda store=store: near_many_others(store) for store in STORES]
    lib.together(len(parts), lambda i: parts[i]())


def test_more_than_a_thousand():
    """counts end at 1,000"""
    for store in STORES:
        with lib.Server(store=store) as s:
            acquire(s, [f"k:{i}" for i in range(1000)])
            assert overview(s)["locks"] == {"n": 1000, "more": False}
            acquire(s, ["k:1000"])
            seen = overview(s)
            assert seen["locks"] == {"n": 1000, "more": True} and seen["locks_expiring"]["more"], seen


def test_who_sees_what():
    """other tenants are not counted, nor names outside the prefix of a key"""
    with lib.Server() as s:
        acquire(s, ["a:1", "b:1"])
        with s.new_client(s.key_for("acme", "read")) as other, s.new_client(s.key_for("default", "read", prefix="a")) as narrow:
            assert overview(other)["locks"]["n"] == 0
            assert overview(narrow)["locks"]["n"] == 1
        with s.new_client(s.key_for("acme", "none", permissions=["queue:claim"])) as worker:
            worker.get("/api/v1/overview").expect(403, "FORBIDDEN")


def samples(client):
    answer = client.get("/api/v1/samples").expect(200).json
    assert answer["interval_ms"] == 10000
    return answer["samples"]


def samples_of(store):
    with lib.Server(store=store) as s, s.new_client(s.key_for("acme", "write")) as c, s.new_client(s.key_for("other", "read")) as other:
        acquire(c, ["a", "b"])
        c.post("/api/v1/locks/acquire", {"key": "a", "holder": "you"}).expect(409)
        c.post("/api/v1/queues/mail/jobs", {"payload": "x"}).expect(201)
        c.post("/api/v1/cache/get", {"key": "c"}).expect(404)

        def counted(every):
            return [sum(x[name] for x in every) for name in ("acquires", "conflicts", "cache_hits", "cache_misses")] == [2, 1, 0, 1]

        def seen(every):
            return [(x["locks"], x["jobs_ready"], x["runs"]) for x in every[-1:]] == [(2, 1, 0)]
        # one may have been taken before the last of them
        every = lib.eventually(lambda: (lambda e: e if counted(e) and seen(e) else None)(samples(c)), seconds=40, what="their samples", pause=0.5)
        assert sum(x["requests"] for x in every) >= 4, every
        assert [x["at_ms"] for x in every] == sorted(x["at_ms"] for x in every)
        lib.eventually(lambda: samples(other), seconds=40, what="a sample of another tenant", pause=0.5)
        assert all(x["locks"] == x["acquires"] == 0 for x in samples(other)), samples(other)


def test_samples():
    """what happens is in one of the next samples, of its tenant only"""
    lib.together(len(STORES), lambda i: samples_of(STORES[i]))  # a sample is ten seconds away


def test_samples_are_of_a_whole_tenant():
    """a key with a prefix, or without the permission, does not get them"""
    with lib.Server() as s:
        with s.new_client(s.key_for("default", "read", prefix="a")) as narrow:
            narrow.get("/api/v1/samples").expect(403, "FORBIDDEN")
        with s.new_client(s.key_for("acme", "none", permissions=["queue:claim"])) as worker:
            worker.get("/api/v1/samples").expect(403, "FORBIDDEN")


lib.main(globals())
