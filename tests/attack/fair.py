#!/usr/bin/env python3
"""fair.py ENGINE...: one tenant attacks the server, and another one is not affected.

The tenant `evil` attacks every route at once: batches of 4,096 ops of each kind, results and bodies
of maximum size, thousands of waits, unread streams, probes, triggers, listings, and searches in
large waits-for graphs. The tenant `good` uses the same server meanwhile. It renews a 5 s lease
after every third of its TTL, and acquires, renews, reads and releases its own keys. Its lease is
never lost, 99 of 100 of its calls take less than a second, and the server's memory stays bounded.

A call that the server defers (429, 503) is repeated as a client would do, and its time keeps
counting.

All servers are started and prepared at once, then attacked one after another.

IL_FAIR_SECONDS   how long (default: 7, longer than a lease)
IL_FAIR_P99_MS    how long a call of the other tenant may take, at the 99th percentile
                  (default: 1000)
IL_FAIR_ONLY      names of attacks, separated by blanks (default: all)
"""
import collections
import concurrent.futures
import contextlib
import functools
import json
import multiprocessing
import os
import queue
import re
import signal
import socket
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "http"))

import lib  # noqa: E402
from fleet import Fleet, command, pipeline, servers  # noqa: E402

SECONDS = float(os.environ.get("IL_FAIR_SECONDS", "7"))
ONLY = os.environ.get("IL_FAIR_ONLY", "").split()
TTL_MS = 5000
P99_MS = float(os.environ.get("IL_FAIR_P99_MS", "1000")) * lib.SLOW
RSS_BYTES = 1 << 30
BATCH = 4096
VALUES = 40_000  # tiny values in evil's cache
FILL = 4000  # of them by one request
BIG = 1_000_000  # bytes of a large one, nearly as large as they may be
JOBS = 48  # with such a payload
TIMEOUT_S = 30  # of a call
CHAIN = 2000  # holders that wait for each other, one after the other


# ---- a client that costs little

class Raw:
    """A connection that sends prepared bytes and throws answers away."""

    def __init__(self, address, key):
        host, port = address.rsplit(":", 1)
        self.address, self.key, self.sock = (host, int(port)), key.encode(), None

    def connect(self):
        self.close()
        self.sock = socket.create_connection(self.address, TIMEOUT_S)
        return self.sock

    def request(self, method, path, body=None, more=b""):
        """The bytes of a request. body: bytes, or something for JSON."""
        data = body or b""
        if not isinstance(data, bytes):
            data = json.dumps(data).encode()
        head = b"%s %s HTTP/1.1\r\nHost: a\r\nX-API-Key: %s\r\n" % (
            method.encode(), path.encode(), self.key)
        if data:
            head += b"Content-Type: application/json\r\n"
        return head + more + b"Content-Length: %d\r\n\r\n" % len(data) + data

    def ask(self, data, keep=False):
        """Send it, read the answer: (status, body if it is to be kept)."""
        if self.sock is None:
            self.connect()
        try:
            self.sock.sendall(data)
            return self.answer(keep)
        except OSError:
            self.close()
            return 0, b""

    def answer(self, keep=False):
        got = b""
        while (end := got.find(b"\r\n\r\n")) < 0:
            more = self.sock.recv(65536)
            if not more:
                self.close()
                return 0, b""
            got += more
        head = got[:end].lower()
        status = int(head[9:12])
        found = re.search(rb"content-length: (\d+)", head)
        left = int(found[1]) if found else 0
        parts = [got[end + 4:]]
        left -= len(parts[0])
        while left > 0:
            more = self.sock.recv(min(left, 1 << 20))
            if not more:
                self.close()
                return 0, b""
            left -= len(more)
            if keep:
                parts.append(more)
        if b"connection: close" in head:
            self.close()
        return status, b"".join(parts) if keep else b""

    def close(self):
        if self.sock is not None:
            self.sock.close()
            self.sock = None


# ---- the hostile tenant

