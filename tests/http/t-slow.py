#!/usr/bin/env python3
"""Slow clients: every phase has an absolute timeout, and other clients are not affected. Memory of
idle and waiting connections."""
import os
import resource
import select
import socket
import threading
import time

import lib

HEAD_S, BODY_S, IDLE_S = 10, 30, 60
GET = b"GET /health HTTP/1.1\r\nHost: a\r\n\r\n"


def until_closed(sock, seconds, each=None):
    """How long it took until the server ended the connection; each(): between."""
    began = time.monotonic()
    while time.monotonic() - began < seconds:
        ready, _, _ = select.select([sock], [], [], 0.25)
        if ready:
            try:
                if not sock.recv(65536):
                    return time.monotonic() - began
            except ConnectionError:
                return time.monotonic() - began
        if each is not None:
            try:
                each()
            except ConnectionError:
                return time.monotonic() - began
    raise AssertionError(f"still open after {seconds} s")


def test_slow_head_and_silence_and_body():
    """a head of one byte a second, no head at all, half a body, an idle connection: closed at 10, 10, 30, 60 s; others do not notice"""
    with lib.Server() as server:
        dribble, silent, body, idle = (server.socket() for _ in range(4))
        times = {}
        body.sendall(b"POST /api/v1/locks/acquire HTTP/1.1\r\nHost: a\r\nX-API-Key: %s\r\nContent-Type: application/json\r\n"
                     b"Content-Length: 1000\r\n\r\n{" % server.key.encode())
        idle.sendall(GET)
        assert lib.read_answer(idle)[0] == 200
        head = iter(b"GET /health HTTP/1.1\r\nHost: a\r\n" + b"X: " + b"a" * 1000)
        last = [0.0]

        def one_byte(sock, source):
            if time.monotonic() - last[0] >= 1:
                last[0] = time.monotonic()
                sock.sendall(source())

        jobs = {
            "dribble": lambda: until_closed(dribble, 20 * lib.SLOW, lambda: one_byte(dribble, lambda: bytes([next(head)]))),
            "silent": lambda: until_closed(silent, 20 * lib.SLOW),
            "body": lambda: until_closed(body, 45 * lib.SLOW, lambda: body.sendall(b" ")),
            "idle": lambda: until_closed(idle, 75 * lib.SLOW),
        }
        names = list(jobs)
        worst = [0.0]
        stop = threading.Event()

        def bystander():
            with server.new_client() as client:
                while not stop.wait(0.05):
                    began = time.monotonic()
                    client.get("/health").expect(200)
                    worst[0] = max(worst[0], time.monotonic() - began)

        other = threading.Thread(target=bystander)
        other.start()
        try:
            for name, took in zip(names, lib.together(len(names), lambda i: jobs[names[i]]())):
                times[name] = took
        finally:
            stop.set()
            other.join()
            for sock in (dribble, silent, body, idle):
                sock.close()
        print("# " + ", ".join(f"{name} {took:.1f} s" for name, took in times.items()) + f"; others at most {worst[0] * 1000:.0f} ms")
        for name, due in (("dribble", HEAD_S), ("silent", HEAD_S), ("body", BODY_S), ("idle", IDLE_S)):
            assert due - 1 <= times[name] <= due + 3 * lib.SLOW, (name, times)
        assert worst[0] < 1 * lib.SLOW, worst


def test_half_open():
    """500 half-open connections do not keep others waiting"""
    with lib.Server() as server:
        socks = []
        for _ in range(500):
            sock = server.socket()
            sock.sendall(b"GET /health HTTP/1.1\r\nHo")
            socks.append(sock)
        began = time.monotonic()
        with server.new_client() as client:
            for _ in range(100):
                client.get("/health").expect(200)
        took = time.monotonic() - began
        print(f"# 100 requests beside 500 half-open connections: {took * 1000:.0f} ms")
        assert took < 2 * lib.SLOW, took
        for sock in socks:  # each can still become a request
            sock.sendall(b"st: a\r\n\r\n")
        for sock in socks:
            assert lib.read_answer(sock)[0] == 200
            sock.close()


def test_answer_not_read():
    """a client that does not read its large answers does not hold up others, and memory stays"""
    with lib.Server() as server:
        sock = server.socket()
        before = server.rss()
        sock.setblocking(False)
        request = b"GET /openapi.json HTTP/1.1\r\nHost: a\r\n\r\n"
        try:
            for _ in range(5000):
                sock.send(request)
        except BlockingIOError:
            pass
        for _ in range(20):
            server.get("/health").expect(200)
        assert server.rss() - before < 30 << 20, (before, server.rss())
        sock.close()


