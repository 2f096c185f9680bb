#!/usr/bin/env python3
"""server.py [CERTIFICATE]: the server for http steps: does what the path says. Prints its port, and
the one for https."""
import http.server
import json
import socket
import ssl
import struct
import sys
import threading

hits = {}
lock = threading.Lock()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, body=b"", **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def wait_for_end(self):
        """Until the client closes the connection."""
        self.wfile.flush()
        try:
            self.connection.recv(1)
        except OSError:
            pass
        self.close_connection = True

    def handle_any(self):
        n = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(n).decode()
        path = self.path.split("?")[0]
        with lock:
            hits[path] = hits.get(path, 0) + 1
            count = hits[path]
        port = self.server.server_address[1]
        if path == "/echo":
            self.answer(200, json.dumps({"method": self.command, "path": self.path, "body": body,
                                         "headers": {k.lower(): v for k, v in self.headers.items()}}).encode())
        elif path.startswith("/status/"):
            self.answer(int(path.split("/")[2]), b"said so\n")
        elif path.startswith("/redirect/"):
            _, _, status, where = path.split("/")
            to = {"here": "/echo", "loop": self.path, "host": f"http://localhost:{port}/elsewhere",
                  "port": "http://127.0.0.1:1/elsewhere", "scheme": f"https://127.0.0.1:{port}/elsewhere",
                  "file": "file:///etc/passwd"}[where]
            self.answer(int(status), b"go away\n", Location=to)
        elif path == "/flaky":
            self.answer(500 if count == 1 else 200, b"once more\n")
        elif path == "/etag":
            same = (self.headers.get("If-None-Match") == '"v1"'
                    and self.headers.get("If-Modified-Since") == "Sun, 06 Nov 1994 08:49:37 GMT")
            self.answer(304 if same else 200, b"" if same else b"the page\n", etag=' "v1" ',
                        **{"Last-Modified": "Sun, 06 Nov 1994 08:49:37 GMT"})
        elif path == "/head":
            self.answer(200, b"", **{f"X-{i}": "x" * 1000 for i in range(10)})
        elif path == "/large":
            self.answer(200, b"x" * 5_000_000 + b"end\n")
        elif path == "/hang":
            print("hangs", flush=True)
            self.wait_for_end()
            print("hung up", flush=True)
        elif path == "/half":
            self.send_response(200)
            self.send_header("Content-Length", "1000")
            self.end_headers()
            self.wfile.write(b"the first half\n")
            print("hangs", flush=True)
            self.wait_for_end()
        elif path == "/reset":
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()
            self.close_connection = True
        elif path == "/hits":
            self.answer(200, json.dumps(hits).encode())
        elif path == "/probe/yes":
            self.answer(200, b'{"running": true, "id": "job-17"}')
        elif path == "/probe/number":
            self.answer(200, b'{"running": true, "id": 17}')
        elif path == "/probe/no":
            self.answer(200, b'{"running": false}')
        elif path == "/probe/nonsense":
            self.answer(200, b"yes")
        else:
            self.answer(404, b"no such thing\n")

    do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = do_HEAD = handle_any


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
print("port", server.server_address[1], flush=True)
if len(sys.argv) > 1:
    secure = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    secure.daemon_threads = True
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[1])
    secure.socket = context.wrap_socket(secure.socket, server_side=True)
    print("secure", secure.server_address[1], flush=True)
    threading.Thread(target=secure.serve_forever, daemon=True).start()
try:
    server.serve_forever()
except KeyboardInterrupt:
    sys.exit(0)
