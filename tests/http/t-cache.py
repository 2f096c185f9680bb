"""Single flight over HTTP: one builds, the others wait or get the stale value."""
import threading

import lib

C = "/api/v1/cache"


def test_one_builds():
    """30 that look up at once: one leads, the others wait and get its value"""
    for store in ("memory:", "sqlite"):
        with lib.Server(store=store) as s:
            built, lock = [], threading.Lock()

            def work(i, s=s, built=built, lock=lock):
                with s.new_client() as client:
                    got = client.post(C + "/lookup", {"key": "k", "holder": f"h{i}", "wait_ms": 30000})
                    if got.status == 202:
                        assert got.json["lead"], got
                        with lock:
                            built.append(i)
                        client.post(C + "/fill", {"key": "k", "holder": f"h{i}", "token": got.json["token"], "value": {"by": i}, "ttl_ms": 60000}).expect(200)
                        return i
                    assert got.status == 200 and got.json["hit"], got
                    return got.json["value"]["by"]

            assert len(set(lib.together(30, work))) == 1
            assert len(built) == 1


def test_the_wait_ends():
    """who waits longer than the build takes is told so, and may come again with the token"""
    with lib.Server() as s:
        lead = s.post(C + "/lookup", {"key": "k", "holder": "a"}).expect(202).json
        wait = s.post(C + "/lookup?wait=300ms", {"key": "k", "holder": "b"}).expect(202).json
        assert wait["wait"] and not wait["lead"] and wait["token"] == lead["token"]
        s.post(C + "/fill", {"key": "k", "holder": "a", "token": lead["token"], "value": "short", "ttl_ms": 1}).expect(200)
        hit = s.post(C + "/lookup", {"key": "k", "holder": "b", "token": wait["token"]}).expect(200).json
        assert hit["hit"] and hit["value"] == "short"


def test_abandoned():
    """when the leader gives up, one of those who wait leads"""
    with lib.Server() as s:
        lead = s.post(C + "/lookup", {"key": "k", "holder": "a"}).expect(202).json
        client, got = s.new_client(), []
        thread = threading.Thread(target=lambda: got.append(client.post(C + "/lookup", {"key": "k", "holder": "b", "wait_ms": 30000}).json))
        thread.start()
        lib.eventually(lambda: s.get("/api/v1/status").json["waiters"] == 1, what="the wait")
        s.post(C + "/abandon", {"key": "k", "holder": "a", "token": lead["token"]}).expect(200)
        thread.join(20)
        assert got and got[0]["lead"], got
        client.close()


def test_dropped_while_building():
    """a fill after a drop is refused"""
    with lib.Server() as s:
        lead = s.post(C + "/lookup", {"key": "k", "holder": "a"}).expect(202).json
        s.post(C + "/drop", {"key": "k"}).expect(200)
        s.post(C + "/fill", {"key": "k", "holder": "a", "token": lead["token"], "value": "x", "ttl_ms": 60000}).expect(409, "FENCE_STALE")
        s.post(C + "/get", {"key": "k"}).expect(404, "NOT_FOUND")


def test_negative():
    """a negative value is a value, with its code"""
    with lib.Server() as s:
        lead = s.post(C + "/lookup", {"key": "k", "holder": "a"}).expect(202).json
        s.post(C + "/fill", {"key": "k", "holder": "a", "token": lead["token"], "negative": True, "code": 404, "ttl_ms": 60000}).expect(200)
        hit = s.post(C + "/get", {"key": "k"}).expect(200).json
        assert hit["hit"] and hit["negative"] and hit["code"] == 404


lib.main(globals())