def minimal(document, schema, i, name="", op=False):
    """The least that a schema takes, with names that differ by i."""
    while "$ref" in schema:
        schema = document["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]]
    for word in ("anyOf", "oneOf"):
        if word in schema:
            return minimal(document, schema[word][0], i, name)
    if "const" in schema or "enum" in schema:
        return schema.get("const", schema.get("enum", [None])[0])
    kind = schema.get("type", "string")
    kind = kind[0] if isinstance(kind, list) else kind
    if kind == "object":
        return {member: minimal(document, schema["properties"][member], i, member)
                for member in schema.get("required", ())}
    if kind == "integer":
        return max(schema.get("minimum", 1), 1000 if name.endswith("_ms") else 1)
    if kind == "array":
        return [minimal(document, schema.get("items", {}), i, name)]
    return {"schedule": "0 0 1 1 *", "queue": "many", "state": "COMPLETED"}.get(name, f"{name}{i}")


def batches(document):
    """A batch of 4,096 of each sort of op; the next one has the same names."""
    for ref in document["components"]["schemas"]["Op"]["oneOf"]:
        ops = [minimal(document, ref, i) for i in range(BATCH)]
        yield "batch of " + ops[0]["op"], "POST", "/api/v1/batch", {"ops": ops}


def large(document):
    """What makes the server hold, parse or print much."""
    acquire = {"op": "acquire", "key": "extra", "holder": "h"}
    get = {"op": "cache_get", "key": "big"}
    yield "4,095 cache_stats", "POST", "/api/v1/batch", {
        "ops": [{"op": "cache_stats"}] * (BATCH - 1) + [acquire]}
    yield "4,096 big values", "POST", "/api/v1/batch", {"ops": [get] * BATCH}
    yield "one big value", "POST", "/api/v1/cache/get", {"key": "big"}
    yield "claim of big jobs", "POST", "/api/v1/queues/big/claim", {"limit": 1000, "lease_ms": 1000}
    yield "list of big jobs", "GET", "/api/v1/queues/big/jobs?limit=1000", None
    yield "push of big jobs", "POST", "/api/v1/queues/more/jobs", {
        "items": [{"payload": "x" * BIG} for _ in range(14)]}
    yield "14 MB of ops", "POST", "/api/v1/batch", {"ops": [
        {"op": "acquire", "key": f"meta{i}", "holder": "h", "meta": "m" * 3300}
        for i in range(BATCH)]}
    yield "14 MB of nonsense", "POST", "/api/v1/batch", (
        b'{"ops":[' + b'{"a":1},' * 1_700_000 + b"1]}")
    yield "purge", "POST", "/api/v1/queues/more/purge", {"state": ["READY", "SCHEDULED"]}


def graph(document):
    """Waits for the first key of a chain, which search it for a deadlock; and who asks why."""
    last = {"op": "acquire", "key": "c0", "holder": f"h{CHAIN}", "wait_ms": 60000}
    yield "deadlock searches", "POST", "/api/v1/batch", {"ops": [last] * BATCH}
    yield "why", "GET", f"/api/v1/locks/why?key=c{CHAIN - 1}", None
    yield "why at the other end", "GET", "/api/v1/locks/why?key=c1", None
    yield "chain", "POST", "/api/v1/batch", {"ops": chain()}
    # Each key is a class of its own: the lock order is looked up for each that the holder has.
    yield "one holder of many keys", "POST", "/api/v1/batch", {"ops": [
        {"op": "acquire", "key": f"class{i}", "holder": "one"} for i in range(BATCH)]}


def listings(document):
    for path, methods in document["paths"].items():
        if "get" in methods and "{" not in path and not path.endswith("/stream"):
            names = [p.get("name") for p in methods["get"].get("parameters", ())]
            most = [p["schema"].get("maximum", 1000) for p in methods["get"].get("parameters", ())
                    if p.get("name") == "limit"]
            query = f"?limit={most[0]}" if most else "?key=big" if "key" in names else ""
            yield "GET " + path, "GET", path + query, None


def triggers(document):
    for name in ("hello", "probed"):
        yield "trigger " + name, "POST", "/pipelines/run/" + name, {}
    yield "reload", "POST", "/pipelines/reload", None
    yield "run", "POST", "/api/v1/runs", {"key": "run", "on_conflict": "queue"}


def chain():
    """Half of them hold a key each; then each waits for the next one's."""
    half = BATCH // 2 - 1
    n = min(CHAIN, half)
    hold_one = [{"op": "acquire", "key": f"c{i}", "holder": f"h{i}", "ttl_ms": 60000}
                for i in range(n)]
    return hold_one + [{"op": "acquire", "key": f"c{i + 1}", "holder": f"h{i}", "wait_ms": 60000}
                       for i in range(n - 1)]


# What evil does: a name, and how many connections do it at once.
ATTACKS = {"batches": (batches, 4), "large": (large, 6), "graph": (graph, 3),
           "listings": (listings, 4), "triggers": (triggers, 4)}
WAITS = {
    "acquire": (1000, "POST", "/api/v1/locks/acquire",
                lambda i: {"key": "wanted", "holder": f"w{i}", "wait_ms": 60000}),
    "claim": (600, "POST", "/api/v1/queues/empty/claim", lambda i: {"wait_ms": 60000}),
    "lookup": (300, "POST", "/api/v1/cache/lookup",
               lambda i: {"key": "building", "holder": f"w{i}", "wait_ms": 60000}),
    "batch": (100, "POST", "/api/v1/batch",
              lambda i: {"ops": [{"op": "acquire", "key": "wanted", "holder": f"b{i}",
                                  "wait_ms": 60000}], "wait_ms": 60000}),
}
STREAMS = 1000
BODIES = 100  # requests of 15 MB whose last byte never comes


def repeat(address, key, requests, offset, stop, counts):
    """One connection: these requests, again and again."""
    raw = Raw(address, key)
    i = offset
    while not stop.is_set():
        name, data = requests[i % len(requests)]
        i += 1
        began = time.monotonic()
        status, _ = raw.ask(data)
        seen = counts.setdefault(name, [0, 0.0, collections.Counter()])
        seen[0] += 1
        seen[1] = max(seen[1], time.monotonic() - began)
        seen[2][status] += 1
        if status == 0:
            time.sleep(0.05)
    raw.close()


def hold(address, key, stop, counts):
    """Waits and streams that stay; answered ones are sent again. Their key changes hands."""
    raw = Raw(address, key)
    socks = {}
    seen = counts.setdefault("waits", [0, 0.0, collections.Counter()])
    while not stop.is_set():
        for what, (n, method, path, body) in WAITS.items():
            for i in range(n):
                sock = socks.get((what, i))
                with contextlib.suppress(OSError):
                    if sock is None:
                        sock = socks[what, i] = raw.connect()
                        raw.sock = None
                        sock.setblocking(False)
                    elif not readable(sock):
                        continue
                    sock.send(raw.request(method, path, body(i)))
                    seen[0] += 1
        for i in range(STREAMS):
            if ("stream", i) not in socks:
                with contextlib.suppress(OSError):
                    socks["stream", i] = raw.connect()
                    raw.sock.sendall(raw.request("GET", "/api/v1/stream"))
                    raw.sock = None
        status, body = raw.ask(raw.request("POST", "/api/v1/locks/acquire",
                                           {"key": "wanted", "holder": "first"}), keep=True)
        if status == 200:
            fence = json.loads(body)["fence"]
            raw.ask(raw.request("POST", "/api/v1/locks/release",
                                {"key": "wanted", "holder": "first", "fence": fence}))
        stop.wait(0.2)
    for sock in socks.values():
        sock.close()


def half_bodies(address, key, stop, counts):
    """Bodies that are as large as they may be, but for the last byte."""
    raw = Raw(address, key)
    seen = counts.setdefault("bodies of 15 MB", [0, 0.0, collections.Counter()])
    data = raw.request("POST", "/api/v1/batch", b" " * 15_700_000)[:-1]
    while not stop.is_set():
        socks = []
        for _ in range(BODIES):
            if stop.is_set():
                break
            with contextlib.suppress(OSError):
                sock = raw.connect()
                raw.sock = None
                socks.append(sock)
                sock.sendall(data)
                seen[0] += 1
        stop.wait(2)
        for sock in socks:
            sock.close()


def readable(sock):
    try:
        got = sock.recv(65536)
        return len(got) > 0
    except BlockingIOError:
        return False


HOLDERS = {"waits": hold, "bodies": half_bodies}


@functools.cache
def bodies_of(name):
    """The requests of an attack as (name, method, path, body as bytes). They take seconds of CPU
    time to write, which no attacker has once the server is busy: they are written before the first
    attack begins, for all servers."""
    def as_bytes(body):
        return body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    return [(what, method, path, as_bytes(body))
            for what, method, path, body in ATTACKS[name][0](DOCUMENT)]


def requests_of(address, key, name):
    """The bytes of an attack's requests, with their names."""
    raw = Raw(address, key)
    return [(what, raw.request(method, path, body)) for what, method, path, body in bodies_of(name)]


def evil(address, key, name, requests, stop, results):
    """One process: all connections of one attack."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(5)  # its own work is not what is measured
    counts = {}
    if name in HOLDERS:
        threads = [threading.Thread(target=HOLDERS[name], args=(address, key, stop, counts))]
    else:
        n = ATTACKS[name][1]
        step = max(len(requests) // n, 1)
        threads = [threading.Thread(target=repeat, args=(
            address, key, requests, i * step, stop, counts)) for i in range(n)]
    for thread in threads:
        thread.daemon = True  # what they wait for does not matter any more
        thread.start()
    stop.wait()
    results.put((name, {what: list(seen) for what, seen in list(counts.items())}))


def multiply(schema, n):
    """The n tiny values in a PostgreSQL store become VALUES. Through the server that takes longer
    than an attack, and nothing else may run meanwhile."""
    copies = f"""INSERT INTO {schema}.cache_value
                 SELECT (jsonb_populate_record(v, jsonb_build_object(
                             'key', 'tiny' || substr(v.key, 5)::int + at))).*
                   FROM {schema}.cache_value v, generate_series({n}, {VALUES - n}, {n}) at"""
    done = subprocess.run(["psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1",
                           "-d", os.environ["IL_TEST_POSTGRES"], "-c", copies,
                           "-c", f"SELECT count(*) FROM {schema}.cache_value"],
                          capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    if done.returncode != 0 or done.stdout.strip() != str(VALUES):
        raise AssertionError(f"psql: {done.stdout}{done.stderr}")


def prepare(fleet, key):
    """What the attacks need in the store: many tiny values, a large one, large jobs, a held key."""
    raw = Raw(fleet.a.address, key)

    def ask(method, path, body, expected=(200, 201, 202)):
        status, answer = raw.ask(raw.request(method, path, body), keep=True)
        if status not in expected:
            raise AssertionError(f"{method} {path}: {status} {answer[:500]!r}")
        return json.loads(answer)

    def fill(keys, value):
        got = ask("POST", "/api/v1/batch", {"ops": [
            {"op": "cache_lookup", "key": k, "holder": "h", "lease_ms": 60000} for k in keys]})
        done = ask("POST", "/api/v1/batch", {"ops": [
            {"op": "cache_fill", "key": k, "holder": "h", "token": r["token"], "value": value,
             "ttl_ms": 3600000} for k, r in zip(keys, got["results"])]})
        if any(r["status"] != "OK" for r in done["results"]):
            raise AssertionError(f"fill: {done['results'][:3]}")

    is_postgres = fleet.store.startswith("postgres")
    for at in range(0, FILL if is_postgres else VALUES, FILL):
        fill([f"tiny{i}" for i in range(at, at + FILL)], "x")
    if is_postgres:
        multiply(fleet.name, FILL)
    fill(["big"], "v" * BIG)
    ask("POST", "/api/v1/cache/lookup", {"key": "building", "holder": "h", "lease_ms": 3600000})
    for queue in ("big", "empty", "more", "many"):
        ask("PUT", f"/api/v1/queues/{queue}", {"max_attempts": 1000, "backoff_ms": 1})
    for _ in range(JOBS // 8):
        ask("POST", "/api/v1/queues/big/jobs", {"items": [{"payload": "x" * BIG}] * 8})
    raw.close()


# ---- the tenant that must not notice

class Good:
    """A process with a lease that it renews, and calls that it measures."""

    def __init__(self, address, key):
        self.address, self.key = address, key
        self.times, self.statuses = [], collections.Counter()
        self.renewals, self.longest_s, self.lost = 0, 0.0, None

    def ask(self, raw, path, body, method="POST"):
        """One call, repeated while it is put off: (status, answer, seconds)."""
        began = time.monotonic()
        data = raw.request(method, path, body)
        while True:
            status, answer = raw.ask(data, keep=True)
            self.statuses[status] += 1
            if status not in (0, 429, 503):
                return status, answer, time.monotonic() - began
            if time.monotonic() - began > TIMEOUT_S:
                raise AssertionError(f"{path}: {status} {answer[:300]!r} for {TIMEOUT_S} s")
            time.sleep(0.1)

    def keep_lease(self, stop):
        try:
            self.renew_until(stop)
        except AssertionError as why:
            self.lost = str(why)

    def renew_until(self, stop):
        raw = Raw(self.address, self.key)
        lease = {"key": "lease", "holder": "good", "ttl_ms": TTL_MS}
        sent = time.monotonic()
        status, answer, _ = self.ask(raw, "/api/v1/locks/acquire", lease)
        if status != 200:
            self.lost = f"not granted: {status} {answer[:300]!r}"
            return
        fence = json.loads(answer)["fence"]
        while not stop.wait(max(sent + TTL_MS / 3000 - time.monotonic(), 0)):
            now = time.monotonic()
            status, answer, _ = self.ask(raw, "/api/v1/locks/renew",
                                         {"key": "lease", "holder": "good", "fence": fence})
            late = time.monotonic() - sent
            self.longest_s = max(self.longest_s, late)
            self.renewals += 1
            if status != 200:
                self.lost = f"renewal {self.renewals}: {status} {answer[:300]!r}"
            elif late > TTL_MS / 1000:
                self.lost = f"renewal {self.renewals} was confirmed {late:.1f} s after the last one"
            if self.lost:
                return
            sent = now

    def small_calls(self, stop):
        raw = Raw(self.address, self.key)
        i = 0
        while not stop.is_set():
            i += 1
            key, holder = f"own{i % 7}", f"h{i}"
            lease = {"key": key, "holder": holder}
            status, answer, t = self.ask(raw, "/api/v1/locks/acquire", lease)
            if status != 200:
                raise AssertionError(f"acquire of an own key: {status} {answer[:300]!r}")
            self.times.append(t)
            lease["fence"] = json.loads(answer)["fence"]
            for path, body, method in (("/api/v1/locks/renew", lease, "POST"),
                                       (f"/api/v1/locks/get?key={key}", None, "GET"),
                                       ("/api/v1/locks/release", lease, "POST")):
                status, answer, t = self.ask(raw, path, body, method)
                self.times.append(t)
                # A lease of 30 s that was never late is still there.
                if status != 200:
                    raise AssertionError(f"{path}: {status} {answer[:300]!r}")
            if i % 10 == 0:
                raw.close()  # connect anew
            stop.wait(0.005)

    def run(self, stop, results):
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        keeper = threading.Thread(target=self.keep_lease, args=(stop,))
        keeper.start()
        failure = None
        try:
            self.small_calls(stop)
        except AssertionError as why:
            failure = str(why)
        keeper.join()
        results.put((self.times, self.statuses, self.renewals, self.longest_s, self.lost, failure))


# ---- the test

def watch(server, seconds):
    """The server's memory at its highest, bytes."""
    deadline, most = time.monotonic() + seconds, 0
    while time.monotonic() < deadline:
        if server.process.poll() is not None:
            raise AssertionError(f"the server exited with status {server.process.returncode}:\n"
                                 + server.log[-3000:])
        most = max(most, server.rss())
        time.sleep(0.05)
    return most


def collect(results, n, seconds):
    """What n processes report, less those that do not within this time."""
    deadline, got = time.monotonic() + seconds, []
    with contextlib.suppress(queue.Empty):
        while len(got) < n:
            got.append(results.get(timeout=max(deadline - time.monotonic(), 0)))
    return got


def start(fleet, evil_key, good_key):
    """All processes: (evil's stop, good's stop, processes, evil's results, good's results)."""
    stops = multiprocessing.Event(), multiprocessing.Event()
    queues = multiprocessing.Queue(), multiprocessing.Queue()
    address = fleet.a.address
    names = [name for name in [*ATTACKS, *HOLDERS] if not ONLY or name in ONLY]
    processes = [multiprocessing.Process(
        target=Good(address, good_key).run, args=(stops[1], queues[1]), daemon=True)]
    requests = {name: requests_of(address, evil_key, name) for name in names if name in ATTACKS}
    raw = Raw(address, evil_key)
    status, answer = raw.ask(raw.request("POST", "/api/v1/batch", {"ops": chain()}), keep=True)
    raw.close()
    assert status == 200, (status, answer[:500])
    processes += [multiprocessing.Process(
        target=evil, args=(address, evil_key, name, requests.get(name), stops[0], queues[0]),
        daemon=True) for name in names]
    for process in processes:
        process.start()
    return stops, queues, processes, len(names)


def percentile(times, share):
    return 1000 * sorted(times)[min(int(len(times) * share), len(times) - 1)] if times else 1e9


def report(engine, good, hostile, rss):
    times, statuses, renewals, longest_s, lost, _ = good
    print(f"# {engine}: {len(times)} calls of good: p50 {percentile(times, 0.5):.1f} ms, "
          f"p99 {percentile(times, 0.99):.1f} ms, at most {percentile(times, 1):.1f} ms; "
          f"statuses {dict(statuses)}")
    print(f"# {engine}: {renewals} renewals, at most {longest_s:.2f} s apart; "
          f"lease {'LOST: ' + lost if lost else 'kept'}; RSS at most {rss >> 20} MiB")
    for name, counts in sorted(hostile):
        for what, (n, longest, seen) in sorted(counts.items()):
            print(f"#     {name}: {what}: {n} times, at most {longest:.1f} s, {dict(seen)}")


def judge(good, rss):
    """What is not as it should be: texts."""
    times, _, renewals, _, lost, failure = good
    p99 = percentile(times, 0.99)
    checks = ((failure is None, failure), (lost is None, f"lease lost: {lost}"),
              (renewals >= SECONDS * 1000 / TTL_MS, f"only {renewals} renewals"),
              (p99 < P99_MS, f"p99 of good's calls is {p99:.0f} ms, not below {P99_MS:.0f}"),
              (rss < RSS_BYTES, f"{rss >> 20} MiB of memory"))
    return [text for fine, text in checks if not fine]


def ready(engine):
    """A server with all that the attacks need: (fleet, evil's key, good's key)."""
    pipelines = {"hello": command("true"), "probed": pipeline(
        "probed", command("true"), preflight={"type": "command", "run": ["sleep", "0.5"]})}
    fleet = Fleet(engine, pipelines, tenant="evil", env={
        "INTERLOCK_SHUTDOWN": "100ms", "INTERLOCK_RUNS_SHUTDOWN": "0s"})
    try:
        evil_key, good_key = fleet.a.key_for("evil", "operator"), fleet.a.key_for("good", "write")
        prepare(fleet, evil_key)
        return fleet, evil_key, good_key
    except BaseException:
        fleet.end()
        raise


def attack(engine, fleet, evil_key, good_key):
    with fleet:
        stops, queues, processes, n_evil = start(fleet, evil_key, good_key)
        try:
            rss = watch(fleet.a, SECONDS)
            stops[1].set()
            good = queues[1].get(timeout=4 * TIMEOUT_S)
            stops[0].set()
            hostile = collect(queues[0], n_evil, TIMEOUT_S)
        finally:
            for process in processes:
                process.kill()  # it has reported, or never will
            for process in processes:
                process.join()
        report(engine, good, hostile, rss)
        for problem in judge(good, rss):
            print(f"# {engine}: {problem}", flush=True)  # also if the server does not end now
        assert not judge(good, rss), judge(good, rss)


def test_of(engine, prepared):
    def test():
        """one tenant does its worst; another one's lease and calls do not suffer"""
        attack(engine, *prepared.result())
    return test


if __name__ == "__main__":
    engines = sys.argv[1:]
    if not engines:
        sys.exit("usage: fair.py ENGINE...")
    del sys.argv[1:]
    if "postgres" in engines or "redis" in engines:
        servers()
    with concurrent.futures.ThreadPoolExecutor(len(engines)) as pool:
        jobs = {engine: pool.submit(ready, engine) for engine in engines}
    with lib.Server() as any_server:
        DOCUMENT = any_server.get("/openapi.json").expect(200).json
    for attack_name in ATTACKS:
        bodies_of(attack_name)
    try:
        lib.main({f"test_{engine}": test_of(engine, job) for engine, job in jobs.items()})
    finally:
        for job in jobs.values():
            if job.exception() is None:
                job.result()[0].end()
