"""`interlock demo`: everything answers, the buttons do what they say, and nothing is left behind, however it ends."""
import contextlib
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading

import lib

KEY = "export:customers"


class Demo:
    """The demo, in a temporary folder of its own."""

    def __init__(self):
        self.tmp = tempfile.mkdtemp(prefix="interlock-t-demo-")
        env = {k: v for k, v in os.environ.items() if not k.startswith("INTERLOCK_")}
        # What the user has configured for other stores is neither used nor changed.
        env.update(TMPDIR=self.tmp, HOME=self.tmp, INTERLOCK_STORE="sqlite:/nowhere/x.db", INTERLOCK_TENANT="other")
        self.process = subprocess.Popen([lib.BINARY, "demo"], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, text=True)
        self.lines = []
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def __enter__(self):
        try:
            self.begin()
        except BaseException:
            self.__exit__()
            raise
        return self

    def begin(self):
        self.wait("Ctrl-C")
        self.key = re.search(r"sk_acme_[\w-]{43}", self.text).group(0)
        self.address = re.search(r"URL=http://(\S+)", self.text).group(1)
        self.folder = os.path.join(self.tmp, os.listdir(self.tmp)[0])
        self.client = lib.Client(self, self.key)

    def _read(self):
        for line in self.process.stdout:
            self.lines.append(line)

    @property
    def text(self):
        return "".join(self.lines)

    def wait(self, words):
        lib.eventually(lambda: words in self.text or self.process.poll() is not None, 20, f"{words!r} in {self.text!r}")
        assert words in self.text, self.text

    def connection(self, timeout=90):
        return http.client.HTTPConnection(self.address, timeout=timeout)

    def get(self, path):
        """The JSON of an answer; None while the server is away."""
        with contextlib.suppress(OSError, http.client.HTTPException):
            return self.client.get("/api/v1" + path).expect(200).json
        return None

    def post(self, path, body=None):
        return self.client.post("/api/v1" + path, body)

    def press(self, button):
        return self.post("/demo/" + button).expect(200).json

    def pid(self, name):
        with open(f"{self.folder}/{name}.pid", encoding="ascii") as file:
            return int(file.read())

    def tree(self):
        """Every process of it: (pid, start time)."""
        parents = {}
        for pid in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError):
                fields = stat_of(pid)
                parents[int(pid)] = (int(fields[1]), fields[19])
        found = {self.process.pid}
        while new := {pid for pid, (parent, _) in parents.items() if parent in found and pid not in found}:
            found |= new
        return [(pid, parents[pid][1]) for pid in found if pid in parents]

    def is_gone(self, tree, status=None):
        """Once it has ended: no process and no folder."""
        assert self.process.wait(30 * lib.SLOW) == status or status is None, (self.process.returncode, self.text)
        lib.eventually(lambda: not any(lives(pid, start) for pid, start in tree), 20, "the end of its processes")
        lib.eventually(lambda: not os.listdir(self.tmp), 20, "the end of its folder")
        self.reader.join(10)

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait(30 * lib.SLOW)
        shutil.rmtree(self.tmp, ignore_errors=True)


def stat_of(pid):
    """The fields of /proc/PID/stat behind the name."""
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
        return file.read().rpartition(")")[2].split()


def lives(pid, start):
    with contextlib.suppress(OSError):
        fields = stat_of(pid)
        return fields[19] == start and fields[0] != "Z"
    return False


