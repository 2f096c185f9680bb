"""GET /stream: server-sent events are hints; after a gap the client reads again."""
import re
import resource
import signal
import socket
import time

import lib
from events import Events


def acquire(s, name, **more):
    return s.post("/api/v1/locks/acquire", {"key": name, "holder": "h"}, **more).expect(200).json


def test_events():
    """what is done through the server is told, in order"""
    with lib.Server() as s:
        events = Events(s)
        assert "text/event-stream" in events.head and "no-store" in events.head
        lease = acquire(s, "event:1")
        assert events.next() == ("lock", {"type": "lock", "name": "event:1", "tenant": "default", "what": "acquired"})
        s.post("/api/v1/locks/release", {k: lease[k] for k in ("key", "holder", "fence")}).expect(200)
        assert events.next()[1]["what"] == "released"
        job = s.post("/api/v1/queues/mail/jobs", {"payload": "secret-payload"}).expect(201).json
        assert events.next() == ("job", {"type": "job", "name": "mail", "tenant": "default", "what": "pushed", "id": job["id"]})
        run = s.post("/api/v1/runs", {"key": "import:x"}).expect(201).json
        assert events.next() == ("run", {"type": "run", "name": "import:x", "tenant": "default", "what": "started", "id": run["id"]})
        s.post("/api/v1/queues/mail/pause", {"reason": "r"}).expect(200)
        assert events.next()[1] == {"type": "queue", "name": "mail", "tenant": "default", "what": "paused"}
        s.post("/api/v1/cache/drop", {"key": "usage"}).expect(200)
        assert events.next()[0] == "cache"
        s.get("/api/v1/locks").expect(200)
        events.none()
        events.close()


def test_filters():
    """by type, by prefix, by the key's own prefix, and never another tenant's"""
    with lib.Server() as s:
        other_key = s.key_for("other", "write")
        limited = s.key_for("default", "read", prefix="team:")
        by_type, by_prefix = Events(s, "?types=job,queue"), Events(s, "?prefix=a:")
        other, team = Events(s, key=other_key), Events(s, key=limited)
        acquire(s, "a:1")
        acquire(s, "b:1")
        acquire(s, "team:1")
        s.post("/api/v1/queues/q/jobs", {"payload": "x"}).expect(201)
        acquire(s, "theirs", key=other_key)
        assert by_type.next()[0] == "job"
        assert by_prefix.next()[1]["name"] == "a:1"
        assert other.next()[1] == {"type": "lock", "name": "theirs", "tenant": "other", "what": "acquired"}
        assert team.next()[1]["name"] == "team:1"
        for events in (by_type, by_prefix, other, team):
            events.none(0.1)
            events.close()
        s.get("/api/v1/stream?types=nonsense").expect(400, "BAD_REQUEST")


def test_head():
    """HEAD says what GET would be, and begins no stream"""
    with lib.Server() as s:
        answer = s.ask("HEAD", "/api/v1/stream").expect(200)
        assert answer.headers["Content-Type"] == "text/event-stream" and answer.body == b""
        acquire(s, "k")
        assert s.get("/api/v1/status").json["streams"] == 0


def test_expect_without_a_body():
    """Expect: 100-continue without a body is refused, with another request behind it; the server stays up"""
    with lib.Server() as s:
        head = b"GET /api/v1/stream HTTP/1.1\r\nHost: a\r\nX-API-Key: %s\r\nExpect: 100-continue\r\n" % s.key.encode()
        behind = b"GET /health HTTP/1.1\r\nHost: a\r\n\r\n"
        for request in (head + b"\r\n" + behind, head + b"Content-Length: 0\r\n\r\n" + behind, head + b"\r\n"):
            for _ in range(20):
                with s.socket(timeout=8) as sock:
                    sock.sendall(request)
                    assert sock.recv(100).startswith(b"HTTP/1.1 417 ")
        assert s.process.poll() is None
        assert s.get("/api/v1/status").json["streams"] == 0


def test_reconnect_has_a_gap():
    """Last-Event-ID is answered with a gap: events are not kept"""
    with lib.Server() as s:
        events = Events(s, headers="Last-Event-ID: 7\r\n")
        assert events.next()[0] == "gap"
        events.close()


def test_slow_reader():
    """who does not read loses events, is told by a gap, and costs no memory; others are not held up"""
    with lib.Server() as s:
        slow = s.socket(timeout=60)
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 32768)
        slow.sendall(f"GET /api/v1/stream HTTP/1.1\r\nHost: x\r\nX-API-Key: {s.key}\r\n\r\n".encode())
        lib.eventually(lambda: s.get("/api/v1/status").json["streams"] == 1, what="the stream")
        quick = Events(s)
        before = s.rss()
        for i in range(60):
            ops = [{"op": "acquire", "key": f"k:{'k' * 400}{i}-{k}", "holder": f"h{i}-{k}"} for k in range(300)]
            s.post("/api/v1/batch", {"ops": ops}).expect(200)
        assert lib.SLOW > 1 or s.rss() - before < 120 * 1024 * 1024  # a sanitizer keeps what was freed
        data = b""
        slow.settimeout(3)
        try:
            while True:
                more = slow.recv(65536)
                if not more:
                    break
                data += more
        except TimeoutError:
            pass
        assert b"event: gap" in data, len(data)
        assert data.count(b"event: lock") < 18000
        slow.close()
        quick.close()


def test_end_of_a_key():
    """a revoked key ends its stream within seconds"""
    with lib.Server() as s:
        made = s.post("/api/v1/admin/api-keys", {"tenant": "default", "role": "read"}).expect(201).json
        events = Events(s, key=made["key"])
        s.delete(f"/api/v1/admin/api-keys/{made['id']}").expect(200)
        lib.eventually(lambda: events.ended, seconds=10, what="the end of the stream")


def test_a_sign_of_life():
    """a comment every 15 s, so that both sides see that the other is there"""
    with lib.Server() as s:
        events = Events(s)
        assert events.comments == 1
        lib.eventually(lambda: events.comments == 2, seconds=20, what="the comment")
        events.none(0.1)
        events.close()


def test_shutdown():
    """SIGTERM ends streams, in order, and the server"""
    with lib.Server() as s:
        many = [Events(s) for _ in range(20)]
        began = time.monotonic()
        assert s.stop(signal.SIGTERM) == 0
        assert time.monotonic() - began < 5 * lib.SLOW
        for events in many:
            lib.eventually(lambda e=events: e.ended, what="the end of a stream")


def test_many_streams_are_cheap():
    """200 streams, one event for all; none is left when they hang up"""
    with lib.Server(env={"INTERLOCK_CONNECTIONS_PER_IP_MAX": "1000"}) as s:
        # fewer where processes may have few descriptors: half are for connections
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        many = [Events(s) for _ in range(min(200, limit // 3))]
        acquire(s, "k")
        for events in many:
            assert events.next()[1]["name"] == "k"
            events.close()
        lib.eventually(lambda: s.get("/api/v1/status").json["streams"] == 0, what="their end")
        with open(f"/proc/{s.pid}/status", encoding="ascii") as file:
            assert int(re.search(r"Threads:\s*(\d+)", file.read()).group(1)) < 20


lib.main(globals())
