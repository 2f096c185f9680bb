"""Third-party clients: curl, Node's fetch, Python's urllib; over TCP and, where supported, a Unix
socket."""
import json
import os
import shutil
import socket
import ssl
import subprocess
import tempfile
import threading
import urllib.error
import urllib.request

import lib


def tool(name):
    found = shutil.which(name)
    if found is None:
        raise lib.Skip(f"{name} is not installed")
    return found


def curl(*args):
    done = subprocess.run([tool("curl"), "--silent", "--show-error", "--max-time", "30", *args], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done
    return done.stdout


def test_curl():
    """curl: acquire, a conflict, a replay, HEAD, a body from a file, 100-continue"""
    with lib.Server() as s:
        base, key = f"http://{s.address}", f"X-API-Key: {s.key}"
        post = ["-H", key, "-H", "Content-Type: application/json"]
        lease = json.loads(curl(*post, "-d", '{"key":"k","holder":"curl"}', base + "/api/v1/locks/acquire"))
        assert lease["holder"] == "curl"
        held = curl(*post, "-w", "\n%{http_code}", "-d", '{"key":"k","holder":"other"}', base + "/api/v1/locks/acquire")
        assert held.endswith("409") and "LOCK_HELD" in held
        for replayed in (False, True):
            out = curl(*post, "-i", "-H", "Idempotency-Key: k1", "-d", '{"payload":"x"}', base + "/api/v1/queues/q/jobs")
            assert ("Idempotent-Replayed: true" in out) == replayed and " 201 " in out.split("\n")[0]
        assert "200" in curl("-I", base + "/health")
        # a body beyond 1 MiB is sent by curl only after 100 Continue
        path = os.path.join(s.folder, "body.json")
        with open(path, "w", encoding="ascii") as file:
            json.dump({"items": [{"payload": "y" * 100000} for _ in range(12)]}, file)
        assert len(json.loads(curl(*post, "-d", "@" + path, base + "/api/v1/queues/q/jobs"))["items"]) == 12
        assert json.loads(curl("-H", "Authorization: Bearer " + s.key, base + "/api/v1/locks?prefix=k&limit=1"))["items"]
        # several on one connection
        out = curl("-H", key, base + "/api/v1/status", base + "/api/v1/locks", "-w", " %{num_connects} ")
        assert " 1 " in out and " 0 " in out


def test_curl_unix():
    """curl over a unix socket"""
    with lib.Server(listen="unix") as s:
        out = curl("--unix-socket", s.address[5:], "-H", f"X-API-Key: {s.key}", "http://localhost/api/v1/status")
        assert json.loads(out)["ready"]


def test_curl_stream():
    """curl -N shows events as they come"""
    with lib.Server() as s:
        reader = subprocess.Popen([tool("curl"), "-sN", "-H", f"X-API-Key: {s.key}", f"http://{s.address}/api/v1/stream"], stdout=subprocess.PIPE, text=True)
        try:
            assert reader.stdout.readline().startswith("retry:")
            s.post("/api/v1/locks/acquire", {"key": "k", "holder": "h"}).expect(200)
            lines = iter(reader.stdout.readline, "")
            assert any(line.startswith("data:") and '"k"' in line for line in lines)
        finally:
            reader.kill()
            reader.wait()
            reader.stdout.close()


NODE = r"""
const [base, key] = process.argv.slice(2);
const call = async (path, body, headers = {}) => {
  const answer = await fetch(base + path, {
    method: body ? "POST" : "GET", body: body && JSON.stringify(body),
    headers: { "X-API-Key": key, ...(body ? { "Content-Type": "application/json" } : {}), ...headers },
  });
  return [answer.status, await answer.json(), answer.headers];
};
const check = (ok, what) => { if (!ok) { console.error(what); process.exit(1); } };
const leases = await Promise.all([1, 2, 3, 4, 5].map((i) => call("/api/v1/locks/acquire", { key: "k", holder: "node" + i })));
check(leases.filter(([status]) => status === 200).length === 1, leases);
check(leases.filter(([status, body]) => status === 409 && body.error.code === "LOCK_HELD").length === 4, leases);
const mine = leases.find(([status]) => status === 200)[1];
check(Number.isSafeInteger(mine.fence), "a fence that JavaScript cannot hold");
const waiting = call("/api/v1/locks/acquire", { key: "k", holder: "late", wait_ms: 20000 });
await call("/api/v1/locks/release", { key: "k", holder: mine.holder, fence: mine.fence });
check((await waiting)[0] === 200, "the wait");
const pushed = await Promise.all([1, 2, 3].map(() => call("/api/v1/queues/q/jobs", { payload: { a: 1 } }, { "Idempotency-Key": "n" })));
check(new Set(pushed.map(([, body]) => body.id)).size === 1, pushed);
const events = await fetch(base + "/api/v1/stream", { headers: { "X-API-Key": key } });
const reader = events.body.getReader();
await call("/api/v1/queues/q/jobs", { payload: "b" });
let text = "";
while (!text.includes("event: job")) text += new TextDecoder().decode((await reader.read()).value);
await reader.cancel();
console.log("fine");
"""


def test_node():
    """Node's fetch: concurrent acquires, a long poll, replays, a stream"""
    with lib.Server() as s:
        path = os.path.join(s.folder, "client.mjs")
        with open(path, "w", encoding="ascii") as file:
            file.write(NODE)
        done = subprocess.run([tool("node"), path, f"http://{s.address}", s.key], capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0 and done.stdout == "fine\n", done


def test_urllib():
    """Python's urllib, a connection for each request"""
    with lib.Server() as s:
        def ask(path, body=None):
            headers = {"X-API-Key": s.key, "Content-Type": "application/json"}
            request = urllib.request.Request(f"http://{s.address}{path}", data=json.dumps(body).encode() if body is not None else None, headers=headers)
            with urllib.request.urlopen(request, timeout=30) as answer:
                return json.load(answer)

        assert ask("/api/v1/locks/acquire", {"key": "k", "holder": "h"})["fence"] > 0
        try:
            ask("/api/v1/locks/acquire", {"key": "k", "holder": "other"})
            raise AssertionError("no conflict")
        except urllib.error.HTTPError as why:
            assert why.code == 409 and json.load(why)["error"]["details"]["holder"] == "h"
        assert ask("/api/v1/locks")["items"][0]["key"] == "k"


class TlsProxy:
    """A proxy that ends TLS, in front of an address; its certificate is the file `certificate`."""

    def __init__(self, folder, address):
        self.certificate, key = folder + "/certificate.pem", folder + "/key.pem"
        subprocess.run([tool("openssl"), "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", self.certificate, "-days", "2",
                        "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"], check=True, capture_output=True)
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(self.certificate, key)
        self.host, port = address.rsplit(":", 1)
        self.port = int(port)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"https://localhost:{self.listener.getsockname()[1]}"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client):
        try:
            with self.context.wrap_socket(client, server_side=True) as outside, socket.create_connection((self.host, self.port)) as inside:
                back = threading.Thread(target=self.copy, args=(inside, outside), daemon=True)
                back.start()
                self.copy(outside, inside)
                back.join()
        except OSError:
            pass  # a client that does not like the certificate

    @staticmethod
    def copy(source, target):
        try:
            while data := source.recv(65536):
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass


def test_commands_over_tls():
    """interlock --server https://: certificates are verified, $SSL_CERT_FILE names others; no proxy of the environment reads the key"""
    with lib.Server() as s, tempfile.TemporaryDirectory() as folder:
        proxy = TlsProxy(folder, s.address)
        try:
            env = {"INTERLOCK_API_KEY": s.key}
            got = lib.run("locks", "--server", proxy.url, env=env)
            assert got.returncode == 69 and "certificate" in got.stderr, got
            env["SSL_CERT_FILE"] = proxy.certificate
            got = lib.run("run", "--server", proxy.url, "k", "--", "echo", "done", env=env)
            assert (got.returncode, got.stdout) == (0, "done\n"), got
            env["http_proxy"] = "http://127.0.0.1:9"
            got = lib.run("locks", "--server", f"http://{s.address}", env=env)
            assert got.returncode == 0, got
        finally:
            proxy.listener.close()


lib.main(globals())