def test_everything_answers():
    """It shows its address once; sample data of every app is loaded soon afterwards"""
    with Demo() as d:
        links = re.findall(r"http://\S+/ui/#link=(\S+)", d.text)
        assert len(links) == 1, d.text
        page = {"X-Interlock-Page": "1"}
        session = d.client.post("/ui/session", {"link": links[0]}, key=None, headers=page).expect(200).json
        assert session["demo"] is True and session["tenant"] == "acme", session
        d.client.post("/ui/session", {"link": links[0]}, key=None, headers=page).expect(401)
        d.wait("sample data is loaded")
        names = [item["pipeline_id"] for item in d.get("/pipelines")["items"]]
        assert names == ["export_and_check", "flaky", "heartbeat", "job_table", "slow"], names
        checks = {item["name"]: item for item in d.get("/checks")["items"]}

        def outcomes():
            return {i["name"]: i["last"] and i["last"]["outcome"] for i in d.get("/checks")["items"]}
        lib.eventually(lambda: list(outcomes().values()).count("broken") == 5, 20, f"broken invariants: {checks}")
        assert outcomes()["stuck_executing"] == "passed", outcomes()
        events = lib.eventually(lambda: [e for e in d.get("/events")["items"] if e["complete"]], 20, "a complete event")
        assert events[0]["source_event_id"] == "100000" and events[0]["n_laps"] > 0, events
        states = [t["state"] for t in d.get("/campus/tournaments")["items"]]
        assert len(states) == 4 and "IN_PROGRESS" in states, states
        usage = d.client.get("/api/v1/admin/usage/cache/metrics").expect(200).json
        lib.eventually(lambda: d.client.get("/api/v1/admin/usage/cache/metrics").json != usage, 20, "more days of usage")
        lib.eventually(lambda: d.get("/queues/mails/jobs?state=COMPLETED")["items"], 20, "a job that is done")
        lib.eventually(lambda: {"order", "export"} <= {i["key"].partition(":")[0] for i in d.get("/locks")["items"]}, 20, "locks")
        lib.eventually(lambda: d.get("/locks?waiters=true")["items"], 20, "a waiter")
        lib.eventually(lambda: [e for e in d.get("/locks/order")["items"] if e["inverted"]], 60, "an inversion of the lock order")
        lib.eventually(lambda: [s for s in d.get("/samples")["samples"] if s["locks"] > 0], 25, "a sample")


def test_buttons():
    """The list of what can be tried; each has something to watch"""
    with Demo() as d:
        page = d.get("/demo")
        assert page["next"] is None
        assert [i["name"] for i in page["items"]] == ["trigger-ten", "kill-worker", "pause-holder"], page
        for item in page["items"]:
            assert sorted(item) == ["name", "path", "title", "watch", "what"] and all(item.values()), item
            assert item["path"] == "/api/v1/demo/" + item["name"]
        reader = d.post("/admin/api-keys", {"tenant": "acme", "role": "write"}).expect(201).json["key"]
        d.post("/admin/tenants", {"id": "globex"}).expect(201)
        other = d.post("/admin/api-keys", {"tenant": "globex", "role": "operator"}).expect(201).json["key"]
        part = d.post("/admin/api-keys", {"tenant": "acme", "role": "operator", "prefix": "x:"}).expect(201).json["key"]
        for key in (reader, other, part):
            with lib.Client(d, key) as client:
                client.get("/api/v1/demo").expect(200)
                for item in page["items"]:
                    client.post(item["path"]).expect(403)
        trigger_ten(d)
        kill_worker(d)
        pause_holder(d)
        kill_server(d)


def trigger_ten(d):
    first = d.press("trigger-ten")
    assert (first["started"], first["joined"]) == (1, 9), first
    run = d.get("/pipelines/runs/" + first["run_id"])
    assert run["pipeline_id"] == "slow" and run["status"] in ("PENDING", "RUNNING"), run
    lib.eventually(lambda: len(d.get("/pipelines/runs/" + first["run_id"])["joined"]) == 9, 10, "nine triggers that joined")
    second = d.press("trigger-ten")
    assert (second["started"], second["joined"], second["run_id"]) == (0, 10, first["run_id"]), second


def kill_worker(d):
    killed = d.press("kill-worker")
    assert killed["attempt"] == 1 and killed["queue"] == "mails", killed
    path = "/jobs/" + killed["job_id"]
    job = d.get(path)
    assert (job["state"], job["attempt"]) == ("RUNNING", 1), job  # until its lease has ended
    again = lib.eventually(lambda: (j := d.get(path))["attempt"] == 2 and j, 20, "the second attempt")
    assert again["token"] > job["token"] and again["worker"] != job["worker"], again
    assert d.pid("worker") != killed["pid"]
    lib.eventually(lambda: d.get(path)["state"] == "COMPLETED", 20, "the end of the job")


