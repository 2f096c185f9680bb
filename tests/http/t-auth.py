"""Authentication and permissions."""
import json
import re
import sqlite3
import tempfile
import time

import lib

LOCKS = "/api/v1/locks"


def routes(server):
    """Every route that needs a key: (method, path, operation)."""
    paths = server.get("/openapi.json").expect(200).json["paths"]
    found = [(method.upper(), path, op) for path, methods in paths.items()
             if "$ref" not in methods for method, op in methods.items()]
    assert len(found) > 50
    return [route for route in found if route[2]["x-permission"] != "open"]


def filled(path):
    """A path with arguments that name nothing."""
    for name in ("id", "q", "name", "tenant", "pipeline"):
        path = path.replace("{" + name + "}", "nothing-there")
    return path


def example(op):
    try:
        return op["requestBody"]["content"]["application/json"].get("example", {})
    except KeyError:
        return None


def many_failures(store="memory:", **more):
    """A server that never makes an address wait."""
    return lib.Server(store=store, env={"INTERLOCK_LOGIN_FAILURES": "1000000"}, **more)


def expect_unauthorised(answer):
    answer.expect(401, "UNAUTHORIZED")
    assert answer.headers["WWW-Authenticate"] == 'Bearer realm="interlock"', answer.headers.items()
    assert answer.json["error"]["source"] == "auth"


def test_missing_key_is_401_on_every_route():
    with lib.Server() as s:
        for method, path, op in routes(s):
            with s.new_client() as c:
                expect_unauthorised(c.ask(method, filled(path), body=example(op), key=None))


def test_open_routes_need_no_key():
    with lib.Server() as s:
        for path in ("/health", "/ready", "/metrics", "/openapi.json"):
            s.get(path, key=None).expect(200)


def test_malformed_and_wrong_keys_are_401_with_the_same_body():
    with many_failures() as s:
        wrong = ["x", "sk_", "sk_default_", "sk_default_" + "A" * 43, "sk_default_" + "A" * 42 + "=", s.key[:-1],
                 s.key + "x", s.key.upper(), "sk_nobody_" + s.key[-43:], "A" * 500, "sk_default_" + "\u00e4" * 10]
        bodies = set()
        for key in wrong:
            for headers in ({"X-API-Key": key.encode()}, {"Authorization": b"Bearer " + key.encode()}):
                answer = s.get(LOCKS, key=None, headers=headers)
                expect_unauthorised(answer)
                bodies.add(answer.body)
        assert len(bodies) == 1, bodies
        for authorization in ("Basic " + s.key, s.key, "Bearer", "Bearer" + s.key, "Token " + s.key):
            expect_unauthorised(s.get(LOCKS, key=None, headers={"Authorization": authorization}))
        s.get(LOCKS).expect(200)


def test_both_headers():
    with lib.Server() as s:
        s.get(LOCKS, key=None, headers={"Authorization": "Bearer " + s.key}).expect(200)
        s.get(LOCKS, key=None, headers={"Authorization": "bearer  " + s.key}).expect(200)
        s.get(LOCKS, headers={"Authorization": "Bearer " + s.key}).expect(200)
        other = s.key_for("other")
        s.get(LOCKS, headers={"Authorization": "Bearer " + other}).expect(400, "BAD_REQUEST")
        s.get(LOCKS, headers={"Authorization": "Basic abc"}).expect(400, "BAD_REQUEST")


def revoke(server, key):
    with server.new_client(key) as c:
        c.get(LOCKS).expect(200)
    item = [i for i in server.get("/api/v1/admin/api-keys?limit=1000").json["items"] if i["name"] == "to-revoke"][-1]
    server.delete("/api/v1/admin/api-keys/" + item["id"]).expect(200)


def new_key(server, **more):
    body = dict(tenant="default", role="read", name="to-revoke")
    body.update(more)
    return server.post("/api/v1/admin/api-keys", body).expect(201).json


def test_revoked_here_ends_at_once():
    with lib.Server() as s:
        made = new_key(s)
        with s.new_client(made["key"]) as c:
            c.get(LOCKS).expect(200)
            assert s.delete("/api/v1/admin/api-keys/" + made["id"]).expect(200).json == {"id": made["id"], "revoked": True}
            expect_unauthorised(c.get(LOCKS))


def test_revoked_elsewhere_ends_within_a_second():
    with lib.Server(store="sqlite") as a, lib.Server(store=a.store, key=a.key) as b:
        made = new_key(a)
        with b.new_client(made["key"]) as c:
            for _ in range(20):
                c.get(LOCKS).expect(200)
            a.delete("/api/v1/admin/api-keys/" + made["id"]).expect(200)
            began = time.monotonic()
            asked = began  # what counts is when it was asked: the answer may be late on a busy machine
            while c.get(LOCKS).status == 200:
                assert asked - began < 1.0, "a revoked key still works after a second"
                asked = time.monotonic()
            expect_unauthorised(c.get(LOCKS))


