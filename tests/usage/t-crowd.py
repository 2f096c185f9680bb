"""A crowd that asks one server for one day in the same moment. Needs more than 256 open files, so it is apart from t-serve.py."""
import json
import os
import signal
import tempfile

import lib

PATH = "/api/v1/admin/usage/days/2025-01-15"
N = 180  # a tenant has at most 144 threads and places of the pool


def test_crowd_at_once():
    """All of them share one read of the row and one build; none is refused."""
    with tempfile.TemporaryDirectory(prefix="interlock-usage-") as folder:
        with open(f"{folder}/source", "w", encoding="utf-8") as file:
            file.write(f"echo x >>{folder}/fetched\necho '{json.dumps({'metrics': {'api_requests': 7}})}'\n")
        server = lib.Server(store=f"sqlite:{folder}/store.db", args=["--log-format", "json"], env={
            "INTERLOCK_USAGE_SOURCE_TYPE": "command", "INTERLOCK_USAGE_SOURCE_COMMAND": f"/bin/sh {folder}/source"})
        try:
            clients = [server.new_client() for _ in range(N)]
            for client in clients:
                client.get("/health").expect(200)  # connected
            server.send(signal.SIGSTOP)
            for client in clients:
                client.conn.request("GET", PATH, headers={"X-API-Key": client.key})
            server.send(signal.SIGCONT)
            statuses = []
            for client in clients:
                answer = client.conn.getresponse()
                answer.read()
                statuses.append(answer.status)
                client.close()
            assert statuses == [200] * N, {s: statuses.count(s) for s in statuses}
            assert os.path.getsize(f"{folder}/fetched") == len("x\n")
        finally:
            server.end()


lib.main(globals())
