#!/usr/bin/env python3
"""Server shutdown: SIGTERM under load, with waiting polls, streams, partial requests; kill -9.
Everything acknowledged is in the store."""
import http.client
import signal
import socket
import threading
import time

import lib

GONE = (ConnectionError, http.client.HTTPException, socket.timeout, OSError)


def push_until_down(server, n, seconds, end):
    """Push jobs from n threads, end(server) after a while; ids that were acknowledged."""
    acknowledged, lock = set(), threading.Lock()

    def pusher(_):
        mine = []
        try:
            with server.new_client(timeout=20) as client:
                while True:
                    got = client.post("/api/v1/queues/q/jobs", {"payload": {"n": len(mine)}})
                    if got.status == 201:
                        mine.append(got.json["id"])
                    elif got.status != 503:
                        raise AssertionError(got)
                    else:
                        break
        except GONE:
            pass
        with lock:
            acknowledged.update(mine)

    threads = [threading.Thread(target=pusher, args=(i,)) for i in range(n)]
    for thread in threads:
        thread.start()
    time.sleep(seconds)
    end(server)
    for thread in threads:
        thread.join()
    return acknowledged


def ids_in(server):
    found, cursor = set(), ""
    while True:
        page = server.get("/api/v1/queues/q/jobs?limit=1000" + (f"&cursor={cursor}" if cursor else "")).expect(200).json
        found.update(item["id"] for item in page["items"])
        if page["next"] is None:
            return found
        cursor = page["next"]


def under_load(end, status):
    with lib.Server(store="sqlite", args=["--shutdown", "5s"]) as server:
        acknowledged = push_until_down(server, 16, 1.5, end)
        began = time.monotonic()
        got = server.process.wait(20)
        assert got == status, (got, server.log[-3000:])
        took = time.monotonic() - began
        server.start()
        there = ids_in(server)
        print(f"# {len(acknowledged)} acknowledged, {len(there)} in the store; down in {took:.2f} s")
        assert len(acknowledged) > 50, len(acknowledged)
        assert acknowledged <= there, len(acknowledged - there)


def test_term_under_load():
    """SIGTERM under load: it ends with status 0 within its time, and every acknowledged job is there after the restart"""
    under_load(lambda server: server.send(signal.SIGTERM), 0)


def test_kill_under_load():
    """kill -9 under load: every acknowledged job is there after the restart"""
    under_load(lambda server: server.send(signal.SIGKILL), -signal.SIGKILL)


def test_waits_end():
    """waiting polls are answered properly when the server is stopped, at once"""
    for store in ("memory:", "sqlite"):
        with lib.Server(store=store) as server:
            server.post("/api/v1/locks/acquire", {"key": "k", "holder": "one", "ttl_ms": 60000}).expect(200)
            server.put("/api/v1/queues/q", {})
            results = []

            def wait(path, body, srv=server, to=results):
                with srv.new_client() as client:
                    answer = client.post(path, body)
                    to.append((path, answer.status, answer.headers.get("Connection")))

            calls = [("/api/v1/locks/acquire", {"key": "k", "holder": f"w{i}", "wait_ms": 50000}) for i in range(5)]
            calls += [("/api/v1/queues/q/claim", {"worker": f"w{i}", "wait_ms": 50000}) for i in range(5)]
            threads = [threading.Thread(target=wait, args=call) for call in calls]
            for thread in threads:
                thread.start()
            lib.eventually(lambda s=server: s.get("/api/v1/status").json["waiters"] == 10, what="10 waiters")
            began = time.monotonic()
            assert server.stop() == 0
            for thread in threads:
                thread.join()
            took = time.monotonic() - began
            assert took < 3 * lib.SLOW, took
            assert len(results) == 10, results
            for path, status, connection in results:
                assert status == (409 if "acquire" in path else 200) or (status == 204 and "claim" in path), results
                assert connection == "close", results


def test_idle_ends_at_once():
    """idle connections do not keep it, and nobody can connect"""
    with lib.Server() as server:
        socks = [server.socket() for _ in range(50)]
        for sock in socks[:25]:
            sock.sendall(b"GET /health HTTP/1.1\r\nHost: a\r\n\r\n")
            assert lib.read_answer(sock)[0] == 200
        began = time.monotonic()
        assert server.stop(signal.SIGINT) == 0
        assert time.monotonic() - began < 5 * lib.SLOW
        try:
            server.socket(timeout=1).close()
            raise AssertionError("somebody listens")
        except OSError:
            pass
        for sock in socks:
            sock.close()


def test_half_request_is_cut():
    """a request that never becomes complete is cut off when the time is over"""
    with lib.Server(args=["--shutdown", "1500ms"]) as server:
        sock = server.socket()
        sock.sendall(b"POST /api/v1/locks/acquire HTTP/1.1\r\nHost: a\r\nX-API-Key: %s\r\nContent-Type: application/json\r\n"
                     b"Content-Length: 100\r\n\r\n{" % server.key.encode())
        lib.eventually(lambda: server.get("/api/v1/status").json["requests"] == 2, what="the half request")
        server.client.close()
        began = time.monotonic()
        assert server.stop() == 0
        took = time.monotonic() - began
        assert 1 < took < 4 * lib.SLOW, took
        sock.close()


def test_request_under_way_is_finished():
    """one whose body comes while the server stops is still answered"""
    with lib.Server() as server:
        body = b'{"key":"k","holder":"h"}'
        sock = server.socket()
        sock.sendall(b"POST /api/v1/locks/acquire HTTP/1.1\r\nHost: a\r\nX-API-Key: %s\r\nContent-Type: application/json\r\n"
                     b"Content-Length: %d\r\n\r\n" % (server.key.encode(), len(body)) + body[:5])
        lib.eventually(lambda: server.get("/api/v1/status").json["requests"] == 2, what="the half request")
        server.send(signal.SIGTERM)
        server.send(signal.SIGTERM)  # once is enough, twice is no harm
        server.wait_log("server.stopping")
        sock.sendall(body[5:])
        answer = lib.read_answer(sock)
        assert answer[0] == 200 and answer[1]["connection"] == "close", answer
        assert server.process.wait(10) == 0


def test_streams_end():
    """event streams are ended"""
    with lib.Server() as server:
        sock = server.socket()
        sock.sendall(b"GET /api/v1/stream HTTP/1.1\r\nHost: a\r\nX-API-Key: %s\r\n\r\n" % server.key.encode())
        first = sock.recv(4096)
        assert b" 200 " in first, first
        lib.eventually(lambda: server.get("/api/v1/status").json["streams"] == 1, what="the stream")
        began = time.monotonic()
        assert server.stop() == 0
        assert time.monotonic() - began < 3 * lib.SLOW
        rest = b""
        while more := sock.recv(4096):
            rest += more
        assert rest.endswith(b"0\r\n\r\n"), rest[-100:]  # the proper end of a chunked answer
        sock.close()


lib.main(globals())