def files(n):
    """As many descriptors as needed, or a skip."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < n + 1000:
        raise lib.Skip(f"only {hard} descriptors")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, n + 1000), hard))


def many(server, n, first):
    """n connections that have each sent `first`. From several addresses: one has about 28,000 ports."""
    host, port = server.address.rsplit(":", 1)
    socks = []
    for i in range(n):
        sock = socket.socket()
        sock.setsockopt(socket.IPPROTO_IP, 24, 1)  # IP_BIND_ADDRESS_NO_PORT
        sock.bind((f"127.0.0.{2 + i % 50}", 0))
        sock.connect((host, int(port)))
        sock.sendall(first(i))
        socks.append(sock)
    return socks


def sanitized():
    """Memory says nothing there."""
    with open(lib.BINARY, "rb") as file:
        return b"__asan_init" in file.read() or lib.SLOW > 2


def test_idle():
    """10,000 idle connections: memory of each, and a request beside them"""
    n = 10_000
    files(n)
    with lib.Server() as server:
        server.get("/health").expect(200)
        before = server.rss()
        socks = many(server, n, lambda i: GET)
        for sock in socks:
            assert lib.read_answer(sock)[0] == 200
        each = (server.rss() - before) / n
        began = time.monotonic()
        for _ in range(200):
            server.get("/health").expect(200)
        took = time.monotonic() - began
        print(f"# {each:.0f} bytes per idle connection; 200 requests beside them: {took * 1000:.0f} ms")
        assert each < 20_000 or sanitized(), each
        assert took < 4 * lib.SLOW, took
        for sock in socks:
            sock.close()


def test_waiters():
    """10,000 long polls within 200 MB; all are answered when they may"""
    n = 10_000
    files(n)
    with lib.Server() as server:
        server.get("/health").expect(200)
        before = server.rss()
        body = b'{"worker":"w","wait_ms":60000}'
        server.put("/api/v1/queues/q", {})
        request = (b"POST /api/v1/queues/q/claim HTTP/1.1\r\nHost: a\r\nX-API-Key: %s\r\nContent-Type: application/json\r\n"
                   b"Content-Length: %d\r\n\r\n" % (server.key.encode(), len(body))) + body
        socks = many(server, n, lambda i: request)
        lib.eventually(lambda: waiting(server) >= n, 60, "10,000 waiters")
        each, total = (server.rss() - before) / n, server.rss()
        began = time.monotonic()
        for _ in range(100):
            server.get("/health").expect(200)
        took = time.monotonic() - began
        print(f"# {each:.0f} bytes per waiter, {total >> 20} MB in all; 100 requests beside them: {took * 1000:.0f} ms")
        assert total < 200 << 20 or sanitized(), total
        server.post("/api/v1/queues/q/jobs", {"payload": "x"}).expect(201)
        lib.eventually(lambda: waiting(server) < n, 20, "somebody gets the job")
        for sock in socks:
            sock.close()
        lib.eventually(lambda: waiting(server) == 0, 30, "the end of the waits of clients that have gone")


def waiting(server):
    return server.get("/api/v1/status").expect(200).json["waiters"]


def waiters_of(server, key):
    return server.get("/api/v1/locks/get?key=" + key).expect(200).json["leases"][0]["waiters"]


def test_waiter_hangs_up():
    """a waiting call whose client hangs up is cancelled at once: it does not stay in the queue of the lock"""
    for store in ("memory:", "sqlite"):
        with lib.Server(store=store) as server:
            got = server.post("/api/v1/locks/acquire", {"key": "k", "holder": "one", "ttl_ms": 60000}).expect(200).json
            body = b'{"key":"k","holder":"two","ttl_ms":60000,"wait_ms":50000}'
            sock = server.socket()
            sock.sendall(b"POST /api/v1/locks/acquire HTTP/1.1\r\nHost: a\r\nX-API-Key: %s\r\nContent-Type: application/json\r\n"
                         b"Content-Length: %d\r\n\r\n" % (server.key.encode(), len(body)) + body)
            lib.eventually(lambda s=server: waiters_of(s, "k") == 1, what="a waiter")
            sock.close()
            lib.eventually(lambda s=server: waiters_of(s, "k") == 0, 5, what="its end")
            server.post("/api/v1/locks/release", {"key": "k", "holder": "one", "fence": got["fence"]}).expect(200)
            server.post("/api/v1/locks/acquire", {"key": "k", "holder": "three"}).expect(200)


def test_half_closed_is_answered():
    """a client that says it sends no more, and reads, gets its answer"""
    for store in ("memory:", "sqlite"):
        with lib.Server(store=store) as server:
            body = b'{"key":"k","holder":"h"}'
            for _ in range(20):
                with server.socket() as sock:
                    sock.sendall(b"POST /api/v1/locks/acquire HTTP/1.1\r\nHost: a\r\nX-API-Key: %s\r\nContent-Type: application/json\r\n"
                                 b"Content-Length: %d\r\n\r\n" % (server.key.encode(), len(body)) + body)
                    sock.shutdown(socket.SHUT_WR)
                    answer = lib.read_answer(sock)
                    assert answer is not None and answer[0] == 200, answer


if os.environ.get("IL_TEST_QUICK"):
    del test_slow_head_and_silence_and_body
lib.main(globals())
