"""Servers that die, hang or shut down while pipelines run: children killed, the key free, slots
executed by another server."""
import os
import re
import signal
import time

import lib
from fleet import Fleet, command, marked, pipeline, script, until

LEASE = 2  # seconds
FREE = LEASE + 3  # TTL, one sweep, and time to look


def prepare(engine, **more):
    f = Fleet(engine, env={"INTERLOCK_PIPELINE_TTL": f"{LEASE}s", **more.pop("env", {})}, **more)
    f.mark = f"mark-{f.name}"
    steps = [command("sh", "-c", f"touch {f.quoted('one')}; (setsid sh -c 'while :; do sleep 0.1; done' {f.mark}) & {until(f.path('go'))}; exit 0", f.mark),
             command("sh", "-c", f"touch {f.quoted('two')}; {until(f.path('go2'))}", f.mark, step="two", depends_on=["one"])]
    f.put("default", {"p": pipeline("p", *steps), "quick": command("true")})
    for server in f.all:
        server.post("/pipelines/reload").expect(200)
    return f


def expirations(server, name="p"):
    found = re.search(rf'^pipeline_lock_expirations_total{{tenant_id="default",pipeline_id="{name}"}} (\d+)', server.get("/metrics").body.decode(), re.M)
    return int(found.group(1)) if found else 0


def crash_and_recover(f, run, began):
    """After kill -9: children gone; after the restart the run is FAILED and says why, the key is free within TTL and a sweep."""
    lib.eventually(lambda: marked(f.mark) == [], FREE, "the end of the children")
    f.a.start()
    done = f.wait(run, seconds=20)
    took = time.monotonic() - began
    assert done["status"] == "FAILED" and "worker may have crashed" in done["error_message"], done
    assert took < FREE * lib.SLOW + 5, took
    states = [(s["step_id"], s["status"]) for s in done["steps"]]
    assert [name for name, _ in states] == ["one", "two"], states  # also those that never began
    assert set(state for _, state in states) <= {"COMPLETED", "INTERRUPTED", "SKIPPED"}, states
    assert f.a.get("/pipelines/locks").json["items"] == []
    row = f.a.wait_log(r"pipeline\.lock_expired", 20)  # the server that died could not tell it
    assert run in row and '"pipeline_id":"p"' in row and '"lock_hold_ms":' in row, row
    assert expirations(f.a) == 1
    f.open("go")
    f.open("go2")
    again = f.trigger("p")
    assert again["status"] == "PENDING" and again["pipeline_logging_id"] != run
    assert f.wait(again["pipeline_logging_id"])["status"] == "COMPLETED"


def killed_in_a_step(engine, second):
    with prepare(engine) as f:
        if second:
            f.open("go")
        run = f.trigger("p")["pipeline_logging_id"]
        lib.eventually(lambda: os.path.exists(f.path("two" if second else "one")), what="the step")
        lib.eventually(lambda: marked(f.mark), what="its processes")
        f.a.kill()
        crash_and_recover(f, run, time.monotonic())


def test_killed_in_the_first_step():
    """kill -9 while a step runs: its processes end (also one that left its group), the run is FAILED, the key free"""
    killed_in_a_step("sqlite", False)


def test_killed_in_the_second_step():
    """... in a later level; what has completed stays completed"""
    killed_in_a_step("sqlite", True)


def test_killed_in_a_step_postgres():
    """... on PostgreSQL"""
    killed_in_a_step("postgres", False)


def test_killed_in_a_step_redis():
    """... on Redis"""
    killed_in_a_step("redis", False)


def test_killed_while_pending():
    """a slot that nobody had room for when the server was killed is executed after the restart"""
    with prepare("sqlite", env={"INTERLOCK_RUNS_MAX": "1"}) as f:
        first = f.trigger("p")["pipeline_logging_id"]
        lib.eventually(lambda: os.path.exists(f.path("one")), what="the first run")
        waits = f.trigger("quick")["pipeline_logging_id"]
        assert f.get(waits)["status"] == "PENDING"
        f.a.kill()
        lib.eventually(lambda: marked(f.mark) == [], FREE, "the end of the children")
        f.a.start()
        assert f.wait(waits)["status"] == "COMPLETED"
        assert f.wait(first)["status"] == "FAILED"


