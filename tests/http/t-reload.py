#!/usr/bin/env python3
"""SIGHUP: reloadable settings change; others are reported; invalid settings change nothing."""
import re
import signal

import lib


def write(server, text):
    with open(server.folder + "/config.yml", "w", encoding="utf-8") as file:
        file.write(text)


def hup(server, pattern):
    n = len(re.findall(pattern, server.log))
    server.send(signal.SIGHUP)
    lib.eventually(lambda: len(re.findall(pattern, server.log)) > n, what=pattern)
    server.get("/health").expect(200)


def served(text):
    server = lib.Server(start=False)
    write(server, text)
    server.args = ["--config", server.folder + "/config.yml"]
    server.start()
    return server


def test_log_level():
    """the level of the log"""
    with served("log_level: info\n") as server:
        server.get("/health", headers={"X-Request-Id": "before"}).expect(200)
        write(server, "log_level: debug\n")
        hup(server, r"config\.reloaded")
        server.get("/health", headers={"X-Request-Id": "behind"}).expect(200)
        server.wait_log("behind")
        assert "before" not in server.log


def test_limits():
    """the default limits of tenants"""
    with served("limit_requests_per_second: 0\n") as server:
        for _ in range(50):
            server.get("/api/v1/locks").expect(200)
        write(server, "limit_requests_per_second: 1\nlimit_burst: 5\n")
        hup(server, r"config\.reloaded")
        statuses = [server.get("/api/v1/locks").status for _ in range(20)]
        assert 429 in statuses, statuses
        write(server, "limit_requests_per_second: 0\n")
        hup(server, r"config\.reloaded")
        lib.eventually(lambda: server.get("/api/v1/locks").status == 200)
        for _ in range(20):
            server.get("/api/v1/locks").expect(200)


def test_needs_restart():
    """what counts only after a restart is named"""
    with served("log_level: info\n") as server:
        write(server, "log_level: info\nconnections_max: 99\n")
        hup(server, r"connections_max.*restart")


def test_shown():
    """/admin/config shows what is in force and where it comes from, without passwords"""
    with served("log_level: warn\nlimit_runs: 7\nbody_max: 4096\nconnections:\n  shop:\n    url: postgres://ada:geheim@db/shop\n") as server:
        def shown():
            answer = server.get("/api/v1/admin/config").expect(200)
            assert b"geheim" not in answer.body
            return {item["key"]: item for item in answer.json["items"]}
        assert shown()["connections.shop"]["value"] == "postgres://ada:***@db/shop", shown()["connections.shop"]
        assert shown()["log_level"]["value"] == "warn" and "config.yml" in shown()["log_level"]["source"]
        assert shown()["ttl"] == {"key": "ttl", "value": "30s", "source": "default", "env": "INTERLOCK_TTL"}
        assert shown()["listen"]["value"] == "127.0.0.1:0" and "--listen" in shown()["listen"]["source"]
        write(server, "limit_runs: 8\nbody_max: 8192\n")
        hup(server, r"config\.reloaded")
        assert shown()["limit_runs"]["value"] == "8" and shown()["log_level"]["value"] == "info"
        assert shown()["body_max"]["value"] == "4096"  # until it is started again
        server.get("/api/v1/admin/config", key=server.key_for("t", "operator")).expect(403)


def test_wrong():
    """a wrong file changes nothing; the log names file, line and reason"""
    with served("log_level: info\n") as server:
        write(server, "shutdown: 3s\nlog_level: loud\n")
        hup(server, r"config\.yml:2: log_level")
        assert "config.reload_refused" in server.log
        server.get("/health", headers={"X-Request-Id": "quiet"}).expect(200)
        assert server.stop() == 0
        assert "quiet" not in server.log


lib.main(globals())