def test_revoked_elsewhere_while_nobody_asks():
    """the first request after a second in which the key was not used is refused, too"""
    with lib.Server(store="sqlite") as a, lib.Server(store=a.store, key=a.key) as b:
        made = new_key(a)
        with b.new_client(made["key"]) as c:
            c.get(LOCKS).expect(200)
            a.delete("/api/v1/admin/api-keys/" + made["id"]).expect(200)
            time.sleep(1)  # what is promised
            expect_unauthorised(c.get(LOCKS))


def test_revoked_key_ends_its_stream():
    with lib.Server() as s:
        made = new_key(s)
        with s.socket() as sock:
            sock.sendall(f"GET /api/v1/stream HTTP/1.1\r\nHost: x\r\nX-API-Key: {made['key']}\r\n\r\n".encode())
            assert b"200 OK" in sock.recv(4096)
            s.delete("/api/v1/admin/api-keys/" + made["id"]).expect(200)
            began = time.monotonic()
            sock.settimeout(5 * lib.SLOW)
            while sock.recv(4096):
                pass  # until it ends
            assert time.monotonic() - began < 4 * lib.SLOW, time.monotonic() - began


def test_expired_key():
    with lib.Server() as s:
        made = new_key(s, expires_in_ms=1500)
        with s.new_client(made["key"]) as c:
            c.get(LOCKS).expect(200)
            lib.eventually(lambda: c.get(LOCKS).status == 401, 5, "the expiry")
            expect_unauthorised(c.get(LOCKS))
        s.post("/api/v1/admin/api-keys", {"tenant": "default", "role": "read", "expires_at": "2001-01-01T00:00:00Z"}).expect(400)


def test_failed_logins_of_an_address_are_limited():
    with lib.Server() as s:
        s.get(LOCKS).expect(200)
        late = new_key(s)["key"]
        statuses = [s.get(LOCKS, key="sk_default_" + "B" * 43).status for _ in range(10)]
        assert statuses == [401] * 10, statuses
        refused = s.get(LOCKS, key="sk_default_" + "C" * 43).expect(429, "RATE_LIMITED")
        assert 1 <= int(refused.headers["Retry-After"]) <= 6, refused.headers["Retry-After"]
        assert refused.json["error"]["details"]["retry_after_ms"] > 0
        # Whoever shares the address and has a good key is not shut out, known to the server or not.
        s.get(LOCKS).expect(200)
        s.get(LOCKS, key=late).expect(200)
        s.get("/health").expect(200)
        # A malformed one is no way around.
        s.get(LOCKS, key="x").expect(429)


def test_failed_logins_are_counted_per_address():
    with lib.Server(listen="unix") as s:
        for _ in range(10):
            s.get(LOCKS, key="sk_default_" + "B" * 43).expect(401)
        s.get(LOCKS, key="sk_default_" + "B" * 43).expect(429)


def test_a_flood_of_one_wrong_key_does_not_reach_the_data_store():
    with many_failures() as s:
        for _ in range(300):
            s.get(LOCKS, key="sk_default_" + "B" * 43).expect(401)
        lookups = float([line for line in s.get("/metrics").body.decode().splitlines() if line.startswith("interlock_auth_lookups_total")][0].split()[1])
        assert lookups < 60, lookups


def test_last_used_is_noted():
    with lib.Server() as s:
        made = new_key(s)
        with s.new_client(made["key"]) as c:
            c.get(LOCKS).expect(200)
        used = lib.eventually(lambda: [i["used_at"] for i in s.get("/api/v1/admin/api-keys").json["items"] if i["id"] == made["id"]][0])
        assert used.endswith(":00.000Z"), used


# ---- permissions

ROLES = ["read", "write", "operator", "admin"]


def test_every_route_with_every_role():
    """Allowed, or 403 that names what is missing: exactly as the table says."""
    with lib.Server() as s:
        clients = {role: s.new_client(s.key_for("acme", role)) for role in ROLES}
        clients["none"] = s.new_client(s.key_for("acme", "none", permissions=["nothing:at_all"]))
        n = 0
        for method, path, op in routes(s):
            needed = lib.role_of(op)
            if op["operationId"] == "stream_get":
                continue  # its answer does not end; its permission is tested below
            for role, client in clients.items():
                allowed = needed == "any" or (role in ROLES and ROLES.index(role) >= ROLES.index(needed))
                answer = client.ask(method, filled(path), body=example(op))
                n += 1
                if allowed:
                    assert answer.status not in (401, 403), (role, method, path, answer)
                else:
                    answer.expect(403, "FORBIDDEN")
                    details = answer.json["error"]["details"]
                    assert details["role"] == needed, details
                    assert details["permission"] == lib.permission_of(op), details
        assert n > 250, n
        clients["none"].get("/api/v1/stream").expect(403, "FORBIDDEN")
        for client in clients.values():
            client.close()


