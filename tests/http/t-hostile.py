#!/usr/bin/env python3
"""Ambiguous and malformed requests: each gets an error and a closed connection; what was sent after
it is never taken for a request."""
import os
import random
import re
import socket

import lib

NEXT = b"GET /next HTTP/1.1\r\nHost: a\r\n\r\n"
PATH = b"/api/v1/locks/acquire"
BIG = 2**64 + 1


def post(headers, body=b"", line=b"POST " + PATH + b" HTTP/1.1\r\n", host=b"Host: a\r\n"):
    return line + host + headers + b"\r\n" + body


def get(headers, line=b"GET /health HTTP/1.1\r\n", host=b"Host: a\r\n"):
    return line + host + headers + b"\r\n"


CHUNKED = b"Transfer-Encoding: chunked\r\n"
ONE = b"Content-Length: 1\r\n"

# name: what is sent. All of it must end in 4xx or 5xx and a closed connection.
HOSTILE = {
    # What has been used against other servers.
    "CL and TE: chunked": post(CHUNKED + b"Content-Length: 6\r\n", b"0\r\n\r\nX"),
    "TE: chunked and CL": post(b"Content-Length: 6\r\n" + CHUNKED, b"0\r\n\r\nX"),
    "two differing CL": post(ONE + b"Content-Length: 2\r\n", b"{}"),
    "TE gzip, chunked and CL": post(b"Transfer-Encoding: gzip, chunked\r\n" + ONE, b"x"),
    "TE xchunked and CL": post(b"Transfer-Encoding: xchunked\r\n" + ONE, b"x"),
    "TE identity": post(b"Transfer-Encoding: identity\r\n"),
    "a space before the colon": post(b"Content-Length : 1\r\n", b"x"),
    "CL +1": post(b"Content-Length: +1\r\n", b"x"),
    "CL 0x1": post(b"Content-Length: 0x1\r\n", b"x"),
    "chunk size 0x1": post(CHUNKED, b"0x1\r\nx\r\n0\r\n\r\n"),
    "chunk size +1": post(CHUNKED, b"+1\r\nx\r\n0\r\n\r\n"),
    "chunk size and a space": post(CHUNKED, b"1 \r\nx\r\n0\r\n\r\n"),
    "chunk lines with bare LF": post(CHUNKED, b"1\nx\n0\n\n"),
    "NUL in a value": get(b"X: a\0b\r\n"),
    "bare CR in a value": get(b"X: a\rb\r\n"),
    "no Host": get(b"X: a\r\n", host=b""),
    "two Hosts": get(b"Host: b\r\n"),
    "a blank in Host": get(b"", host=b"Host: a b\r\n"),
    "bare LF everywhere": b"GET /health HTTP/1.1\nHost: a\n\n",
    "a folded line": get(b"X: a\r\n b\r\n"),
    "a space in the target": get(b"", line=b"GET /hea lth HTTP/1.1\r\n"),
    "CL 2^64+1": post(b"Content-Length: %d\r\n" % BIG, b"x"),
    "chunk 2^64+1": post(CHUNKED, b"%x\r\nx\r\n0\r\n\r\n" % BIG),
    "CL -1": post(b"Content-Length: -1\r\n", b"x"),
    "HTTP/9.9": get(b"", line=b"GET /health HTTP/9.9\r\n"),
    "a header of 100 KB": get(b"X: " + b"a" * 100_000 + b"\r\n"),
    "10,000 headers": get(b"".join(b"X-%d: a\r\n" % i for i in range(10_000))),
    # And their relatives.
    "two equal CL": post(ONE + ONE, b"x"),
    "CL 1, 1": post(b"Content-Length: 1, 1\r\n", b"x"),
    "CL empty": post(b"Content-Length:\r\n", b"x"),
    "CL with a tail": post(b"Content-Length: 1x\r\n", b"x"),
    "TE twice": post(CHUNKED + CHUNKED, b"0\r\n\r\n"),
    "TE empty": post(b"Transfer-Encoding:\r\n"),
    "TE CHUNKED": post(b"TRANSFER-ENCODING: CHUNKED\r\n", b"0\r\n\r\n"),
    "TE with a vertical tab": post(b"Transfer-Encoding: \x0bchunked\r\n", b"0\r\n\r\n"),
    "TE on HTTP/1.0": post(CHUNKED, b"0\r\n\r\n", line=b"POST " + PATH + b" HTTP/1.0\r\n"),
    "a tab before the colon": post(b"Content-Length\t: 1\r\n", b"x"),
    "NUL in a name": get(b"X\0Y: a\r\n"),
    "a name with a space": get(b"X Y: a\r\n"),
    "an empty name": get(b": a\r\n"),
    "no colon": get(b"Nonsense\r\n"),
    "a control character in a value": get(b"X: a\x01b\r\n"),
    "DEL in a value": get(b"X: a\x7fb\r\n"),
    "bare LF behind a header": b"GET /health HTTP/1.1\r\nHost: a\nX: b\r\n\r\n",
    "bare LF behind the last header": b"GET /health HTTP/1.1\r\nHost: a\r\nX: b\n\r\n",
    "bare LF as the empty line": b"GET /health HTTP/1.1\r\nHost: a\r\nX: b\r\n\n",
    "bare LF twice at the end": b"GET /health HTTP/1.1\r\nHost: a\r\nX: b\n\n",
    "bare LF behind the first line": b"GET /health HTTP/1.1\nHost: a\r\n\r\n",
    "the last line folded": b"GET /health HTTP/1.1\r\nHost: a\r\nX: b\r\n\tc\r\n\r\n",
    "the first header folded": b"GET /health HTTP/1.1\r\n X: b\r\nHost: a\r\n\r\n",
    "Host folded": b"GET /health HTTP/1.1\r\nHost:\r\n a\r\n\r\n",
    "CL folded": post(b"Content-Length:\r\n 1\r\n", b"x"),
    "NUL behind a value": get(b"X: a\0\r\n"),
    "NUL as a value": get(b"X:\0\r\n"),
    "NUL in the target": get(b"", line=b"GET /health\0/x HTTP/1.1\r\n"),
    "a control character in the target": get(b"", line=b"GET /hea\x01lth HTTP/1.1\r\n"),
    "bytes above 127 in the target": get(b"", line=b"GET /\xc3\xa4 HTTP/1.1\r\n"),
    "two spaces in the first line": get(b"", line=b"GET  /health HTTP/1.1\r\n"),
    "a space behind the version": get(b"", line=b"GET /health HTTP/1.1 \r\n"),
    "a tab in the first line": get(b"", line=b"GET\t/health HTTP/1.1\r\n"),
    "no version": b"GET /health\r\nHost: a\r\n\r\n",
    "a version in small letters": get(b"", line=b"GET /health http/1.1\r\n"),
    "HTTP/1.10": get(b"", line=b"GET /health HTTP/1.10\r\n"),
    "HTTP/2.0": get(b"", line=b"GET /health HTTP/2.0\r\n"),
    "an absolute target": get(b"", line=b"GET http://a/health HTTP/1.1\r\n"),
    "the target *": get(b"", line=b"OPTIONS * HTTP/1.1\r\n"),
    "CONNECT": get(b"", line=b"CONNECT a:80 HTTP/1.1\r\n"),
    "an unknown method": get(b"", line=b"BREW /health HTTP/1.1\r\n"),
    "a method in small letters": get(b"", line=b"get /health HTTP/1.1\r\n"),
    "a target of 5,000 bytes": get(b"", line=b"GET /" + b"a" * 5000 + b" HTTP/1.1\r\n"),
    "a target of 100 KB": get(b"", line=b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n"),
    "a query of 40,000 parameters":
        get(b"", line=b"GET /health?" + b"a&" * 40_000 + b" HTTP/1.1\r\n"),
    "101 headers": get(b"".join(b"X-%d: a\r\n" % i for i in range(100))),
    "headers of 17 KiB": get(b"".join(b"X-%d: %s\r\n" % (i, b"a" * 1000) for i in range(17))),
    "two Content-Type": post(b"Content-Type: application/json\r\nContent-Type: text/plain\r\n" + ONE, b"x"),
    "two X-API-Key": get(b"X-API-Key: a\r\nX-API-Key: b\r\n"),
    "two Authorization": get(b"Authorization: Bearer a\r\nAuthorization: Bearer b\r\n"),
    "Expect: something": post(b"Expect: something\r\n" + ONE, b"x"),
    "a body too large": post(b"Content-Type: application/json\r\nContent-Length: 99999999\r\n", b"x"),
    "not HTTP": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\xa5" * 64 + b"\r\n\r\n",
    "Redis": b"*1\r\n$4\r\nPING\r\n",
}

# Those that libmicrohttpd answers by closing the connection, without a word.
MAY_BE_SILENT = {"NUL in the target", "no version", "a tab in the first line", "not HTTP", "Redis"}


def read_all(sock):
    data = b""
    try:
        while True:
            more = sock.recv(65536)
            if not more:
                break
            data += more
    except ConnectionResetError:
        pass
    return data


def one_head(data):
    """libmicrohttpd before 1.0 sends the head of its own answer to a bad Content-Length twice; the connection is closed all the same."""
    head, end, rest = data.partition(b"\r\n\r\n")
    return rest if end and rest.startswith(head + end) and b"<html>" in rest else data


def try_one(server, name, payload):
    """What came back must be one error, and the end."""
    with server.socket(timeout=8) as sock:
        try:
            sock.sendall(payload + NEXT)
        except (BrokenPipeError, ConnectionResetError):
            pass
        try:
            data = read_all(sock)
        except socket.timeout:
            return f"{name}: the connection stays open"
    data = one_head(data)
    n = len(re.findall(rb"HTTP/1\.[01] \d\d\d ", data))
    if n == 0:
        return None if name in MAY_BE_SILENT else f"{name}: no answer"
    status = int(data.split()[1])
    if n > 1:
        return f"{name}: {n} answers: {data[:400]!r}"
    if not 400 <= status < 600:
        return f"{name}: {status}: {data[:300]!r}"
    return None


def test_hostile():
    """each of the hostile requests gets an error and a closed connection; never a second answer"""
    with lib.Server() as server:
        wrong = [what for name, payload in HOSTILE.items() if (what := try_one(server, name, payload)) is not None]
        assert not wrong, "\n".join(wrong)
        server.get("/health").expect(200)


def test_byte_by_byte():
    """the same when they come one byte at a time"""
    names = [name for name, payload in HOSTILE.items() if len(payload) < 200]
    with lib.Server() as server:
        wrong = []
        for name in names:
            with server.socket(timeout=8) as sock:
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                try:
                    for byte in HOSTILE[name] + NEXT:
                        sock.sendall(bytes([byte]))
                except (BrokenPipeError, ConnectionResetError):
                    pass
                try:
                    data = read_all(sock)
                except socket.timeout:
                    wrong.append(f"{name}: the connection stays open")
                    continue
            if len(re.findall(rb"HTTP/1\.[01] \d\d\d ", one_head(data))) > 1 or b" 200 " in data.split(b"\r\n")[0]:
                wrong.append(f"{name}: {data[:300]!r}")
        assert not wrong, "\n".join(wrong)


GOOD = {
    "plain": get(b""),
    "pipelined twice": get(b"") + get(b""),
    "an empty value": get(b"X:\r\n"),
    "blanks around a value": get(b"X: \t a b \t\r\n"),
    "no blank behind the colon": get(b"X:a\r\n"),
    "99 headers": get(b"".join(b"X%d: a\r\n" % i for i in range(80))),
    "an empty line before": b"\r\n" + get(b""),
    "bytes above 127 in a value": get(b"X: \xc3\xa4\r\n"),
    "HTTP/1.0 without Host": b"GET /health HTTP/1.0\r\n\r\n",
    "HEAD": get(b"", line=b"HEAD /health HTTP/1.1\r\n"),
    "Content-Length: 0": get(b"Content-Length: 0\r\n"),
    "a cookie": get(b"Cookie: a=b; c=\"d\"\r\n"),
}


def test_good():
    """what is strange but right is served"""
    with lib.Server() as server:
        for name, payload in GOOD.items():
            with server.socket(timeout=8) as sock:
                sock.sendall(payload)
                answer = lib.read_answer(sock) if name != "HEAD" else (200, {}, b"")
                assert answer is not None and answer[0] == 200, f"{name}: {answer}"


def test_pipelined_in_order():
    """100 good requests in one piece are answered in order"""
    with lib.Server() as server, server.socket() as sock:
        sock.sendall(b"".join(b"GET /health HTTP/1.1\r\nHost: a\r\nX-Request-Id: r%d\r\n\r\n" % i for i in range(100)))
        sock.shutdown(socket.SHUT_WR)
        data = read_all(sock)
        ids = [line.split(b": ")[1] for line in data.split(b"\r\n") if line.startswith(b"X-Request-Id")]
        assert ids == [b"r%d" % i for i in range(100)], (len(ids), ids[:5])


def test_noise():
    """mutated requests never get through as two, and the server lives"""
    seed = int(os.environ.get("IL_TEST_SEED", random.randrange(2**32)))
    print(f"# seed {seed}")
    rng = random.Random(seed)
    bases = [p for p in HOSTILE.values() if len(p) < 400] + [p for p in GOOD.values() if len(p) < 400]
    with lib.Server() as server:
        for _ in range(1000):
            data = bytearray(rng.choice(bases))
            for _ in range(rng.randrange(1, 6)):
                at = rng.randrange(len(data))
                data[at:at + rng.randrange(2)] = bytes(rng.choice(b"\0\r\n :\t,0aHTTP/1.") for _ in range(rng.randrange(3)))
            with server.socket(timeout=8) as sock:
                try:
                    sock.sendall(bytes(data))
                    sock.shutdown(socket.SHUT_WR)
                    read_all(sock)
                except (BrokenPipeError, ConnectionResetError):
                    pass
                except socket.timeout:
                    raise AssertionError(f"stays open: {bytes(data)!r}") from None
            assert server.process.poll() is None, bytes(data)
        server.get("/health").expect(200)


def test_expect_continue():
    """Expect: 100-continue: told to go on before the body; refused before it"""
    with lib.Server() as server:
        body = b'{"key":"a","holder":"h"}'
        head = b"Content-Type: application/json\r\nX-API-Key: %s\r\nExpect: 100-continue\r\n" % server.key.encode()
        with server.socket(timeout=8) as sock:
            sock.sendall(post(head + b"Content-Length: %d\r\n" % len(body)))
            first = sock.recv(100)
            assert first.startswith(b"HTTP/1.1 100 "), first
            sock.sendall(body)
            assert lib.read_answer(sock)[0] == 200
        with server.socket(timeout=8) as sock:
            sock.sendall(post(head + b"Content-Length: 99999999\r\n"))
            answer = lib.read_answer(sock)
            assert answer[0] == 413, answer


def test_body_limits():
    """bodies beyond the limit are refused before they are read; what takes no body takes none that is large, with or without a key"""
    with lib.Server(env={"INTERLOCK_BODY_MAX": "100000"}) as server:
        for path, n in (("/api/v1/locks/acquire", 100_001), ("/api/v1/batch", 1_000_001)):
            with server.socket() as sock:
                sock.sendall(b"POST %s HTTP/1.1\r\nHost: a\r\nX-API-Key: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
                             % (path.encode(), server.key.encode(), n))
                assert lib.read_answer(sock)[0] == 413, path
        with server.socket() as sock:
            sock.sendall(b"GET /health HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 70000\r\n\r\n")
            assert lib.read_answer(sock)[0] == 413
        server.post("/api/v1/locks/acquire", {"key": "k", "holder": "h", "meta": "x" * 4000}).expect(200)


def test_refused_body_leaves_connection():
    """an error before a small body does not cost the connection; before a large one the answer still arrives"""
    with lib.Server() as server:
        with server.new_client() as client:
            sock = None
            for _ in range(3):
                client.ask("POST", "/api/v1/nowhere", raw=b"x" * 1000).expect(404, "NOT_FOUND")
                client.ask("POST", "/api/v1/locks/acquire", raw=b"{}", headers={"Content-Type": "text/plain"}).expect(415)
                client.ask("POST", "/api/v1/locks/acquire", raw=b"{}", headers={"Content-Encoding": "gzip"}).expect(415)
                assert sock in (None, client.conn.sock), "the connection was closed"
                sock = client.conn.sock
        for _ in range(20):
            with server.new_client() as client:
                client.ask("POST", "/api/v1/nowhere", raw=b"x" * 1_000_000).expect(404)


lib.main(globals())
