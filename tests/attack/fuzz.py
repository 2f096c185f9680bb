#!/usr/bin/env python3
"""fuzz.py: attacks a running server with abnormal requests and checks that it survives.

    fuzz.py --binary build-asan/src/cli/interlock --seconds 60            all engines
    fuzz.py --binary ... --engine sqlite --seed 7 --only 1:4200-4260      replay a failure

Several processes talk to one server with the keys of all tenants and roles: good and bad requests
for every route, pipelined and split at random bytes, with Expect, aborted, half closed, with slow
readers of /stream. The run fails on a crash, a sanitizer's report, a server that does not answer,
a status 5xx other than 503 and 507 (and 501 to an unknown method), an error without the documented
body, a malformed answer, answers out of order, data of another tenant, or a leak at the end.

A worker's connections are numbered; each has its own generator, seeded with the seed, the worker
and the number. A failure prints the last connections of every worker. A replay makes the same
choices; only ids and fences, which the server chooses, differ.
"""
import argparse
import collections
import contextlib
import json
import multiprocessing
import os
import queue
import random
import re
import signal
import socket
import struct
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "http"))

import answers  # noqa: E402
import grammar  # noqa: E402

ENGINES = ("memory", "sqlite", "postgres", "redis")
ANSWER_S = 60  # an answer that takes longer is a hang
HEALTH_S = 30  # and so is a /health that takes longer
KEPT = 12  # connections that each worker shows after a failure
SHOWN_BYTES = 1500
REPORT = re.compile(r"(ERROR|WARNING): \w+Sanitizer|runtime error:|SUMMARY: |CHECK failed")
MUTATIONS = [
    b"\r\n", b"\n", b"\0", b" ", b":", b"\t", b"\r", b"", b"%", b"\xff", b"HTTP/1.1", b"HTTP/9.9",
    b"Transfer-Encoding: chunked\r\n", b"Content-Length: 5\r\n", b"Expect: 100-continue\r\n",
    b"Host: b\r\n", b"\r\n\r\n", b"A" * 9000, b"X: " + b"b" * 20000 + b"\r\n",
    b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"]
UUID = re.compile(rb'"id":"([0-9a-f]{8}-[0-9a-f-]{27})"')
NUMBER = re.compile(rb'"(?:fence|token)":(\d{1,16})[,}]')
CURSOR = re.compile(rb'"next":"([^"\\]{1,600})"')
NEW_KEY = re.compile(rb'"key":"(sk_[\w-]+)"')


class Worker:
    """One process that attacks."""

    def __init__(self, number, options, address, document, keys, protected):
        host, port = address.rsplit(":", 1)
        self.number, self.options, self.address = number, options, (host, int(port))
        self.grammar = grammar.Grammar(document)
        for method, _, operation in self.grammar.routes:
            operation["x-method"] = method
        self.world = grammar.World(keys, protected)
        self.judge = answers.Judge(document, schema_checker(document))
        self.recent = collections.deque(maxlen=KEPT)
        self.n_requests = self.n_connections = self.n_sent = 0

    def connect(self):
        sock = socket.create_connection(self.address, ANSWER_S)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return sock

    # ---- sending

    def send(self, sock, rng, data):
        """In one piece, or split at random bytes. That the server has closed is no error here."""
        self.recent[-1][2].append(data[:SHOWN_BYTES] + (b"..." if len(data) > SHOWN_BYTES else b""))
        n = grammar.pick(rng, [1, 1, 1, 2, 3, 8])
        cuts = sorted(int(rng.random() * len(data)) for _ in range(n - 1)) + [len(data)]
        at = 0
        try:
            for cut in cuts:
                self.send_all(sock, data[at:cut])
                at = cut
        except (BrokenPipeError, ConnectionResetError):
            self.reader.reset = True

    def send_all(self, sock, data):
        """While the server answers instead of reading, read too, or both would wait."""
        if len(data) <= 65536:
            sock.sendall(data)
            return
        sock.setblocking(False)
        view, deadline = memoryview(data), time.monotonic() + ANSWER_S
        reader = self.reader
        try:
            while len(view) > 0 and time.monotonic() < deadline:
                try:
                    view = view[sock.send(view):]
                except BlockingIOError:
                    with contextlib.suppress(BlockingIOError):
                        got = sock.recv(262144)
                        if not got:
                            return
                        reader.data += got
                    time.sleep(0.001)
        finally:
            sock.settimeout(ANSWER_S)

    def abort(self, sock):
        """Close with a reset."""
        with contextlib.suppress(OSError):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    # ---- reading

    def learn(self, tenant, body):
        if len(body) < 20000 and self.n_requests % 2 == 0 and body.startswith(b"{"):
            self.world.learn_facts(tenant, json.loads(body))
        for found in UUID.findall(body[:20000])[:5]:
            self.world.ids.append(found.decode())
        for found in NUMBER.findall(body[:20000])[:5]:
            self.world.numbers.append(int(found))
        for found in CURSOR.findall(body[-1000:]):
            self.world.cursors.append(found.decode("utf-8", "replace"))
        for found in NEW_KEY.findall(body[:2000]):
            self.world.made_keys.append(found.decode())

    def read_answers(self, rng, requests, may_end=False):
        """One for each, in order, until the server closes the connection after one that says so.
        may_end: or at any time: a client that has closed its half may be taken for gone."""
        reader = self.reader
        for r in requests:
            try:
                answer = reader.answer(r.method, r.version)
            except answers.Ended as why:
                # A reset overtakes answers. It comes when the server closes while we send: after a
                # body that it refused, or with more requests behind one after which it closes.
                overtaken = why.reset and (len(requests) > 1 or r.body or r.expects)
                # A head with very many fields does not fit into libmicrohttpd's memory.
                if may_end or overtaken or len(r.headers) > 80:
                    return
                raise answers.Wrong(f"no answer to {r.head()[:300]!r}: {why}") from None
            self.n_requests += 1
            self.judge.well_formed(r, answer, sample=rng.random() < 0.05)
            if answer.chunked:
                if r.version != "HTTP/1.0":
                    self.read_stream(rng)
                return
            self.learn(r.tenant, answer.body)
            if answer.closes or r.version == "HTTP/1.0":
                return

    def read_stream(self, rng):
        """A few events, slowly, and away."""
        self.sock.settimeout(0.02)
        with contextlib.suppress(TimeoutError, answers.Ended):
            for _ in range(int(rng.random() * 6)):
                self.reader.chunk()

    # ---- connections of several kinds

    def request(self, rng, i, expects=0.03, stream=None):
        number = f"{self.number}-{self.n_connections}-{i}"
        return self.grammar.request(rng, self.world, number, expects, stream)

    def burst(self, rng, expects=0.03, stream=False, n=None):
        n = n or grammar.pick(rng, [1, 2, 4, 8, 16, 24])
        requests = [self.request(rng, i, expects, stream) for i in range(n)]
        self.send(self.sock, rng, b"".join(r.bytes() for r in requests))
        return requests

    def do_burst(self, rng):
        self.read_answers(rng, self.burst(rng))

    def do_half_closed(self, rng):
        requests = self.burst(rng, n=3)
        with contextlib.suppress(OSError):
            self.sock.shutdown(socket.SHUT_WR)
        self.read_answers(rng, requests, may_end=True)

    def do_expect(self, rng):
        """Expect with and without a body; the body at once, after the 100, or never; and more."""
        first = self.request(rng, 0, expects=1, stream=rng.random() < 0.4)
        rest = [self.request(rng, i, 0.5, stream=rng.random() < 0.2)
                for i in range(1, grammar.pick(rng, [1, 2, 4]))]
        if rng.random() < 0.7:
            self.send(self.sock, rng, first.bytes() + b"".join(r.bytes() for r in rest))
            self.read_answers(rng, [first] + rest)
            return
        self.send(self.sock, rng, first.head())
        self.sock.settimeout(0.05)
        with contextlib.suppress(TimeoutError, answers.Ended):
            self.reader.more()
        self.sock.settimeout(ANSWER_S)
        if rng.random() < 0.3:
            self.abort(self.sock)
            return
        self.send(self.sock, rng, first.body + b"".join(r.bytes() for r in rest))
        self.read_answers(rng, [first] + rest)

    def do_stream(self, rng):
        """A stream with something before or behind it; its reader is slow, or leaves."""
        before = [self.request(rng, i, 0.1, False) for i in range(int(rng.random() * 3))]
        stream = self.request(rng, 8, 0.3, stream=True)
        behind = [self.request(rng, 9, 0.3)] if rng.random() < 0.5 else []
        self.send(self.sock, rng, b"".join(r.bytes() for r in before + [stream] + behind))
        if rng.random() < 0.2:
            self.abort(self.sock)
            return
        self.read_answers(rng, before + [stream])

    def do_abort(self, rng):
        """Cut off in the middle, also of waits."""
        requests = [self.request(rng, i, 0.1) for i in range(1 + int(rng.random() * 4))]
        for r in requests:  # nobody waits for the answer, so they may take long
            r.target = r.target.replace("wait=50ms", "wait=50s")
            r.set_body(r.body.replace(b'"wait_ms": 40', b'"wait_ms": 60000')
                       .replace(b'"wait_ms": 80', b'"wait_ms": "forever"'))
        data = b"".join(r.bytes() for r in requests)
        if rng.random() < 0.6:
            data = data[:1 + int(rng.random() * len(data))]
        self.send(self.sock, rng, data)
        if rng.random() < 0.3:
            self.sock.settimeout(0.01)
            with contextlib.suppress(TimeoutError, answers.Ended):
                self.reader.more()
        if rng.random() < 0.7:
            self.abort(self.sock)

    def do_malformed(self, rng):
        """Bytes that are almost a request."""
        requests = [self.request(rng, i, 0.2, False) for i in range(1 + int(rng.random() * 2))]
        for r in requests:
            r.method = "GET" if r.method == "HEAD" else r.method  # then an answer has a body
        data = bytearray(b"".join(r.bytes()[:4000] for r in requests))
        for _ in range(1 + int(rng.random() * 5)):
            at = int(rng.random() * min(len(data), 700))
            data[at:at + int(rng.random() * 3)] = grammar.pick(rng, MUTATIONS)
        self.send(self.sock, rng, bytes(data))
        with contextlib.suppress(OSError):
            self.sock.shutdown(socket.SHUT_WR)
        with contextlib.suppress(answers.Ended):
            while True:
                answer = self.reader.head()
                if answer.status == 100:
                    continue
                self.n_requests += 1
                self.judge.anything(answer)
                if answer.chunked:
                    return
                self.reader.take(int(answer.headers.get(b"content-length", b"0")))

    KINDS = ((45, do_burst), (12, do_expect), (10, do_stream), (12, do_abort), (13, do_malformed),
             (8, do_half_closed))

    def one(self, number):
        """The connection with this number."""
        rng = random.Random(f"{self.options.seed}/{self.number}/{number}")
        kind = rng.choices([fn for _, fn in self.KINDS], [weight for weight, _ in self.KINDS])[0]
        self.n_connections = number
        self.recent.append((number, kind.__name__, []))
        self.sock = self.connect()
        self.reader = answers.Reader(self.sock)
        try:
            kind(self, rng)
        except TimeoutError:
            raise answers.Wrong(f"no answer within {ANSWER_S} s") from None
        finally:
            self.sock.close()

    def run(self, stop, results):
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        first, last = self.options.only if self.options.only else (0, 2**62)
        failure = None
        number = first
        while not stop.is_set() and number <= last and failure is None:
            try:
                self.one(number)
            except answers.Wrong as why:
                failure = str(why)
            except (ConnectionRefusedError, ConnectionResetError, BrokenPipeError):
                if not self.options.only:
                    time.sleep(0.05)  # it may be dead: its parent will know
            number += 1
        results.put((self.number, failure, self.n_requests, number - first, self.judge.statuses,
                     list(self.recent)))


def schema_checker(document):
    import schema
    checker = schema.Document(document)

    def check(operation, answer):
        class Shown:
            status = answer.status
            headers = {"Content-Type": answer.headers.get(b"content-type", b"").decode("latin-1")}
            json = None
        if answer.chunked or not answer.body:
            return
        if Shown.headers["Content-Type"].startswith("application/json"):
            Shown.json = json.loads(answer.body)
        try:
            checker.check_answer(operation, Shown)
        except (schema.Wrong, KeyError) as why:
            raise answers.Wrong(f"not as /openapi.json says: {why}") from None
    return check


# ---- the server

def pipelines():
    from fleet import command, pipeline, script
    return {
        "hello": command("echo", "hello"),
        "slow": pipeline("slow", script("sleep 0.3"), on_conflict="queue"),
        "params": pipeline("params", command("echo", "{a}"), parameters={"a": "x", "b": 1},
                           on_conflict="reject"),
        "probed": pipeline("probed", command("true"),
                           preflight={"type": "command", "run": ["sleep", "0.1"]}),
    }


def sign_in(server, key):
    """The cookie of a session of the admin page: a key of another kind."""
    page = {"X-Interlock-Page": "1"}
    answer = server.ask("POST", "/ui/session", {"key": key}, key=None, headers=page)
    return answer.expect(200).headers["Set-Cookie"].partition(";")[0]


def start(engine):
    """A server with tenants t0 to t2: (the fleet, [(tenant, role, key)], ids of keys)."""
    from fleet import Fleet
    fleet = Fleet(engine, tenant="t0", pipelines=pipelines(), env={
        "INTERLOCK_LOGIN_FAILURES": "1000000",
        "INTERLOCK_LOCK_ACQUISITION_RETRY_DELAY_SECONDS": "0",
        "INTERLOCK_SHUTDOWN": "5s"})
    try:
        fleet.put("t1", pipelines())
        fleet.a.post("/pipelines/reload").expect(200)
        keys, protected = [], [re.search(r"key ([0-9a-f-]{36})", fleet.a.log)[1]]
        for tenant in ("t0", "t1", "t2"):
            fleet.a.post("/api/v1/admin/tenants", {"id": tenant}).expect(201)
            for role, prefix in (("read", 0), ("write", 0), ("operator", 0), ("write", "k")):
                body = {"tenant": tenant, "role": role}
                if prefix:
                    body["prefix"] = prefix
                made = fleet.a.post("/api/v1/admin/api-keys", body).expect(201).json
                keys.append((tenant, role, made["key"]))
                protected.append(made["id"])
        # Those that may do more ask more often. Nothing carries a mark of the admin's tenant.
        keys += [key for key in keys if key[1] == "operator"] * 3 + [(None, "admin", fleet.a.key)]
        keys += [(tenant, role, sign_in(fleet.a, key)) for tenant, role, key in keys[::3]]
        return fleet, keys, protected
    except BaseException:
        fleet.end()
        raise


def is_healthy(address):
    host, port = address.rsplit(":", 1)
    try:
        with socket.create_connection((host, int(port)), HEALTH_S) as sock:
            sock.sendall(b"GET /health HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            return answers.Reader(sock).answer("GET").status == 200
    except (OSError, answers.Ended, answers.Wrong):
        return False


def left_behind(address, keys):
    """Requests under way while the server is stopped: streams, waits, half a body, half a head."""
    host, port = address.rsplit(":", 1)
    key = next(key for tenant, role, key in keys if role == "operator").encode()
    head = b" HTTP/1.1\r\nHost: a\r\nX-API-Key: " + key + b"\r\n"
    wait = b'{"key":"held","holder":"w%d","wait_ms":60000}'
    json_head = b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    sent = []
    for i in range(8):
        body = wait % i
        sent += [b"GET /api/v1/stream" + head + b"\r\n", b"GET /api/v1/stre",
                 b"GET /health" + head + b"Expect: 100-continue\r\n\r\n",
                 b"POST /api/v1/locks/acquire" + head + json_head % len(body) + body,
                 b"POST /api/v1/locks/acquire" + head + json_head % 500 + b"{",
                 b"POST /pipelines/run/slow" + head + json_head % 2 + b"{}"]
    socks = []
    for data in sent:
        with contextlib.suppress(OSError):
            sock = socket.create_connection((host, int(port)), HEALTH_S)
            sock.sendall(data)
            socks.append(sock)
    return socks


def watch(server, stop, workers, deadline):
    """Until the time is over, a worker has stopped or the server fails: what is wrong, or None."""
    looked = time.monotonic()
    while time.monotonic() < deadline and all(w.is_alive() for w in workers):
        if server.process.poll() is not None:
            return f"the server ended with status {server.process.returncode}"
        if time.monotonic() - looked > 1:
            if not is_healthy(server.address):
                time.sleep(1)
                dead = server.process.poll()
                return f"the server ended with status {dead}" if dead is not None else \
                    f"/health does not answer within {HEALTH_S} s"
            looked = time.monotonic()
        time.sleep(0.05)
    stop.set()
    return None


def show(recent):
    for number, connections in sorted(recent.items()):
        for episode, kind, sent in connections:
            print(f"# worker {number} connection {episode} ({kind}):")
            for data in sent:
                print(f"#     {data!r}")


def attack(engine, options):
    """One engine: what is wrong, or None."""
    import lib
    fleet, keys, protected = start(engine)
    server = fleet.a
    began = time.monotonic()
    try:
        document = server.get("/openapi.json").expect(200).json
        stop, results = multiprocessing.Event(), multiprocessing.Queue()
        numbers = [options.worker] if options.only else range(options.workers)
        workers = [Worker(i, options, server.address, document, keys, protected) for i in numbers]
        processes = [multiprocessing.Process(target=w.run, args=(stop, results), daemon=True)
                     for w in workers]
        for process in processes:
            process.start()
        seconds = 86400 if options.only else options.seconds
        problem = watch(server, stop, processes, began + seconds)
        stop.set()
        n_requests, n_connections, statuses, recent = 0, 0, collections.Counter(), {}
        for _ in processes:
            try:
                number, failure, requests, connections, seen, last = results.get(
                    timeout=ANSWER_S + 10)
            except queue.Empty:
                problem = problem or "a worker did not stop"
                break
            if failure:
                print(f"# worker {number}: {failure}")
            problem = problem or failure
            n_requests, n_connections = n_requests + requests, n_connections + connections
            statuses.update(seen)
            recent[number] = last
        for process in processes:
            process.join(5)
            if process.is_alive():
                process.kill()
        seconds = time.monotonic() - began
        if problem is None:
            problem = end(server, keys)
        else:
            time.sleep(1)  # a server that dies closes its connections first: say what matters
            if server.process.poll() is not None and "ended with" not in problem:
                problem = f"the server ended with status {server.process.returncode} ({problem})"
        reported = REPORT.search(server.log)
        if reported and (problem is None or "ended with" in problem):
            line = next(line for line in server.lines if REPORT.search(line))
            problem = f"{line.strip()[:200]}{'; ' + problem if problem else ''}"
        print(f"{engine}: {n_requests} answers on {n_connections} connections in {seconds:.0f} s "
              f"({n_requests / seconds:.0f} per second), RSS at most {peak(server):.0f} MiB")
        print("    " + ", ".join(f"{status}: {n}" for status, n in sorted(statuses.items())))
        if n_requests == 0 and problem is None:
            problem = "nothing was answered"
        if problem is not None:
            show(recent)
            with contextlib.suppress(Exception):
                server.process.wait(10)
            reports = [i for i, line in enumerate(server.lines) if REPORT.search(line)]
            first = max(reports[0] - 2, 0) if reports else max(len(server.lines) - 20, 0)
            print("".join("# " + line for line in server.lines[first:first + 80]))
            ends = {number: last[-1][0] for number, last in recent.items() if last}
            print(f"failed: {engine}: {problem}")
            print(f"failed: replay with --engine {engine} --seed {options.seed} and one of "
                  + ", ".join(f"--only {w}:{max(e - 30, 0)}-{e}" for w, e in sorted(ends.items())))
        return problem
    finally:
        lib.SLOW = 1
        fleet.end()


rss_peak = {}


def peak(server):
    return rss_peak.get(server.pid, 0)


def end(server, keys):
    """Stop it with requests under way: it must exit with 0, without a report about leaks."""
    with open(f"/proc/{server.pid}/status", encoding="ascii") as file:
        rss_peak[server.pid] = int(re.search(r"VmHWM:\s*(\d+)", file.read())[1]) / 1024
    if not is_healthy(server.address):
        return "/health does not answer at the end"
    socks = left_behind(server.address, keys)
    try:
        status = server.stop(seconds=60)
        return None if status == 0 else f"the server ended with status {status}"
    except AssertionError as why:
        return str(why).splitlines()[0]
    finally:
        for sock in socks:
            sock.close()


def main():
    parser = argparse.ArgumentParser(description="Attack a running server with random requests.")
    parser.add_argument("--binary", default=os.environ.get("INTERLOCK_BIN"))
    parser.add_argument("--engine", action="append", choices=ENGINES, help="default: all")
    parser.add_argument("--seconds", type=float, default=60, help="of each engine")
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32))
    parser.add_argument("--only", help="WORKER:FIRST-LAST: these connections of one worker")
    options = parser.parse_args()
    if options.binary is None:
        parser.error("--binary is needed")
    os.environ["INTERLOCK_BIN"] = os.path.abspath(options.binary)
    if options.only:
        worker, first, last = map(int, re.fullmatch(r"(\d+):(\d+)-(\d+)", options.only).groups())
        options.worker, options.only = worker, (first, last)
    n_failed, engines = 0, options.engine or ENGINES
    print(f"seed {options.seed}, {options.workers} workers, {options.seconds:g} s for each engine",
          flush=True)
    for engine in engines:
        problem = attack(engine, options)
        n_failed += problem is not None
        print(f"{'not ok' if problem else 'ok'} - attack {engine}", flush=True)
    print(f"{len(engines) - n_failed} passed, {n_failed} failed, 0 skipped")
    return 1 if n_failed else 0


if __name__ == "__main__":
    sys.exit(main())