def test_named_permissions():
    with lib.Server() as s:
        with s.new_client(s.key_for("acme", "none", permissions=["queue:claim", "lock_acquire"])) as c:
            c.post("/api/v1/queues/q/claim", {}).expect(404)
            c.post("/api/v1/locks/acquire", {"key": "a", "holder": "h"}).expect(200)
            c.post("/api/v1/locks/release", {"key": "a", "holder": "h", "fence": 1}).expect(403)
            c.post("/api/v1/queues/q/jobs", {"payload": "x"}).expect(403)
        with s.new_client(s.key_for("acme", "read", permissions=["queue:push", "queue:set"])) as c:
            c.post("/api/v1/queues/q/jobs", {"payload": "x"}).expect(201)
            c.put("/api/v1/queues/q", {}).expect(200)
            c.post("/api/v1/locks/acquire", {"key": "a", "holder": "h"}).expect(403)
        # each op of a batch is held against its own route
        with s.new_client(s.key_for("acme", "write")) as c:
            got = c.post("/api/v1/batch", {"ops": [{"op": "acquire", "key": "b", "holder": "h"},
                                                   {"op": "break", "key": "b", "fence": 1, "reason": "no"}]}).expect(200).json["results"]
            assert [r["status"] for r in got] == ["OK", "FORBIDDEN"], got


def test_prefix():
    with lib.Server() as s:
        admin = s.new_client(s.key_for("acme", "operator"))
        admin.post("/api/v1/locks/acquire", {"key": "b:1", "holder": "h"}).expect(200)
        admin.post("/api/v1/queues/b-q/jobs", {"payload": "secret"}).expect(201)
        job = admin.get("/api/v1/queues/b-q/jobs").json["items"][0]["id"]
        with s.new_client(s.key_for("acme", "operator", prefix="a")) as c:
            c.post("/api/v1/locks/acquire", {"key": "a:1", "holder": "h"}).expect(200)
            c.post("/api/v1/locks/acquire", {"key": "b:2", "holder": "h"}).expect(403, "FORBIDDEN")
            c.get("/api/v1/locks/get?key=b:1").expect(404)
            assert [i["key"] for i in c.get("/api/v1/locks").json["items"]] == ["a:1"]
            assert c.get("/api/v1/locks?prefix=b").status in (200, 404)
            assert b"b:1" not in c.get("/api/v1/locks?prefix=b").body
            c.get("/api/v1/jobs/" + job).expect(404)
            c.post("/api/v1/jobs/" + job + "/cancel", {}).expect(404)  # an id says nothing of the name: not found
            c.post("/api/v1/queues/b-q/claim", {}).expect(403)
            assert c.get("/api/v1/queues").json["items"] == []
        admin.close()


OUTSIDE = "this API key cannot change names outside its prefix"
BEYOND = "a key can only be granted what its creator has (tenant, role, permissions, prefix)"
RESERVED = "the key is reserved for "
# who asks, what; then the refused ops of a batch, or -1: the whole request; what the log has besides the reason; and the reason
REFUSALS = [
    ("reader", "POST", "locks/acquire", {"key": "k", "holder": "h"}, -1, {"permission": "lock:acquire"}, "the API key needs the role 'write' "),
    ("reader", "POST", "batch", {"ops": [{"op": "push", "queue": "q"}, {"op": "get", "key": "k"}, {"op": "sweep"}]}, 2, {"permission": "queue:push"},
     "the API key needs the role 'write' or the permission 'queue:push'"),
    ("narrow", "GET", "samples", None, -1, {"prefix": "a:"}, "this call needs an API key without a prefix"),
    ("narrow", "POST", "pipelines/reload", {}, -1, {"prefix": "a:", "names": "pipeline:"},
     "this call needs an API key without a prefix, or one whose prefix covers 'pipeline:'"),
    ("narrow", "POST", "locks/acquire", {"key": "b:1", "holder": "h"}, -1, {"prefix": "a:"}, OUTSIDE),
    ("narrow", "POST", "batch", {"ops": [{"op": "acquire", "key": "b:1", "holder": "h"}, {"op": "get", "key": "b:1"}]}, 1, {"prefix": "a:"}, OUTSIDE),
    ("narrow", "POST", "queues/b/jobs", {"items": [{"payload": 1}, {"payload": 2}]}, 2, {"prefix": "a:"}, OUTSIDE),
    ("admin", "POST", "idempotency/get", {"key": "idempotency-key:x"}, -1, {}, RESERVED),
    ("admin", "POST", "batch", {"ops": [{"op": "run_start", "key": "pipeline:x"}]}, 1, {}, RESERVED),
    ("boss", "GET", "admin/api-keys?tenant=default", None, -1, {}, "only keys with the role admin can see other tenants"),
    ("boss", "GET", "admin/audit?tenant=default", None, -1, {}, "only keys with the role admin can see other tenants"),
    ("boss", "POST", "admin/tenants", {"id": "new"}, -1, {}, "only keys with the role admin can create tenants"),
    ("boss", "DELETE", "admin/api-keys/{admin}", None, -1, {}, "only keys with the role admin can revoke an admin key"),
    ("boss", "POST", "admin/api-keys", {"tenant": "beta", "role": "operator"}, -1, {}, BEYOND),
    ("narrow", "POST", "admin/api-keys", {"tenant": "beta", "role": "read", "prefix": "b:"}, -1, {}, BEYOND),
    ("mortal", "POST", "admin/api-keys", {"tenant": "beta", "role": "read"}, -1, {}, "field 'expires_at': must not be later than the expiry of the caller's key"),
    ("operator", "POST", "demo/kill-worker", {}, -1, {}, "only keys of the tenant acme can use the demo"),
]


