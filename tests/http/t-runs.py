"""Runs over HTTP: policies, waiting, logs."""
import threading
import time

import lib

R = "/api/v1/runs"


def test_ten_at_once_are_one_run():
    """ten starts of one key at once: one run, nine are told its id"""
    for store in ("memory:", "sqlite"):
        with lib.Server(store=store) as s:
            clients = [s.new_client() for _ in range(10)]
            answers = lib.together(10, lambda i, c=clients: c[i].post(R, {"key": "import:x"}))
            made = [a.json for a in answers if a.status == 201]
            told = [a.json for a in answers if a.status == 200]
            assert len(made) == 1 and len(told) == 9, answers
            assert {a["id"] for a in told} == {made[0]["id"]} and all(a["duplicate"] for a in told)
            for client in clients:
                client.get(f"{R}/{made[0]['id']}").expect(200)
                client.close()


def test_class_limits():
    """live_max and day_max: 429, told apart in a batch; who is told of a run that is there is not limited"""
    with lib.Server() as s:
        first = s.post(R, {"key": "p:a", "live_max": 2, "day_max": 3}).expect(201).json
        s.post(R, {"key": "p:b", "slot": True, "live_max": 2}).expect(201)
        s.post(R, {"key": "p:a", "live_max": 1, "day_max": 1}).expect(200)
        answer = s.post(R, {"key": "p:c", "live_max": 2}).expect(429, "LIMIT_EXCEEDED")
        assert "2 live runs in class 'p'" in answer.json["error"]["message"], answer.json
        s.post(R, {"key": "q:c", "live_max": 1}).expect(201)
        s.post(f"{R}/{first['id']}/finish", {"holder": first["id"], "fence": first["fence"], "state": "COMPLETED"}).expect(200)
        s.post(R, {"key": "p:c", "live_max": 2, "day_max": 3}).expect(201)
        ops = [{"op": "run_start", "key": "p:d", "id": "d", "live_max": 2}, {"op": "run_start", "key": "p:d", "id": "d", "day_max": 3}]
        live, day = s.post("/api/v1/batch", {"ops": ops, "raw": True}).expect(200).json["results"]
        assert live["status"] == "LIMIT_EXCEEDED" and live["live_limit"] and "day_limit" not in live, live
        assert day["status"] == "LIMIT_EXCEEDED" and day["day_limit"] and "live_limit" not in day, day
        s.post(R, {"key": "p:d", "live_max": 0}).expect(400, "BAD_REQUEST")


def test_rates_are_not_for_clients():
    """each class with a rate takes room in the store: minute_max and hour_max are unknown fields"""
    with lib.Server() as s:
        for field in ("minute_max", "hour_max"):
            start = {"key": "p:a", field: 5}
            answer = s.post(R, start).expect(400, "BAD_REQUEST")
            assert field in answer.json["error"]["message"], answer.json
            batch = {"ops": [{"op": "run_start", "id": "a", **start}]}
            s.post("/api/v1/batch", batch).expect(400, "BAD_REQUEST")
            assert f'"{field}"'.encode() not in s.get("/openapi.json").expect(200).body
        assert s.get(R).expect(200).json["items"] == []


