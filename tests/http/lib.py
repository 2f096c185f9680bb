"""Shared by the tests of the server: starting and stopping it, sending requests, counting.

A test script has functions test_*, and ends with `lib.main(globals())`: TAP, one line per function,
in source order.

    with lib.Server() as s:                     # memory:, or Server(store="sqlite:" + path)
        s.post("/api/v1/locks/acquire", {"key": "a", "holder": "me"}).expect(200)

The key of a Server is the admin key that its first start prints; Server.key_for() creates others.
"""
import contextlib
import fcntl
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback

BINARY = os.environ.get("INTERLOCK_BIN", "interlock")
SOURCE = os.environ.get("IL_TEST_SOURCE", os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
SLOW = float(os.environ.get("IL_TEST_SLOW", "1"))  # set for builds with a sanitizer

sys.path.append(SOURCE + "/tests/harness")
import memory  # noqa: E402  pylint: disable=wrong-import-position

memory.use()


class Skip(Exception):
    """The test cannot run here."""


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def code(self):
        """The code of an error."""
        return self.json["error"]["code"]

    def expect(self, status, code=None):
        if self.status != status or (code is not None and self.code != code):
            raise AssertionError(f"expected {status} {code or ''}, got {self.status}: {self.body[:2000]!r}")
        return self

    def __repr__(self):
        return f"{self.status} {self.body[:500]!r}"


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path, timeout):
        super().__init__("localhost", timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Client:
    """One keep-alive connection, for one thread."""

    def __init__(self, server, key=None, timeout=90):
        self.server, self.key, self.timeout = server, key, timeout
        self.conn = server.connection(timeout)

    def ask(self, method, path, body=None, key=True, headers=None, raw=None):
        """body is sent as JSON; raw as it is. key: True = ours, None = none, or another."""
        sent = dict(headers or {})
        if key is True:
            key = self.key
        if key is not None:
            sent.setdefault("X-API-Key", key)
        data = raw
        if body is not None:
            data = json.dumps(body).encode()
        if data is not None:
            sent.setdefault("Content-Type", "application/json")
        try:
            self.conn.request(method, path, body=data, headers=sent)
            answer = self.conn.getresponse()
        except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError):
            self.conn.close()  # so that the next one begins anew
            raise
        return Answer(answer.status, answer.headers, answer.read())

    def get(self, path, **more):
        return self.ask("GET", path, **more)

    def post(self, path, body=None, **more):
        return self.ask("POST", path, body, **more)

    def put(self, path, body=None, **more):
        return self.ask("PUT", path, body, **more)

    def delete(self, path, **more):
        return self.ask("DELETE", path, **more)

    def close(self):
        self.conn.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Server:
    """`interlock serve` on a free port, or on a unix socket (listen="unix"). start=False: call start() yourself."""

    def __init__(self, store="memory:", listen="127.0.0.1:0", args=(), env=None, key=None, start=True):
        self.folder = tempfile.mkdtemp(prefix="interlock-http-")
        self.store = f"sqlite:{self.folder}/store.db" if store == "sqlite" else store
        self.listen = f"unix:{self.folder}/socket" if listen == "unix" else listen
        self.args, self.env, self.key = list(args), dict(env or {}), key
        self.process, self.lines, self.out = None, [], []
        self.address = self.metrics_address = None
        self.client = None
        if start:
            try:
                self.start()
            except BaseException:
                self.end()
                raise

    def command(self):
        return [BINARY, "serve", "--allow-root", "--store", self.store, "--listen", self.listen] + self.args

    def start(self, wait=20):
        env = {k: v for k, v in os.environ.items() if not k.startswith("INTERLOCK_")}
        env.update(HOME=self.folder, XDG_CONFIG_HOME=self.folder + "/config", XDG_STATE_HOME=self.folder + "/state")
        env["INTERLOCK_LIVERC_URL"] = "http://127.0.0.1:9/{slug}"  # no test reaches a real site
        env.update(self.env)
        self.lines, self.out, self.address = [], [], None
        self.up = threading.Event()
        self.process = subprocess.Popen(self.command(), env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, errors="replace", cwd=self.folder)
        self.readers = [threading.Thread(target=self._read_log, args=(self.process, self.lines, self.up), daemon=True),
                        threading.Thread(target=self._read_out, args=(self.process, self.out), daemon=True)]
        for reader in self.readers:
            reader.start()
        if not self.up.wait(wait * SLOW) or self.address is None:
            self.process.kill()
            self.process.wait()
            raise AssertionError("the server does not start:\n" + "".join(self.lines))
        if self.key is None:
            self.key = self._first_key()
        self.client = Client(self, self.key)
        return self

    def _read_log(self, process, lines, up):
        for line in process.stderr:
            lines.append(line)
            found = re.search(r"listening on (?:http://)?([^\s\"]+)( \(metrics\))?", line)
            if found and found.group(2):
                self.metrics_address = found.group(1)
            elif found:
                # the path of a socket may have blanks
                self.address = self.listen if self.listen.startswith("unix:") else found.group(1)
                if "--metrics-listen" not in self.args:
                    up.set()
            if self.address and self.metrics_address:
                up.set()
        up.set()  # it is over

    def _read_out(self, process, out):
        for line in process.stdout:
            out.append(line)

    def _first_key(self):
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline:
            found = re.search(r"sk_\w+?_[\w-]{43}", "".join(self.out))
            if found:
                return found.group(0)
            time.sleep(0.01)
        return None

    @property
    def log(self):
        return "".join(self.lines)

    def wait_log(self, pattern, seconds=10):
        """Until a line matches; it is returned."""
        deadline = time.monotonic() + seconds * SLOW
        while time.monotonic() < deadline:
            for line in list(self.lines):
                if re.search(pattern, line):
                    return line
            time.sleep(0.02)
        raise AssertionError(f"no line of the log matches {pattern!r}:\n{self.log[-4000:]}")

    # ---- asking

    def socket(self, timeout=20, address=None):
        """A connected socket, for what no client would send."""
        address = address or self.address
        if address.startswith("unix:"):
            sock = socket.socket(socket.AF_UNIX)
            sock.settimeout(timeout)
            sock.connect(address[5:])
            return sock
        host, port = address.rsplit(":", 1)
        return socket.create_connection((host.strip("[]"), int(port)), timeout)

    def connection(self, timeout=90):
        if self.address.startswith("unix:"):
            return UnixConnection(self.address[5:], timeout)
        host, port = self.address.rsplit(":", 1)
        return http.client.HTTPConnection(host.strip("[]"), int(port), timeout=timeout)

    def new_client(self, key=None, timeout=90):
        return Client(self, key or self.key, timeout)

    def ask(self, *args, **more):
        return self.client.ask(*args, **more)

    def get(self, *args, **more):
        return self.client.get(*args, **more)

    def post(self, *args, **more):
        return self.client.post(*args, **more)

    def put(self, *args, **more):
        return self.client.put(*args, **more)

    def delete(self, *args, **more):
        return self.client.delete(*args, **more)

    def key_for(self, tenant, role="write", prefix=None, permissions=()):
        """Another key, through the API; the tenant is made if it is not there."""
        made = self.post("/api/v1/admin/tenants", {"id": tenant})
        if made.status not in (200, 201, 409):
            raise AssertionError(f"tenant {tenant}: {made}")
        body = {"tenant": tenant, "role": role}
        if permissions:
            body["permissions"] = list(permissions)
        if prefix is not None:
            body["prefix"] = prefix
        return self.post("/api/v1/admin/api-keys", body).expect(201).json["key"]

    @contextlib.contextmanager
    def held_run(self, key, tenant="default", ttl="60s"):
        """A run that a process of its own records and holds, on the store: runs of apps' keys are not made through the server."""
        env = {k: v for k, v in os.environ.items() if not k.startswith("INTERLOCK_")}
        env.update(HOME=self.folder, INTERLOCK_STORE=self.store, INTERLOCK_TENANT=tenant)
        process = subprocess.Popen([BINARY, "run", "--record", "--ttl", ttl, key, "--", "sleep", "1000"], env=env,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            def running():
                shown = json.loads(run("runs", "--json", env=env).stdout)["items"]
                return next((r for r in shown if r["key"] == key and r["state"] == "RUNNING"), None)
            yield eventually(running, what="the run")
        finally:
            process.terminate()
            process.wait(30 * SLOW)

    # ---- the process

    @property
    def pid(self):
        return self.process.pid

    def rss(self):
        """Bytes of memory."""
        with open(f"/proc/{self.pid}/status", encoding="ascii") as file:
            return int(re.search(r"VmRSS:\s*(\d+) kB", file.read()).group(1)) * 1024

    def send(self, number):
        self.process.send_signal(number)

    def freeze(self):
        """SIGSTOP outside of a transaction: one that is stopped within one of SQLite keeps everybody else out of the file, rightly,
        and is no test of what happens to its leases."""
        def is_stopped(task):
            with contextlib.suppress(OSError), open(f"/proc/{self.pid}/task/{task}/stat", encoding="utf-8") as file:
                return file.read().rpartition(")")[2].split()[0] == "T"
            return True  # it has ended meanwhile

        def is_free():
            with open(self.store.removeprefix("sqlite:") + "-lock", "rb") as file, contextlib.suppress(BlockingIOError):
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return True
            return False

        def stopped():
            self.send(signal.SIGSTOP)
            eventually(lambda: all(is_stopped(task) for task in os.listdir(f"/proc/{self.pid}/task")), what="the stop of all threads")
            if not self.store.startswith("sqlite:") or is_free():
                return True
            self.send(signal.SIGCONT)
            return False
        eventually(stopped, what="a moment outside of a transaction")

    def stop(self, number=signal.SIGTERM, seconds=20):
        """Its exit status."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        try:
            status = self.process.wait(seconds * SLOW)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"the server does not end within {seconds} s:\n{self.log[-4000:]}") from None
        for reader in self.readers:
            reader.join(5)
        return status

    def kill(self):
        self.process.kill()
        self.process.wait()
        for reader in self.readers:
            reader.join(5)

    def end(self):
        if self.client is not None:
            self.client.close()
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        """A server that was left running must end well, too: no crash, no report of a sanitizer."""
        try:
            if self.process is not None and self.process.poll() is None:
                status = self.stop()
                if status != 0 and kind is None:
                    raise AssertionError(f"the server ended with {status}:\n{self.log[-8000:]}")
            if kind is not None:
                print("# log of the server:\n" + "".join("# " + line for line in self.lines[-60:]))
        finally:
            self.end()


def run(*args, env=None, **more):
    """The binary with these arguments; CompletedProcess with text."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith("INTERLOCK_")}
    clean.update(env or {})
    return subprocess.run([BINARY, *args], env=clean, capture_output=True, text=True, stdin=subprocess.DEVNULL,
                          timeout=60 * SLOW, check=False, **more)


def role_of(op):
    """The role that an operation of /openapi.json needs; a grant such as admin:usage is the role admin's."""
    return op["x-permission"].partition(":")[0]


def permission_of(op):
    """The named permission that does instead."""
    return op["x-permission"] if ":" in op["x-permission"] else op["operationId"].replace("_", ":", 1)


def eventually(check, seconds=10, what="it", pause=0.02):
    """Until check() is true, which is returned. pause: seconds between checks, more for one that costs much."""
    deadline = time.monotonic() + seconds * SLOW
    while True:
        got = check()
        if got:
            return got
        if time.monotonic() > deadline:
            raise AssertionError(f"{what} does not happen within {seconds} s")
        time.sleep(pause)


def together(n, work):
    """work(i) on n threads that begin at once; the results in order. The first failure is raised."""
    results, failures = [None] * n, []
    gate = threading.Barrier(n)

    def one(i):
        try:
            gate.wait()
            results[i] = work(i)
        except BaseException as why:  # pylint: disable=broad-except
            failures.append(why)

    threads = [threading.Thread(target=one, args=(i,)) for i in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    return results


def read_answer(sock):
    """One answer from a raw socket: (status, headers, body), or None when the connection ended without one."""
    data = b""
    while b"\r\n\r\n" not in data:
        try:
            more = sock.recv(65536)
        except ConnectionError:
            more = b""
        if not more:
            return None
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    headers = {name.strip().lower(): value.strip() for name, value in (line.split(":", 1) for line in lines[1:])}
    length = int(headers.get("content-length", 0))
    while len(body) < length:
        more = sock.recv(65536)
        if not more:
            break
        body += more
    return int(lines[0].split()[1]), headers, body


def main(names):
    tests = [(name, fn) for name, fn in names.items() if name.startswith("test_") and callable(fn)]
    only = sys.argv[1:]
    if only:
        tests = [(name, fn) for name, fn in tests if any(word in name for word in only)]
    failed = 0
    print(f"1..{len(tests)}", flush=True)
    for i, (name, fn) in enumerate(tests, 1):
        about = (fn.__doc__ or name).strip().split("\n")[0]
        began = time.monotonic()
        try:
            fn()
            print(f"ok {i} - {name}: {about} ({time.monotonic() - began:.1f} s)", flush=True)
        except Skip as why:
            print(f"ok {i} - {name} # SKIP {why}", flush=True)
        except BaseException as why:  # pylint: disable=broad-except
            failed += 1
            if isinstance(why, KeyboardInterrupt):
                raise
            print(f"not ok {i} - {name}: {about}")
            print("".join("# " + line + "\n" for line in traceback.format_exc().splitlines()), end="", flush=True)
    sys.exit(1 if failed else 0)
