"""A reader of server-sent events, for the tests of streams."""
import json
import queue
import socket
import threading

import lib


class Events:
    """A reader of a stream, on a thread of its own."""

    def __init__(self, server, query="", key=None, headers=""):
        self.sock = server.socket(timeout=60)
        self.sock.sendall(f"GET /api/v1/stream{query} HTTP/1.1\r\nHost: x\r\nX-API-Key: {key or server.key}\r\n{headers}\r\n".encode())
        self.queue, self.comments, self.ended = queue.Queue(), 0, False
        self.ready = threading.Event()
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()
        assert self.ready.wait(10 * lib.SLOW), "the stream does not begin"

    def _read(self):
        data, text, head = b"", "", None
        while True:
            try:
                more = self.sock.recv(65536)
            except OSError:
                more = b""
            if not more:
                break
            data += more
            if head is None:
                if b"\r\n\r\n" not in data:
                    continue
                head, _, data = data.partition(b"\r\n\r\n")
                self.head = head.decode()
                if " 200 " not in self.head.split("\r\n")[0]:
                    break
            while True:  # chunks
                size, found, rest = data.partition(b"\r\n")
                if not found or len(rest) < int(size, 16) + 2:
                    break
                n = int(size, 16)
                text += rest[:n].decode()
                data = rest[n + 2:]
            while "\n\n" in text:
                event, _, text = text.partition("\n\n")
                self._take(event)
        self.ended = True
        self.ready.set()
        self.queue.put(None)

    def _take(self, text):
        fields = dict(line.split(": ", 1) for line in text.split("\n") if line and not line.startswith(":"))
        if any(line.startswith(":") for line in text.split("\n")):
            self.comments += 1
            self.ready.set()
        if "event" in fields:
            self.queue.put((fields["event"], json.loads(fields["data"])))

    def next(self, seconds=10):
        try:
            return self.queue.get(timeout=seconds * lib.SLOW)
        except queue.Empty:
            raise AssertionError("no event") from None

    def none(self, seconds=0.3):
        try:
            raise AssertionError(f"unexpected: {self.queue.get(timeout=seconds)}")
        except queue.Empty:
            pass

    def close(self):
        try:
            self.sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.sock.close()
