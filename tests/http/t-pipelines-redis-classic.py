"""Mixed fleets on Redis: clients that do SET pipeline_lock:TENANT:PIPELINE RUNID NX EX TTL and compare-and-delete block us, and we block them."""
import os
import subprocess
import uuid

import lib
from fleet import Fleet, command, pipeline, script, servers, until

COMPARE_AND_DELETE = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end"


def redis(*args):
    """redis-cli; None for nil."""
    got = subprocess.run(["redis-cli", "-s", os.environ["IL_TEST_REDIS"], *map(str, args)], capture_output=True, text=True, check=True, timeout=20)
    text = got.stdout.strip("\n")
    return None if text == "" else text


class Classic:
    """Somebody else's client of the classic form."""

    def __init__(self, tenant, name):
        self.key, self.value = f"pipeline_lock:{tenant}:{name}", str(uuid.uuid4())

    def acquire(self, ttl=60):
        return redis("SET", self.key, self.value, "NX", "EX", ttl) == "OK"

    def holder(self):
        return redis("GET", self.key)

    def release(self):
        return redis("EVAL", COMPARE_AND_DELETE, 1, self.key, self.value) == "1"


def fleet(tenant, **more):
    servers()
    f = Fleet("classic", **more)
    f.put(tenant, {"etl": script(until(f.path("go"))), "strict": pipeline("strict", command("true"), on_conflict="reject", lock_acquisition_retries=0)})
    f.a.post("/pipelines/reload").expect(200)
    return f


def test_ours_blocks_theirs():
    """while a run of ours runs, SET … NX fails, and GET shows the run's id; afterwards it succeeds"""
    tenant = "t" + uuid.uuid4().hex[:12]
    with fleet(tenant) as f:
        client = f.a.new_client(f.a.key_for(tenant))
        classic = Classic(tenant, "etl")
        run = client.post("/pipelines/run/etl").expect(200).json["pipeline_logging_id"]
        lib.eventually(lambda: client.get(f"/pipelines/runs/{run}").json["status"] == "RUNNING", what="the run")
        assert not classic.acquire(), "the classic client got the lock of a running run"
        assert classic.holder() == run, (classic.holder(), run)
        assert not classic.release(), "compare-and-delete with another value"
        assert int(redis("PTTL", classic.key)) > 0
        f.open("go")
        lib.eventually(lambda: client.get(f"/pipelines/runs/{run}").json["status"] == "COMPLETED", what="its end")
        lib.eventually(classic.acquire, what="the classic client's turn")
        assert classic.release()


def test_theirs_without_end():
    """a classic client's lock without EX is listed, and never about to expire"""
    tenant = "t" + uuid.uuid4().hex[:12]
    with fleet(tenant) as f:
        client = f.a.new_client(f.a.key_for(tenant))
        classic = Classic(tenant, "etl")
        assert redis("SET", classic.key, classic.value, "NX") == "OK"
        (lock,) = client.get("/api/v1/locks").expect(200).json["items"]
        assert (lock["holder"], lock["remaining_ms"]) == (classic.value, None), lock
        seen = client.get("/api/v1/overview").expect(200).json
        assert (seen["locks"]["n"], seen["locks_expiring"]["n"], seen["leases_expiring"]) == (1, 0, []), seen
        assert classic.release()


def test_theirs_blocks_ours():
    """a classic client's lock is who runs: its id is told to those who join, 409 to those who do not; its release lets us start"""
    tenant = "t" + uuid.uuid4().hex[:12]
    with fleet(tenant) as f:
        client = f.a.new_client(f.a.key_for(tenant))
        classic, strict = Classic(tenant, "etl"), Classic(tenant, "strict")
        assert classic.acquire() and strict.acquire()
        held = client.post("/pipelines/run/etl").expect(200).json
        assert held["status"] == "RUNNING" and held["pipeline_logging_id"] == classic.value, held
        refused = client.post("/pipelines/run/strict").expect(409, "LOCK_HELD")
        assert refused.json["error"]["details"]["holder"] == strict.value, refused
        assert client.get("/pipelines/runs").json["items"] == []
        assert classic.holder() == classic.value, "we took a classic client's lock away"
        assert classic.release() and strict.release()
        f.open("go")
        run = client.post("/pipelines/run/etl").expect(200).json
        assert run["status"] == "PENDING"
        lib.eventually(lambda: client.get(f"/pipelines/runs/{run['pipeline_logging_id']}").json["status"] == "COMPLETED", what="our run")