def test_another_server_takes_over():
    """a slot of a server that died is executed by another one; the key of its run is free there, too"""
    with prepare("sqlite", n=2, env={"INTERLOCK_RUNS_MAX": "1"}) as f:
        first = f.trigger("p")["pipeline_logging_id"]
        lib.eventually(lambda: os.path.exists(f.path("one")), what="the first run")
        node = lib.eventually(lambda: f.get(first, f.b)["node"], what="its node")
        busy = next(server for server in f.all if node.endswith(f":{server.pid}"))
        other = f.b if busy is f.a else f.a
        waits = f.trigger("quick", server=busy)["pipeline_logging_id"]  # the busy one has no room, the other finds it
        assert f.wait(waits, server=other)["status"] == "COMPLETED"
        busy.kill()
        lib.eventually(lambda: marked(f.mark) == [], FREE, "the end of the children")
        done = f.wait(first, server=other, seconds=FREE + 5)
        assert done["status"] == "FAILED" and "worker may have crashed" in done["error_message"], done
        f.open("go")
        f.open("go2")
        again = f.trigger("p", server=other)["pipeline_logging_id"]
        assert f.wait(again, server=other)["status"] == "COMPLETED"


def test_killed_while_ending():
    """kill -9 during a graceful shutdown is a crash like any other"""
    with prepare("sqlite", env={"INTERLOCK_RUNS_SHUTDOWN": "60s"}) as f:
        run = f.trigger("p")["pipeline_logging_id"]
        lib.eventually(lambda: os.path.exists(f.path("one")), what="the step")
        f.a.send(signal.SIGTERM)
        f.a.wait_log("server.stopping")
        f.a.kill()
        crash_and_recover(f, run, time.monotonic())


def test_standstill_past_the_lease():
    """SIGSTOP of the server past its lease: the children are gone before the key is given on; the old run cannot end well any more"""
    with prepare("sqlite", n=2) as f:
        run = f.trigger("p")["pipeline_logging_id"]
        lib.eventually(lambda: os.path.exists(f.path("one")), what="the step")
        node = lib.eventually(lambda: f.get(run, f.b)["node"], what="its node")
        busy = next(server for server in f.all if node.endswith(f":{server.pid}"))
        other = f.b if busy is f.a else f.a
        busy.freeze()
        try:
            lib.eventually(lambda: marked(f.mark) == [], FREE, "the end of the children")
            done = f.wait(run, server=other, seconds=FREE + 5)
            assert done["status"] == "FAILED", done
            os.unlink(f.path("one"))
            again = f.trigger("p", server=other)
            assert again["status"] == "PENDING"
            lib.eventually(lambda: os.path.exists(f.path("one")), what="the second run")
        finally:
            busy.send(signal.SIGCONT)
        busy.wait_log(r"run\.ended", 20)
        lib.eventually(lambda: expirations(busy) + expirations(other) == 1, 20, "one of them to tell it")
        assert f.get(run, other)["status"] == "FAILED"
        f.open("go")
        f.open("go2")
        assert f.wait(again["pipeline_logging_id"], server=other)["status"] == "COMPLETED"


