#!/usr/bin/env python3
"""Where the server listens, and which addresses it refuses."""
import json
import os
import signal
import socket
import stat
import subprocess
import tempfile

import lib


def refused(*args, store="memory:", env=None, status=64):
    """What it says when it does not start."""
    got = lib.run("serve", "--store", store, *args, env=env)
    assert got.returncode == status, (got.returncode, got.stderr)
    return got.stderr


def test_ipv4():
    """a free port is found and named"""
    with lib.Server() as server:
        assert server.address.startswith("127.0.0.1:") and not server.address.endswith(":0"), server.address
        server.get("/health").expect(200)


def test_ipv6():
    """IPv6"""
    with lib.Server(listen="[::1]:0") as server:
        assert server.address.startswith("[::1]:"), server.address
        server.get("/health").expect(200)


def test_unix_socket():
    """a unix socket: 0600, gone at the end; a stale one is taken over, a live one is not, nor is a file"""
    with lib.Server(listen="unix") as server:
        path = server.address[len("unix:"):]
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o600, oct(os.stat(path).st_mode)
        server.get("/health").expect(200)
        said = refused("--allow-root", "--listen", server.address)
        assert "already" in said, said
        server.kill()
        assert os.path.exists(path)
        server.start()  # over the stale one
        server.get("/health").expect(200)
        assert server.stop() == 0
        assert not os.path.exists(path)
        with open(path, "w", encoding="ascii") as file:
            file.write("mine")
        said = refused("--allow-root", "--listen", server.address)
        assert "not a socket" in said and os.path.exists(path), said


def test_bad_addresses():
    """addresses that are none"""
    for text in ("127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:1x", "example.com:80", "1.2.3:80", "unix:relative",
                 "unix:/" + "x" * 200, ":80", "[::1]", "127.0.0.1:-1"):
        said = refused("--allow-root", "--listen", text)
        assert "interlock: " in said, said


def test_not_loopback():
    """what others can reach is refused without --tls-proxy"""
    for text in ("0.0.0.0:0", "[::]:0"):
        said = refused("--allow-root", "--listen", text)
        assert "--tls-proxy" in said, said
        said = refused("--allow-root", "--metrics-listen", text)
        assert "--tls-proxy" in said, said
    with lib.Server(listen="0.0.0.0:0", args=["--tls-proxy"]) as server:
        server.address = server.address.replace("0.0.0.0", "127.0.0.1")
        server.client.close()
        with server.new_client() as client:
            client.get("/health").expect(200)


def test_taken():
    """an address that is in use"""
    with lib.Server() as server:
        said = refused("--allow-root", "--listen", server.address, status=69)
        assert "in use" in said, said


def test_root():
    """root is refused without --allow-root"""
    if os.geteuid() != 0:
        raise lib.Skip("not root")
    assert "--allow-root" in refused("--listen", "127.0.0.1:0")


def test_metrics_listen():
    """an address of its own for metrics: there only that, and nowhere else"""
    with lib.Server(args=["--metrics-listen", "127.0.0.1:0"]) as server:
        main, metrics = server.address, server.metrics_address
        server.get("/metrics").expect(404)
        server.get("/health").expect(200)
        server.address = metrics
        with server.new_client() as client:
            client.get("/metrics").expect(200)
            client.get("/health").expect(200)
            client.get("/ready").expect(200)
            client.get("/openapi.json").expect(404)
            client.post("/api/v1/locks/acquire", {"key": "a", "holder": "h"}).expect(404)
        server.address = main


