"""Reads a server's responses from a socket and checks them: format, order, errors, leaks."""
import json
import re

STATUS_LINE = re.compile(rb"HTTP/1\.[01] ([1-5]\d\d) [\x20-\x7e]*\Z")
FIELD = re.compile(rb"([!#$%&'*+\-.^_`|~0-9A-Za-z]+): ?([^\r\n\0]*)\Z")
MARK = re.compile(rb"~(t\d)~")
CHUNK = re.compile(rb"[0-9a-fA-F]{1,8}\Z")
ONCE = (b"content-length", b"transfer-encoding", b"x-request-id", b"content-type")
HEAD_BYTES_MAX = 65536


class Wrong(Exception):
    """The server did something that it must not."""


class Ended(Exception):
    """The connection is closed. reset: what the server had sent may be lost."""

    def __init__(self, whole, reset):
        super().__init__("closed" if whole else "closed in the middle of an answer")
        self.reset = reset


class Answer:
    __slots__ = ("status", "headers", "body", "closes", "chunked")

    def __init__(self, status, headers):
        self.status, self.headers, self.body = status, headers, b""
        self.closes = b"close" in headers.get(b"connection", b"").lower()
        self.chunked = b"transfer-encoding" in headers


class Reader:
    """The answers of one connection, in order."""

    def __init__(self, sock):
        self.sock, self.data, self.reset = sock, b"", False

    def more(self):
        try:
            got = self.sock.recv(262144)
        except (ConnectionResetError, BrokenPipeError):
            self.reset = True
            got = b""
        if not got:
            raise Ended(not self.data, self.reset)
        self.data += got

    def head(self):
        while (end := self.data.find(b"\r\n\r\n")) < 0:
            if len(self.data) > HEAD_BYTES_MAX:
                raise Wrong(f"the head of an answer has no end: {self.data[:300]!r}")
            self.more()
        lines = self.data[:end].split(b"\r\n")
        found = STATUS_LINE.match(lines[0])
        if not found:
            raise Wrong(f"malformed status line: {lines[0][:300]!r}")
        headers = {}
        for line in lines[1:]:
            field = FIELD.match(line)
            if not field:
                raise Wrong(f"malformed header in an answer: {line[:300]!r}")
            name = field[1].lower()
            if name in headers and name in ONCE:
                raise Wrong(f"header twice in an answer: {line[:300]!r}")
            headers[name] = field[2]
        self.data = self.data[end + 4:]
        return Answer(int(found[1]), headers)

    def take(self, n):
        if len(self.data) < n:
            parts, have = [self.data], len(self.data)
            while have < n:
                self.data = b"x"  # the answer has begun: its end would be too early
                self.more()
                parts.append(self.data[1:])
                have += len(parts[-1])
            self.data = b"".join(parts)
        taken, self.data = self.data[:n], self.data[n:]
        return taken

    def line(self):
        while (end := self.data.find(b"\r\n")) < 0:
            if len(self.data) > 100:
                raise Wrong(f"malformed chunk: {self.data[:100]!r}")
            self.more()
        taken, self.data = self.data[:end], self.data[end + 2:]
        return taken

    def chunk(self):
        """b"" is the last."""
        size = self.line()
        if not CHUNK.match(size):
            raise Wrong(f"malformed chunk size: {size[:100]!r}")
        data = self.take(int(size, 16))
        if self.line() != b"":
            raise Wrong("a chunk does not end where it should")
        return data

    def answer(self, method, version="HTTP/1.1"):
        """The next answer, whole; interim answers (100) are passed over. The body of a stream is
        left: read chunk()."""
        while True:
            got = self.head()
            if got.status != 100:
                break
        length = got.headers.get(b"content-length")
        if got.chunked and length is not None:
            raise Wrong("an answer has both Content-Length and Transfer-Encoding")
        if method == "HEAD" or got.status in (204, 304) or got.chunked:
            return got
        if length is None and version == "HTTP/1.0" and got.closes:
            got.chunked = True  # a stream that ends with the connection
            return got
        if length is None:
            raise Wrong(f"an answer has no length: {got.status} {got.headers!r}")
        if not length.isdigit():
            raise Wrong(f"Content-Length: {length[:50]!r}")
        got.body = self.take(int(length))
        return got


class Judge:
    """Holds answers to well-formed requests against the rules."""

    def __init__(self, document, schema_check):
        error = document["components"]["schemas"]["Error"]["properties"]["error"]["properties"]
        self.codes = set(error["code"]["enum"])
        self.schema_check = schema_check
        self.statuses = {}

    def error(self, answer):
        """The documented body of an error, or Wrong."""
        try:
            body = json.loads(answer.body)
            error = body["error"]
            good = (body["success"] is False and set(body) == {"success", "error"} and
                    set(error) == {"code", "source", "message", "details"} and
                    error["code"] in self.codes and isinstance(error["message"], str) and
                    isinstance(error["details"], dict))
        except (ValueError, KeyError, TypeError):
            good = False
        if not good:
            raise Wrong(f"{answer.status} without the documented body: {answer.body[:400]!r}")
        return error["code"]

    def well_formed(self, r, answer, sample):
        """r: the Request that it answers. sample: hold it against its schema, too."""
        count = f"{answer.status}"
        got_id = answer.headers.get(b"x-request-id", b"")
        # A head that is refused gets an id of the server's: the request's own was not read.
        refused = answer.closes and 400 <= answer.status < 500
        if got_id.decode("latin-1") != r.request_id and not refused:
            raise Wrong(f"answer to {r.request_id} has the id {got_id!r}: {answer.status} "
                        f"{answer.body[:300]!r}")
        # libmicrohttpd refuses a head that does not fit into its memory before we see it, and closes;
        # once in a while 0.9.75 sends the head of its answer twice.
        if answer.status in (413, 414, 431) and answer.closes and b"<html>" in answer.body:
            self.statuses["by libmicrohttpd"] = self.statuses.get("by libmicrohttpd", 0) + 1
            return
        if answer.status >= 400 and r.method != "HEAD" and r.path != "/ready":
            code = self.error(answer)
            if answer.status >= 500:
                count += " " + code
        if answer.status >= 500 and not (answer.status in (503, 507) or
                                         (answer.status == 501 and r.method in ("TRACE", "BREW"))):
            raise Wrong(f"status {answer.status}: {answer.body[:600]!r}")
        self.statuses[count] = self.statuses.get(count, 0) + 1
        if r.tenant is not None and not r.path.startswith("/api/v1/admin") and r.path != "/metrics":
            for mark in MARK.findall(answer.body):
                if mark.decode() != r.tenant:
                    raise Wrong(f"{r.tenant} reads what belongs to {mark.decode()}: "
                                f"{answer.body[:600]!r}")
        if sample and answer.status < 400 and r.method == r.operation["x-method"]:
            self.schema_check(r.operation, answer)

    def anything(self, answer):
        """The answer to bytes that may not be a request at all."""
        count = f"odd {answer.status}"
        self.statuses[count] = self.statuses.get(count, 0) + 1
        if answer.status >= 500 and answer.status not in (501, 503, 505, 507):
            raise Wrong(f"status {answer.status}: {answer.body[:600]!r}")
