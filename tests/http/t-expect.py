"""Expect: 100-continue on every route: with and without a body, and with pipelined requests."""
import re

import lib

NEXT = b"GET /health HTTP/1.1\r\nHost: a\r\nX-Request-Id: behind\r\nConnection: close\r\n\r\n"


def routes(s):
    for path, methods in s.get("/openapi.json").expect(200).json["paths"].items():
        for method in methods if "$ref" not in methods else ():
            yield method.upper(), re.sub(r"\{\w+\}", "x", path)


def head(s, method, path):
    return (b"%s %s HTTP/1.1\r\nHost: a\r\nX-API-Key: %s\r\nX-Request-Id: first\r\n"
            b"Expect: 100-continue\r\n" % (method.encode(), path.encode(), s.key.encode()))


def read_all(sock):
    data = b""
    try:
        while more := sock.recv(65536):
            data += more
    except ConnectionResetError:
        pass
    return data


def test_without_a_body():
    """each route refuses it with 417 and closes; the request behind it gets no answer"""
    with lib.Server() as s:
        for method, path in routes(s):
            for length in (b"", b"Content-Length: 0\r\n"):
                with s.socket(timeout=8) as sock:
                    sock.sendall(head(s, method, path) + length + b"\r\n" + NEXT)
                    data = read_all(sock)
                assert data.startswith(b"HTTP/1.1 417 "), (method, path, data[:300])
                assert b"behind" not in data, (method, path, data[:300])
                assert s.process.poll() is None, (method, path)
        s.get("/health").expect(200)


def test_with_a_body():
    """each route answers a request with its body once; the one behind it comes second, if at all"""
    with lib.Server() as s:
        for method, path in routes(s):
            with s.socket(timeout=8) as sock:
                sock.sendall(head(s, method, path) + b"Content-Type: application/json\r\n"
                             b"Content-Length: 2\r\n\r\n{}" + NEXT)
                data = b""
                if path.endswith("/stream"):
                    while b"first" not in data:
                        data += sock.recv(65536)
                else:
                    data = read_all(sock)
            ids = re.findall(rb"X-Request-Id: (\w+)", data)
            assert ids in ([b"first"], [b"first", b"behind"]), (method, path, ids, data[:300])
            assert s.process.poll() is None, (method, path)
        s.get("/health").expect(200)


lib.main(globals())