def test_theirs_comes_between():
    """a classic client that takes the key after our trigger and before our start is waited for, not overrun"""
    tenant = "t" + uuid.uuid4().hex[:12]
    with fleet(tenant, env={"INTERLOCK_RUNS_MAX": "1"}) as f:
        f.put(tenant, {"other": script(until(f.path("other")))})
        f.a.post("/pipelines/reload").expect(200)
        client = f.a.new_client(f.a.key_for(tenant))
        busy = client.post("/pipelines/run/other").expect(200).json["pipeline_logging_id"]
        lib.eventually(lambda: client.get(f"/pipelines/runs/{busy}").json["status"] == "RUNNING", what="the first run")
        run = client.post("/pipelines/run/etl").expect(200).json["pipeline_logging_id"]
        classic = Classic(tenant, "etl")
        assert classic.acquire()
        f.open("other")
        f.open("go")
        lib.eventually(lambda: client.get(f"/pipelines/runs/{busy}").json["status"] == "COMPLETED", what="room")
        f.a.get("/pipelines").expect(200)
        assert client.get(f"/pipelines/runs/{run}?wait=2s").json["status"] == "PENDING"
        assert classic.holder() == classic.value
        assert classic.release()
        lib.eventually(lambda: client.get(f"/pipelines/runs/{run}").json["status"] == "COMPLETED", what="our turn")


def test_their_lock_expires():
    """a classic client that is gone blocks us no longer than its EX says"""
    tenant = "t" + uuid.uuid4().hex[:12]
    with fleet(tenant) as f:
        client = f.a.new_client(f.a.key_for(tenant))
        classic = Classic(tenant, "etl")
        assert classic.acquire(ttl=1)
        f.open("go")
        assert client.post("/pipelines/run/etl").expect(200).json["pipeline_logging_id"] == classic.value
        lib.eventually(lambda: client.post("/pipelines/run/etl").json["status"] == "PENDING", what="our turn")


def test_theirs_is_shown_and_broken():
    """a classic client's lock is on the list of locks and in the gauge; a forced release deletes it, and only with "now" """
    tenant = "t" + uuid.uuid4().hex[:12]
    with fleet(tenant) as f:
        client = f.a.new_client(f.a.key_for(tenant, role="operator"))
        classic = Classic(tenant, "etl")
        assert client.get("/pipelines/locks").expect(200).json["items"] == []
        assert classic.acquire()
        (lock,) = client.get("/pipelines/locks").expect(200).json["items"]
        assert (lock["pipeline_id"], lock["holder"], lock["fence"]) == ("etl", classic.value, 0), lock
        gauge = f'pipeline_active_locks{{tenant_id="{tenant}",pipeline_id="etl"}} 1'
        lib.eventually(lambda: gauge in f.a.get("/metrics", key=None).body.decode().splitlines(), what="the gauge")
        path = f"/admin/locks/{tenant}/etl"
        refused = client.ask("DELETE", path, body={"reason": "test"}).expect(409)
        assert b"now" in refused.body and classic.holder() == classic.value, refused
        broken = client.ask("DELETE", path, body={"reason": "test", "now": True}).expect(200).json
        assert broken["holder"] == classic.value and not broken["closing"], broken
        assert classic.holder() is None
        assert classic.acquire()
        body = {"key": "pipeline:etl", "reason": "test"}
        client.post("/api/v1/locks/break", body | {"now": True, "holder": "another"}).expect(409)
        client.post("/api/v1/locks/break", body).expect(409)
        client.post("/api/v1/locks/break", body | {"now": True}).expect(200)
        assert classic.holder() is None


if __name__ == "__main__":
    lib.main(globals())