def test_policies():
    """skip, reject, queue, replace-pending, cancel-running"""
    with lib.Server() as s:
        first = s.post(R, {"key": "k"}).expect(201).json
        assert s.post(R, {"key": "k", "on_conflict": "skip"}).expect(200).json["skipped"]
        s.post(R, {"key": "k", "on_conflict": "reject"}).expect(409, "LOCK_HELD")
        second = s.post(R, {"key": "k", "on_conflict": "queue"}).expect(201).json
        assert second["state"] == "PENDING" and second["position"] == 1
        s.post(R, {"key": "k", "on_conflict": "queue", "queue_max": 1}).expect(429, "LIMIT_EXCEEDED")
        third = s.post(R, {"key": "k", "on_conflict": "replace-pending"}).expect(201).json
        assert s.get(f"{R}/{second['id']}").json["state"] == "CANCELLED"
        assert s.get(f"{R}/{first['id']}").json["cancelled"] is False
        fourth = s.post(R, {"key": "k", "on_conflict": "cancel-running"}).expect(201).json
        assert s.get(f"{R}/{third['id']}").json["state"] == "CANCELLED"
        assert s.get(f"{R}/{first['id']}").json["cancelled"] is True
        s.post(f"{R}/{first['id']}/finish", {"holder": first["id"], "fence": first["fence"], "state": "FAILED", "error": "x"}).expect(200)
        assert s.get(f"{R}/{first['id']}").json["state"] == "CANCELLED"
        mine = s.post(R + "?wait=10s", {"key": "k", "on_conflict": "queue", "id": fourth["id"], "holder": fourth["holder"]}).expect(201).json
        assert mine["state"] == "RUNNING" and mine["fence"]


def test_waiting_for_a_run():
    """GET ?wait answers when the run changes, at once when it has ended"""
    for store in ("memory:", "sqlite"):
        with lib.Server(store=store) as s:
            run = s.post(R, {"key": "k"}).expect(201).json
            mine = {"holder": run["holder"], "fence": run["fence"]}
            client, got = s.new_client(), []
            thread = threading.Thread(target=lambda c=client, r=run: got.append(c.get(f"{R}/{r['id']}?wait=30s").expect(200).json))
            thread.start()
            lib.eventually(lambda: s.get("/api/v1/status").json["waiters"] == 1, what="the long poll")
            s.post(f"{R}/{run['id']}/finish", {**mine, "state": "COMPLETED"}).expect(200)
            thread.join(20)
            assert got and got[0]["state"] == "COMPLETED", got
            began = time.monotonic()
            assert s.get(f"{R}/{run['id']}?wait=30s").json["state"] == "COMPLETED"
            assert time.monotonic() - began < 5
            client.close()


def test_log():
    """the log comes in parts, from an offset, and ?wait gives what is written later"""
    with lib.Server() as s:
        run = s.post(R, {"key": "k"}).expect(201).json
        mine = {"holder": run["holder"], "fence": run["fence"]}
        s.post(f"{R}/{run['id']}/stage", {**mine, "log": "one\n"}).expect(200)
        s.post(f"{R}/{run['id']}/stage", {**mine, "log": "two\n", "offset": 4}).expect(200)
        s.post(f"{R}/{run['id']}/stage", {**mine, "log": "two\n", "offset": 4}).expect(200)  # repeated: not written twice
        part = s.get(f"{R}/{run['id']}/log?offset=4").expect(200).json
        assert part["text"] == "two\n" and part["next_offset"] == 8
        client, got = s.new_client(), []
        thread = threading.Thread(target=lambda: got.append(client.get(f"{R}/{run['id']}/log?offset=8&wait=30s").expect(200).json))
        thread.start()
        lib.eventually(lambda: s.get("/api/v1/status").json["waiters"] == 1, what="the long poll")
        s.post(f"{R}/{run['id']}/stage", {**mine, "log": "{\"a\":1}"}).expect(200)
        thread.join(20)
        assert got and got[0]["text"] == "{\"a\":1}", got
        s.post(f"{R}/{run['id']}/stage", {**mine, "log_base64": "/w=="}).expect(200)
        part = s.get(f"{R}/{run['id']}/log?offset=15").expect(200).json
        assert part["text"] is None and part["text_base64"] == "/w=="
        client.close()


def test_a_slot():
    """a slot is a place that somebody else starts"""
    with lib.Server() as s:
        slot = s.post(R, {"key": "k", "slot": True}).expect(201).json
        assert slot["state"] == "PENDING"
        assert s.post(R, {"key": "k"}).expect(200).json["id"] == slot["id"]
        run = s.post(R, {"key": "k", "id": slot["id"], "holder": "worker"}).expect(201).json
        assert run["state"] == "RUNNING" and run["holder"] == "worker"


lib.main(globals())