def test_refusals():
    """whatever is refused because of the key is counted once, and logged once with its reason"""
    names = ["admin:" + name for name in ("key_create", "key_list", "key_revoke", "audit", "tenant_create")]
    with tempfile.TemporaryDirectory() as folder, lib.Server(env={"INTERLOCK_DEMO_FOLDER": folder}) as s:
        keys = {"reader": s.key_for("beta", "read"), "operator": s.key_for("beta", "operator"), "admin": s.key_for("beta", "admin"),
                "narrow": s.key_for("beta", "operator", prefix="a:", permissions=names), "boss": s.key_for("beta", "read", permissions=names),
                "mortal": s.post("/api/v1/admin/api-keys", {"tenant": "beta", "role": "admin", "expires_at": "2100-01-01T00:00:00Z"}).expect(201).json["key"]}
        admin = next(k["id"] for k in s.get("/api/v1/admin/api-keys?tenant=beta").json["items"] if k["role"] == "admin")
        clients = {name: s.new_client(key) for name, key in keys.items()}
        told, n = [], 0
        for who, method, path, body, n_ops, fields, reason in REFUSALS:
            answer = clients[who].ask(method, "/api/v1/" + path.format(admin=admin), body=body)
            code = "KEY_RESERVED" if reason == RESERVED else "FORBIDDEN"
            if n_ops < 0:
                messages = [answer.expect(403, code).json["error"]["message"]]
            else:
                results = answer.expect(200).json
                messages = [r["message"] for r in results.get("results", results.get("items")) if r["status"] == code]
                assert len(messages) == n_ops, answer
            assert messages[0].startswith(reason), answer
            n += len(messages)
            counted = re.search(rb"^interlock_auth_forbidden_total (\d+)", s.get("/metrics").body, re.M)
            assert int(counted.group(1)) == n, (path, counted, n)
            told.append((answer.headers["X-Request-Id"], messages, fields))
        for client in clients.values():
            client.close()
        s.stop()  # the log is complete
        lines = [json.loads(line) for line in s.lines if '"auth.forbidden"' in line]
        assert len(lines) == n, lines
        for request_id, messages, fields in told:
            mine = [line for line in lines if line["request_id"] == request_id]
            assert [line["reason"] for line in mine] == messages, (mine, messages)
            assert {f: mine[0][f] for f in ("permission", "prefix", "names") if f in mine[0]} == fields, mine[0]


# ---- the data store is down

def test_without_the_data_store_nobody_is_let_in_for_long():
    """What is known counts for 5 s, then 503; and it heals by itself."""
    with lib.Server(store="sqlite") as s:
        path = s.store[len("sqlite:"):]
        s.get(LOCKS).expect(200)
        with sqlite3.connect(path, timeout=10) as db:
            db.execute("ALTER TABLE il_api_key RENAME TO il_api_key_away")
        began = time.monotonic()
        while True:
            answer = s.get(LOCKS)
            if answer.status != 200:
                break
            assert time.monotonic() - began < 8 * lib.SLOW, "it should have failed closed"
            time.sleep(0.05)
        answer.expect(503, "STORE_UNAVAILABLE")
        assert int(answer.headers["Retry-After"]) >= 1
        assert time.monotonic() - began > 3, "a short outage of the data store must not matter"
        assert b"il_api_key" not in answer.body and b"no such table" not in answer.body
        with sqlite3.connect(path, timeout=10) as db:
            db.execute("ALTER TABLE il_api_key_away RENAME TO il_api_key")
        lib.eventually(lambda: s.get(LOCKS).status == 200, 5, "the healing")
        s.wait_log('"data.down"')
        s.wait_log('"data.up"')


lib.main(globals())