def test_cancel_in_each_phase():
    """cancel while PENDING, in the first step, between attempts, in a later step: CANCELLED, nothing is left"""
    with prepare("sqlite", env={"INTERLOCK_RUNS_MAX": "1"}) as f:
        f.put("default", {"again": script("exit 1", retries=5, retry_delay="60s")})
        f.a.post("/pipelines/reload").expect(200)
        first = f.trigger("p")["pipeline_logging_id"]
        lib.eventually(lambda: os.path.exists(f.path("one")), what="the first step")
        waits = f.trigger("quick")["pipeline_logging_id"]
        assert f.a.delete(f"/pipelines/runs/{waits}").expect(200).json["status"] == "CANCELLED"
        f.a.delete(f"/pipelines/runs/{first}").expect(200)
        assert f.wait(first)["status"] == "CANCELLED" and marked(f.mark) == []
        run = f.trigger("again")["pipeline_logging_id"]
        lib.eventually(lambda: f.get(run)["steps"][0]["attempts"] and f.get(run)["steps"][0]["attempts"][0]["status"] == "FAILED", what="the first attempt's end")
        f.a.delete(f"/pipelines/runs/{run}").expect(200)
        assert f.wait(run)["status"] == "CANCELLED"
        f.open("go")
        run = f.trigger("p")["pipeline_logging_id"]
        lib.eventually(lambda: os.path.exists(f.path("two")), what="the second step")
        f.a.delete(f"/pipelines/runs/{run}").expect(200)
        done = f.wait(run)
        assert done["status"] == "CANCELLED" and [s["status"] for s in done["steps"]] == ["COMPLETED", "CANCELLED"], done["steps"]
        lib.eventually(lambda: marked(f.mark) == [], what="nothing left")


def test_timeout_stops_grandchildren():
    """a step's timeout stops everything below it, also what left its process group; the run is TIMEOUT"""
    with prepare("sqlite") as f:
        text = f"(setsid sh -c 'trap \"\" TERM; while :; do sleep 0.1; done' {f.mark}) & while :; do sleep 0.1; done"
        f.put("default", {"t": command("sh", "-c", text, f.mark, timeout="1s")})
        f.a.post("/pipelines/reload").expect(200)
        run = f.trigger("t")["pipeline_logging_id"]
        lib.eventually(lambda: len(marked(f.mark)) >= 2, what="its processes")
        done = f.wait(run)
        assert done["status"] == "TIMEOUT" and done["steps"][0]["status"] == "TIMEOUT", done
        assert marked(f.mark) == []


def test_folders_are_removed():
    """the working folder of a run is removed when it ends, and what a killed server left when one starts"""
    with prepare("sqlite") as f:
        folders = lambda: [name for root, dirs, _ in os.walk(f.folder) for name in dirs if "/interlock-runs" in root]
        f.put("default", {"w": script("echo x > file; pwd")})
        f.a.post("/pipelines/reload").expect(200)
        assert f.run("w")["status"] == "COMPLETED"
        lib.eventually(lambda: folders() == [], what="no folder")
        run = f.trigger("p")["pipeline_logging_id"]
        lib.eventually(lambda: os.path.exists(f.path("one")) and folders(), what="the step")
        f.a.kill()
        lib.eventually(lambda: marked(f.mark) == [], FREE, "the end of the children")
        f.a.start()
        f.wait(run)
        f.a.stop()
        f.a.start()
        lib.eventually(lambda: folders() == [], 10, "the folder of the dead is removed")


# ---- schedules

def test_schedule_fires_once():
    """a tick starts one run, however many servers there are; each minute of `* * * * *`"""
    with Fleet("sqlite", n=3) as f:
        f.put("default", {"tick": pipeline("tick", command("true"), schedule="* * * * *")})
        for server in f.all:
            server.post("/pipelines/reload").expect(200)
        lib.eventually(lambda: f.a.get("/pipelines/runs?pipeline_id=tick").json["items"], 75, "the first tick")
        time.sleep(2.5)  # what must not happen says nothing: each server looks at a tick within a second
        runs = f.a.get("/pipelines/runs?pipeline_id=tick").json["items"]
        assert len(runs) == len({run["created_at"][:16] for run in runs}), runs  # one a minute
        assert runs[0]["trigger_type"] == "schedule", runs
        assert f.wait(runs[0]["pipeline_logging_id"])["status"] == "COMPLETED"


if __name__ == "__main__":
    lib.main(globals())