def with_fence(fence):
    """Processes that work under this fence."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/environ", "rb") as file:
            if f"INTERLOCK_FENCE={fence}".encode() in file.read().split(b"\0"):
                found.append(int(pid))
    return found


def pause_holder(d):
    paused = d.press("pause-holder")
    assert paused["key"] == KEY, paused
    lib.eventually(lambda: stat_of(paused["pid"])[0] == "T", 10, "the stop")

    def next_one():
        return next((i for i in d.get("/locks?prefix=" + KEY)["items"] if i["fence"] > paused["fence"]), None)
    after = lib.eventually(next_one, 20, "the next holder")
    assert after["holder"] != paused["holder"] and after["meta"]["pid"] != paused["pid"], after
    assert with_fence(paused["fence"]) == []  # its command was stopped before
    lib.eventually(lambda: paused["pid"] not in (d.pid("holder-1"), d.pid("holder-2")), 20, "another process in its place")


def kill_server(d):
    before = d.pid("server")
    os.kill(before, signal.SIGKILL)
    d.wait("Started a new one")
    assert d.pid("server") != before
    lib.eventually(lambda: d.get("/demo"), 10, "an answer")
    d.client.close()


def test_button_while_it_stops():
    """A button that waits for its moment is told that the server stops"""
    with Demo() as d:
        answers = []
        worker = d.folder + "/worker.pid"
        lib.eventually(lambda: os.path.exists(worker), 20, "a worker")
        os.unlink(worker)  # the moment of the button does not come
        press = threading.Thread(target=lambda: answers.append(d.post("/demo/kill-worker")))
        press.start()
        with lib.Client(d, d.key) as client:
            lib.eventually(lambda: [j for j in client.get("/api/v1/queues/mails/jobs").json["items"] if j["priority"] < 0], 20, "its job")
        os.kill(d.pid("server"), signal.SIGTERM)
        press.join()
        answers[0].expect(503, "SHUTTING_DOWN")


def test_ends():
    """Ctrl-C, SIGTERM and SIGHUP end it; no process and no folder is left"""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        with Demo() as d:
            tree = d.tree()
            assert len(tree) > 5, tree
            d.process.send_signal(number)
            d.is_gone(tree, 0)


def test_ends_early():
    """A signal while it starts, and another one"""
    d = Demo()
    try:
        lib.eventually(lambda: os.listdir(d.tmp), 10, "its folder")
        d.process.send_signal(signal.SIGINT)
        tree = d.tree()
        d.process.send_signal(signal.SIGTERM)
        d.is_gone(tree, 0)
    finally:
        d.__exit__()


def test_is_killed():
    """SIGKILL of either of its two processes: the other one cleans up"""
    with Demo() as d:
        tree = d.tree()
        d.process.kill()
        d.is_gone(tree)
    with Demo() as d:
        tree = d.tree()
        inner = [pid for pid, _ in tree if stat_of(pid)[1] == str(d.process.pid)]
        assert len(inner) == 1, inner
        os.kill(inner[0], signal.SIGKILL)
        d.is_gone(tree, 128 + signal.SIGKILL)


def test_two_at_once():
    """The usual port is taken: another one, and it says so; two demos do not meet"""
    with contextlib.ExitStack() as stack:
        taken = stack.enter_context(socket.socket())
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # but not beside a listener

        def take():
            with contextlib.suppress(OSError):
                taken.bind(("127.0.0.1", 7600))
                taken.listen(1)
                return True
            return False
        # Demos of other tests give it back; one that somebody uses all the time does as well.
        with contextlib.suppress(AssertionError):
            lib.eventually(take, 60, "another demo gives the port back")
        one, two = stack.enter_context(Demo()), stack.enter_context(Demo())
        for d in (one, two):
            assert "Port 7600 is in use" in d.text and d.address != "127.0.0.1:7600", d.text
        assert one.address != two.address and one.folder != two.folder
        with lib.Client(one, two.key) as client:
            client.get("/api/v1/demo").expect(401)
        tree = one.tree()
        one.process.terminate()
        one.is_gone(tree, 0)
        assert two.get("/demo")["items"]


def test_not_in_serve():
    """Without the demo a server does not have its routes"""
    with lib.Server() as s:
        page = {"X-Interlock-Page": "1"}
        assert s.post("/ui/session", {"key": s.key}, key=None, headers=page).expect(200).json["demo"] is False
        s.get("/api/v1/demo").expect(404)
        for button in ("trigger-ten", "kill-worker", "pause-holder"):
            s.post("/api/v1/demo/" + button).expect(404)
        paths = json.loads(s.get("/openapi.json").body)["paths"]
        assert [path for path in paths if "demo" in path] == []


lib.main(globals())