def own_address():
    """An address of this machine that is not loopback."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        try:
            sock.connect(("192.0.2.1", 9))  # sends nothing
        except OSError:
            raise lib.Skip("no network") from None
        return sock.getsockname()[0]


def count_closed(server, n):
    """Of n connections at once: how many are closed without an answer?"""
    socks = [server.socket() for _ in range(n)]
    closed = 0
    for sock in socks:
        try:
            sock.sendall(b"GET /health HTTP/1.1\r\nHost: a\r\n\r\n")
            closed += lib.read_answer(sock) is None
        except ConnectionError:
            closed += 1
    for sock in socks:
        sock.close()
    return closed


def test_limits_of_connections():
    """more connections from one address than allowed are closed, but for loopback; others are served again when some end"""
    with lib.Server(listen="0.0.0.0:0", args=["--tls-proxy"], env={"INTERLOCK_CONNECTIONS_PER_ADDRESS": "20"}) as server:
        port = server.address.rsplit(":", 1)[1]
        server.address = "127.0.0.1:" + port
        assert count_closed(server, 30) == 0
        server.address = own_address() + ":" + port
        assert count_closed(server, 30) == 10
        lib.eventually(lambda: served(server), what="a connection")
        server.client.close()


def served(server):
    try:
        with server.new_client(timeout=2) as client:
            return client.get("/health").status == 200
    except (ConnectionError, socket.timeout):
        return False


class FewFiles(lib.Server):
    """With few descriptors."""

    def command(self):
        return ["prlimit", "--nofile=256", *super().command()]


def total_of_connections(kind):
    with kind(env={"INTERLOCK_CONNECTIONS_MAX": "16"}) as server:
        server.client.close()
        socks = [server.socket() for _ in range(16)]
        for sock in socks:
            sock.sendall(b"GET /health HTTP/1.1\r\nHost: a\r\n\r\n")
        late = server.socket(timeout=0.5)
        late.sendall(b"GET /health HTTP/1.1\r\nHost: a\r\n\r\n")
        try:
            late.recv(10)
            raise AssertionError("the 17th was served")
        except socket.timeout:
            pass
        for sock in socks:
            sock.close()
        late.settimeout(10)
        assert lib.read_answer(late)[0] == 200
        late.close()


def test_total_of_connections():
    """beyond the total new ones wait until there is room; also with few descriptors"""
    for kind in (lib.Server, FewFiles):
        total_of_connections(kind)


def test_private():
    """no core file, files for nobody else"""
    with lib.Server(store="sqlite") as server:
        assert stat.S_IMODE(os.stat(server.folder + "/store.db").st_mode) == 0o600
        # the kernel gives it to root
        assert os.stat(f"/proc/{server.pid}/environ").st_uid == 0, "dumpable"


def test_first_key():
    """the first start prints an admin key once, on standard output, never in the log"""
    with lib.Server(store="sqlite") as server:
        key = server.key
        assert key.startswith("sk_default_"), key
        assert key not in server.log
        server.stop()
        assert key not in server.log
        server.start()
        assert not "".join(server.out), server.out
        assert key.encode() not in b"".join(open(os.path.join(server.folder, name), "rb").read()
                                            for name in os.listdir(server.folder) if name.startswith("store.db"))


def test_first_key_not_in_journal():
    """... and none is made when output goes to the journal of systemd, which keeps it"""
    no_first_key(journal=True)


def test_no_first_key():
    """... nor with --no-first-key"""
    no_first_key("--no-first-key")


def no_first_key(*options, journal=False):
    """a server that creates no key, and says how to"""
    with tempfile.TemporaryDirectory() as folder:
        with open(folder + "/log", "wb") as log:
            where = os.fstat(log.fileno())
            env = dict(os.environ)
            if journal:
                env["JOURNAL_STREAM"] = f"{where.st_dev}:{where.st_ino}"
            process = subprocess.Popen([lib.BINARY, "serve", "--allow-root", "--store", "sqlite:" + folder + "/s.db", "--listen",
                                        "127.0.0.1:0", "--log-format", "json", *options], stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=env)
        try:
            def text():
                with open(folder + "/log", encoding="utf-8") as file:
                    return file.read()
            lib.eventually(lambda: "listening on" in text())
            assert "sk_" not in text() and "key create" in text(), text()
            for line in text().splitlines():
                json.loads(line)
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(20) == 0


def test_config_check():
    """`interlock config check` knows the keys of the server, and names file, line and reason"""
    with tempfile.TemporaryDirectory() as folder:
        path = folder + "/config.yml"
        for text, wrong in (("listen: 127.0.0.1:1\nlog_level: debug\nshutdown: 5s\nlimit_requests_per_second: 10\n", None),
                            ("listen: 127.0.0.1:1\nlog_level: loud\n", ":2: log_level"),
                            ("shutdown: 11m\n", ":1: shutdown"),
                            ("body_max: 3\n", ":1: body_max"),
                            ("ttl: 1m\nlisten: example.com:80\n", ":2: listen"),
                            ("metrics_listen: unix:relative\n", ":1: metrics_listen"),
                            ("audit_keep: 0\n", ":1: audit_keep"),
                            ("server: example.com\n", ":1: server"),
                            ("server: http://a\nstore: b.db\n", "cannot be combined"),
                            ("ranks: [account, user]\n", None),
                            ("listne: x\n", "listen")):
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            got = lib.run("config", "check", path)
            assert (got.returncode == 0) == (wrong is None), (text, got)
            assert wrong is None or wrong in got.stderr, (text, got.stderr)


lib.main(globals())
