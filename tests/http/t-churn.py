"""Clients that come and go: streams and waiting calls that disconnect at any moment while others
work. Nothing crashes, nothing leaks."""
import random
import socket
import struct
import time

import lib

SECONDS = 5
RESET = struct.pack("ii", 1, 0)  # SO_LINGER: closing is a reset

WAITS = (
    ("/locks/acquire", '{"key":"held","wait_ms":50000}'),
    ("/queues/q/claim?wait=30s", "{}"),
    ("/runs?wait=20s", '{"key":"held","on_conflict":"queue"}'),
    ("/cache/lookup?wait=9s", '{"key":"c"}'),
    ("/queues/q/jobs", '{"payload":"x"}'),
    ("/batch", '{"ops":[{"op":"claim","queue":"q"}],"wait_ms":9000}'),
)


def hang_up(s, rng, line, body="", more=""):
    """A request on a socket of its own, which is closed at some moment."""
    sock = s.socket()
    try:
        sock.sendall(f"{line} HTTP/1.1\r\nHost: x\r\nX-API-Key: {s.key}\r\n{more}Content-Length: {len(body)}\r\n"
                     f"Content-Type: application/json\r\n\r\n{body}".encode())
        sock.settimeout(rng.random() * 0.05 + 0.001)
        for _ in range(rng.randrange(3)):
            sock.recv(rng.choice((1, 100, 65536)))
    except OSError:
        pass
    if rng.random() < 0.3:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    sock.close()


def streams(s, rng, _):
    more = rng.choice(("", "Last-Event-ID: 3\r\n"))
    hang_up(s, rng, rng.choice(("GET", "GET", "HEAD")) + " /api/v1/stream?types=lock", more=more)


def waits(s, rng, _):
    path, body = rng.choice(WAITS)
    more = f"Idempotency-Key: k{rng.randrange(100)}\r\n" if rng.random() < 0.5 and not path.startswith("/batch") else ""
    hang_up(s, rng, "POST /api/v1" + path, body, more)


def works(_, rng, client):
    got = client.post("/api/v1/locks/acquire", {"key": f"k:{rng.randrange(50)}", "wait_ms": rng.choice((0, 0, 20))})
    if got.status == 200:
        client.post("/api/v1/locks/release", {k: got.json[k] for k in ("key", "holder", "fence")}).expect(200)
    else:
        got.expect(409)


def churn(store):
    with lib.Server(store=store) as s:
        s.post("/api/v1/locks/acquire", {"key": "held", "holder": "x", "ttl_ms": 60000}).expect(200)
        end = time.monotonic() + SECONDS

        def one(i):
            rng, n = random.Random(i), 0
            with s.new_client() as client:
                while time.monotonic() < end:
                    (streams, waits, works)[i % 3](s, rng, client)
                    n += 1
            return n

        counts = lib.together(18, one)
        print(f"# {sum(counts[0::3])} streams, {sum(counts[1::3])} waiting calls, {sum(counts[2::3])} others")

        def quiet():
            status = s.get("/api/v1/status").json
            return status["streams"] == 0 and status["waiters"] == 0 and status["requests"] == 1

        lib.eventually(quiet, seconds=20, what="that nothing waits any more")
        waiters = s.get("/api/v1/locks?waiters=true&prefix=held").json["items"]
        # those of calls that were answered before they hung up, or whose wait is longer than their request, go by themselves within 15 s
        lib.eventually(lambda: not s.get("/api/v1/locks?waiters=true&prefix=held").json["items"], seconds=30, what=f"the end of {len(waiters)} waiters")


def test_memory():
    """memory"""
    churn("memory:")


def test_sqlite():
    """SQLite"""
    churn("sqlite")


lib.main(globals())
