"""Several servers on one store behave as one: waiters are first in, first out across them, each
tick of a schedule fires once, events arrive from all, one response per Idempotency-Key. On one
SQLite file, one PostgreSQL, one Redis."""
import shutil
import threading

import lib
from events import Events
from fleet import Place, servers


class Pair(Place):
    """Two servers on one store."""

    def __init__(self, engine):
        super().__init__(engine, "two")
        self.a = lib.Server(store=self.store, args=self.data_args)
        try:
            self.b = lib.Server(store=self.store, args=self.data_args, key=self.a.key)
        except BaseException:
            self.a.end()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *how):
        try:
            self.b.__exit__(*how)
        finally:
            self.a.__exit__(*how)
            shutil.rmtree(self.folder, ignore_errors=True)


def waiters_in_order(engine):
    with Pair(engine) as p:
        lease = p.a.post("/api/v1/locks/acquire", {"key": "k", "holder": "first"}).expect(200).json
        order, threads, failures = [], [], []

        def work(i, server):
            try:
                with server.new_client() as client:
                    mine = client.post("/api/v1/locks/acquire", {"key": "k", "holder": f"w{i}", "wait_ms": 50000}).expect(200).json
                    order.append(i)
                    client.post("/api/v1/locks/release", {k: mine[k] for k in ("key", "holder", "fence")}).expect(200)
            except BaseException as why:  # pylint: disable=broad-except
                failures.append(why)

        for i in range(12):
            threads.append(threading.Thread(target=work, args=(i, (p.a, p.b)[i % 2])))
            threads[-1].start()
            lib.eventually(lambda n=i + 1: len(p.a.get("/api/v1/locks/why?key=k").json["waiters"]) == n, what=f"waiter {i}")
        p.b.post("/api/v1/locks/release", {k: lease[k] for k in ("key", "holder", "fence")}).expect(200)
        for thread in threads:
            thread.join(60)
        assert not failures, failures
        assert order == list(range(12)), order


def has_heard(events, name):
    """Does the stream tell of this name within a moment? What comes before it is dropped."""
    try:
        while events.next(0.5)[1].get("name") != name:
            pass
    except AssertionError:
        return False
    return True


def await_listeners(p, streams):
    """Wait until what is done through either server reaches all streams: a listener that connects later has missed it."""
    for server in (p.a, p.b):
        for i in range(60):
            key = f"warm:{server.address}:{i}"
            server.post("/api/v1/locks/acquire", {"key": key, "holder": "h"}).expect(200)
            if all([has_heard(events, key) for events in streams]):
                break
        else:
            raise AssertionError("no event")


def events_from_both(engine):
    with Pair(engine) as p:
        at_a, at_b = Events(p.a), Events(p.b)
        await_listeners(p, (at_a, at_b))
        for server, key in ((p.a, "from:a"), (p.b, "from:b")):
            server.post("/api/v1/locks/acquire", {"key": key, "holder": "h"}).expect(200)
            for events in (at_a, at_b):
                assert events.next() == ("lock", {"type": "lock", "name": key, "tenant": "default", "what": "acquired"})
        for events in (at_a, at_b):
            events.none()
            events.close()


def once_across(engine):
    with Pair(engine) as p:
        clients = [(p.a, p.b)[i % 2].new_client() for i in range(30)]
        answers = lib.together(30, lambda i: clients[i].post("/api/v1/queues/q/jobs", {"payload": "x"}, headers={"Idempotency-Key": "k"}))
        assert {a.status for a in answers} == {201} and len({a.body for a in answers}) == 1, answers
        assert p.b.get("/api/v1/queues/q").json["totals"]["pushed"] == 1
        for client in clients:
            client.close()


def claims_across(engine):
    with Pair(engine) as p:
        p.a.put("/api/v1/queues/q", {}).expect(200)
        got = []

        def work(i):
            server = (p.a, p.b)[i % 2]
            with server.new_client() as client:
                if i < 2:
                    for k in range(50):
                        client.post("/api/v1/queues/q/jobs", {"payload": f"{i}-{k}"}).expect(201)
                    return
                while True:
                    jobs = client.post("/api/v1/queues/q/claim", {"worker": f"w{i}", "limit": 3, "wait_ms": 2500}).expect(200).json["items"]
                    if not jobs:
                        return
                    for job in jobs:
                        client.post(f"/api/v1/jobs/{job['id']}/finish", {"token": job["token"]}).expect(200)
                        got.append(job["payload"])

        lib.together(6, work)
        assert len(got) == len(set(got)) == 100, len(got)


def crons(pair):
    for i in range(3):
        (pair.a, pair.b)[i % 2].put(f"/api/v1/crons/c{i}", {"queue": "ticks", "schedule": "* * * * *", "payload": f"c{i}", "missed": "all"}).expect(200)


def ticks_once(pair):
    # a tick comes within a minute; both servers sweep every second
    lib.eventually(lambda: pair.a.get("/api/v1/queues/ticks").json["totals"]["pushed"] >= 3, seconds=75, what="a tick", pause=0.2)
    with pair.b.new_client() as client:  # its other connection has been idle for too long
        jobs = client.get("/api/v1/queues/ticks/jobs?limit=1000").json["items"]
    seen = [(job["payload"], job["run_at"]) for job in jobs]
    assert len(seen) == len(set(seen)), seen


def revoked_everywhere(engine):
    with Pair(engine) as p:
        made = p.a.post("/api/v1/admin/api-keys", {"tenant": "default", "role": "read"}).expect(201).json
        p.b.get("/api/v1/status", key=made["key"]).expect(200)
        p.a.delete(f"/api/v1/admin/api-keys/{made['id']}").expect(200)
        lib.eventually(lambda: p.b.get("/api/v1/status", key=made["key"]).status == 401, seconds=2, what="the end of the key")


def test_sqlite_waiters():
    """SQLite: waiters of both servers are served in the order they came"""
    waiters_in_order("sqlite")


def test_sqlite_events():
    """SQLite: each server's streams tell what was done through the other"""
    events_from_both("sqlite")


def test_sqlite_once():
    """SQLite: 30 same requests at two servers: one job, one answer"""
    once_across("sqlite")


def test_sqlite_claims():
    """SQLite: workers of both servers, each job once"""
    claims_across("sqlite")


def test_sqlite_revoked():
    """SQLite: a key that is revoked at one server ends at the other within a second or two"""
    revoked_everywhere("sqlite")


def test_postgres_waiters():
    """PostgreSQL: waiters of both servers are served in the order they came"""
    servers()
    waiters_in_order("postgres")


def test_postgres_events():
    """PostgreSQL: each server's streams tell what was done through the other"""
    servers()
    events_from_both("postgres")


def test_postgres_once():
    """PostgreSQL: 30 same requests at two servers: one job, one answer"""
    servers()
    once_across("postgres")


def test_postgres_claims():
    """PostgreSQL: workers of both servers, each job once"""
    servers()
    claims_across("postgres")


def test_ticks():
    """SQLite and PostgreSQL, which wait for the same minute: each tick of a schedule once, though both servers look"""
    servers()
    with Pair("sqlite") as on_sqlite, Pair("postgres") as on_postgres:
        for pair in (on_sqlite, on_postgres):
            crons(pair)
        for pair in (on_sqlite, on_postgres):
            ticks_once(pair)


def test_redis_waiters():
    """Redis: waiters of both servers are served in the order they came"""
    servers()
    waiters_in_order("redis")


def test_redis_events():
    """Redis: each server's streams tell what was done through the other"""
    servers()
    events_from_both("redis")


lib.main(globals())
