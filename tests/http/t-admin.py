"""Tenants, API keys and forced releases over HTTP."""
import contextlib
import re

import lib

TENANTS, KEYS = "/api/v1/admin/tenants", "/api/v1/admin/api-keys"


def test_tenants():
    with lib.Server() as s:
        made = s.post(TENANTS, {"id": "acme_1", "name": "Acme", "limits": {"requests_per_second": 100, "locks": 7}}).expect(201).json
        assert made["id"] == "acme_1" and made["name"] == "Acme" and made["limits"]["locks"] == 7 and made["limits"]["jobs"] == 0
        assert made["created_at"].endswith("Z")
        assert s.get(TENANTS + "/acme_1").expect(200).json == made
        s.post(TENANTS, {"id": "acme_1"}).expect(409, "ALREADY_EXISTS")
        changed = s.put(TENANTS + "/acme_1", {"limits": {"jobs": 3}}).expect(200).json
        assert changed["name"] == "Acme" and changed["limits"]["locks"] == 7 and changed["limits"]["jobs"] == 3, changed
        assert s.put(TENANTS + "/acme_1", {"name": "Other", "limits": {"locks": None}}).expect(200).json["limits"]["locks"] == 0
        assert s.get(TENANTS + "/acme_1").json["name"] == "Other"
        assert s.get(TENANTS + "/nobody").expect(404, "NOT_FOUND").json["error"]["message"] == "no such tenant: nobody"
        s.put(TENANTS + "/nobody", {"name": "x"}).expect(404, "NOT_FOUND")


def test_concurrent_changes_of_a_tenant():
    """changes of different limits at the same moment all stay"""
    names = ("locks", "jobs", "waiters", "streams")
    with lib.Server() as s, contextlib.ExitStack() as stack:
        clients = [stack.enter_context(s.new_client()) for _ in names]
        s.post(TENANTS, {"id": "acme", "name": "Acme"}).expect(201)
        for value in range(1, 21):
            def change(i, value=value):
                mine = clients[i].put(TENANTS + "/acme", {"limits": {names[i]: value}}).expect(200).json
                assert mine["limits"][names[i]] == value, mine

            lib.together(len(names), change)
            now = s.get(TENANTS + "/acme").expect(200).json
            assert now["name"] == "Acme" and {now["limits"][name] for name in names} == {value}, now


def test_bad_tenants():
    with lib.Server() as s:
        for body in ({}, {"id": ""}, {"id": "Acme"}, {"id": "a-b"}, {"id": "a b"}, {"id": "a" * 65}, {"id": 1}, {"id": "a", "x": 1},
                     {"id": "a", "limits": {"locks": -1}}, {"id": "a", "limits": {"lock": 1}}, {"id": "a", "limits": 1}, [], None,
                     {"id": "a", "limits": {"runs": 51}}, {"id": "a", "limits": {"jobs": 10**9 + 1}}, {"id": "a", "limits": {"bytes": 10**12 + 1}}):
            s.ask("POST", TENANTS, body=body).expect(400, "BAD_REQUEST")
        message = s.post(TENANTS, {"id": "a", "limits": {"lock": 1}}).json["error"]["message"]
        assert "lock" in message, message
        assert [t["id"] for t in s.get(TENANTS).json["items"]] == ["default"]


def test_pages_of_tenants_and_keys():
    with lib.Server() as s:
        names = sorted(f"t{i:02}" for i in range(23))
        for name in names:
            s.post(TENANTS, {"id": name}).expect(201)
            s.post(KEYS, {"tenant": name, "role": "read"}).expect(201)
        for path, field, more in ((TENANTS, "id", 1), (KEYS, "tenant", 1)):
            seen, cursor = [], ""
            while True:
                page = s.get(f"{path}?limit=10{cursor}").expect(200).json
                seen += [i[field] for i in page["items"]]
                if page["next"] is None:
                    break
                cursor = "&cursor=" + page["next"]
            assert sorted(seen) == sorted(names + ["default"] * more), seen
        only = s.get(KEYS + "?tenant=t07").expect(200).json["items"]
        assert [k["tenant"] for k in only] == ["t07"]
        s.get(KEYS + "?limit=0").expect(400)
        s.get(KEYS + "?limit=1001").expect(400)
        s.get(KEYS + "?nonsense=1").expect(400)


def test_a_key_is_shown_once():
    with lib.Server(store="sqlite") as s:
        s.post(TENANTS, {"id": "acme"}).expect(201)
        made = s.post(KEYS, {"tenant": "acme", "role": "write", "name": "worker", "permissions": ["admin:audit"], "prefix": "a",
                             "expires_at": "2100-01-01T00:00:00Z"}).expect(201).json
        assert re.fullmatch(r"sk_acme_[A-Za-z0-9_-]{43}", made["key"]), made
        secret = made.pop("key")
        listed = [k for k in s.get(KEYS).expect(200).json["items"] if k["id"] == made["id"]][0]
        assert listed == made, (listed, made)
        assert made["permissions"] == ["admin:audit"] and made["prefix"] == "a" and made["expires_at"] == "2100-01-01T00:00:00.000Z"
        assert s.stop() == 0
        import glob
        for path in glob.glob(s.folder + "/*"):
            with open(path, "rb") as file:
                assert secret[-43:].encode() not in file.read(), path


def test_bad_keys():
    with lib.Server() as s:
        for body in ({}, {"role": "read"}, {"tenant": "default"}, {"tenant": "default", "role": "king"},
                     {"tenant": "default", "role": "read", "permissions": [1]}, {"tenant": "default", "permissions": ["a b"]},
                     {"tenant": "default", "permissions": ["x" * 600]}, {"tenant": "default", "permissions": {"a": 1}},
                     {"tenant": "default", "role": "none"}, {"tenant": "default", "role": "read", "prefix": "x" * 300},
                     {"tenant": "default", "role": "read", "expires_at": "yesterday"},
                     {"tenant": "default", "role": "read", "expires_in_ms": 0},
                     {"tenant": "default", "role": "read", "expires_in_ms": 5000, "expires_at": "2100-01-01T00:00:00Z"}):
            s.post(KEYS, body).expect(400, "BAD_REQUEST")
        s.post(KEYS, {"tenant": "nobody", "role": "read"}).expect(404, "NOT_FOUND")
        assert len(s.get(KEYS).json["items"]) == 1
        # permissions as words
        assert s.post(KEYS, {"tenant": "default", "permissions": "a:b c:d"}).expect(201).json["permissions"] == ["a:b", "c:d"]


def test_revoking():
    with lib.Server() as s:
        made = s.post(KEYS, {"tenant": "default", "role": "admin"}).expect(201).json
        first = [k for k in s.get(KEYS).json["items"] if k["id"] != made["id"]][0]["id"]
        s.delete(KEYS + "/" + made["id"]).expect(200)
        s.delete(KEYS + "/" + made["id"]).expect(200)  # repeatable
        assert [k["revoked_at"] is not None for k in s.get(KEYS).json["items"] if k["id"] == made["id"]] == [True]
        for missing in ("00000000-0000-7000-8000-000000000000", "nonsense"):
            unknown = s.delete(KEYS + "/" + missing).expect(404, "NOT_FOUND").json["error"]["message"]
            assert unknown == f"no such API key: '{missing}'", unknown
        # The last admin key is not revoked by accident; one that has expired does not count.
        s.delete(KEYS + "/" + first).expect(409, "LAST_ADMIN_KEY")
        s.get("/api/v1/locks").expect(200)
        s.delete(KEYS + "/" + first + "?force=true").expect(200)
        s.get("/api/v1/locks").expect(401)


def test_nobody_gives_away_more_than_he_has():
    """The named permission to make keys, or an admin key with a prefix, does not make a key that may do everything."""
    with lib.Server() as s:
        maker = s.new_client(s.key_for("acme", "write", permissions=["admin:key_create", "queue:pause"], prefix="a:"))
        s.key_for("other")
        good = {"tenant": "acme", "role": "write", "permissions": ["queue:pause"], "prefix": "a:b"}
        maker.post(KEYS, good).expect(201)
        for more in ({"role": "operator"}, {"role": "admin"}, {"tenant": "other"}, {"tenant": "nobody"}, {"prefix": "b:"}, {"prefix": ""},
                     {"prefix": None}, {"permissions": ["queue:purge"]}, {"permissions": ["queue:pause", "queue"]}):
            maker.post(KEYS, {**good, **more}).expect(403, "FORBIDDEN")
        maker.close()
        with s.new_client(s.key_for("acme", "admin", prefix="a:")) as c:
            c.post(KEYS, {"tenant": "other", "role": "admin", "prefix": "a:b"}).expect(201)
            c.post(KEYS, {"tenant": "other", "role": "admin"}).expect(403, "FORBIDDEN")


def test_named_permissions_cover_their_own_tenant():
    """admin:* permissions reach the key's own tenant, and no other; the role admin reaches all"""
    names = ["tenant_create", "tenant_list", "tenant_get", "tenant_set", "key_create", "key_list",
             "key_revoke", "audit", "lock_break"]
    with lib.Server() as s:
        named = s.key_for("acme", "read", permissions=["admin:" + name for name in names])
        boss = s.new_client(named)
        s.key_for("other", "write")
        of = {k["tenant"] + " " + k["role"]: k["id"] for k in s.get(KEYS).json["items"]}
        # its own
        assert [t["id"] for t in boss.get(TENANTS).expect(200).json["items"]] == ["acme"]
        boss.get(TENANTS + "/acme").expect(200)
        boss.put(TENANTS + "/acme", {"name": "Acme"}).expect(200)
        boss.post(TENANTS, {"id": "acme"}).expect(409, "ALREADY_EXISTS")
        assert {k["tenant"] for k in boss.get(KEYS).expect(200).json["items"]} == {"acme"}
        made = boss.post(KEYS, {"tenant": "acme", "role": "read"}).expect(201).json
        boss.delete(KEYS + "/" + made["id"]).expect(200)
        # others: as if they did not exist, with what an admin is told of those that do not
        unknown = s.get(TENANTS + "/nobody").expect(404).body.decode()
        for tenant in ("other", "default"):
            assert boss.get(TENANTS + "/" + tenant).expect(404).body.decode() == unknown.replace("nobody", tenant)
            got = boss.put(TENANTS + "/" + tenant, {"limits": {"locks": 1}}).expect(404)
            assert got.body.decode() == unknown.replace("nobody", tenant), got
            boss.get(KEYS + "?tenant=" + tenant).expect(403, "FORBIDDEN")
            boss.get("/api/v1/admin/audit?tenant=" + tenant).expect(403, "FORBIDDEN")
        boss.post(TENANTS, {"id": "new"}).expect(403, "FORBIDDEN")
        for key in ("other write", "default admin"):
            hidden = boss.delete(KEYS + "/" + of[key] + "?force=true").expect(404, "NOT_FOUND").json["error"]["message"]
            assert hidden == f"no such API key: '{of[key]}'", hidden
        assert s.get(TENANTS + "/other").json["limits"]["locks"] == 0
        # an admin key of its own tenant is the whole server's
        admin = s.post(KEYS, {"tenant": "acme", "role": "admin"}).expect(201).json
        boss.delete(KEYS + "/" + admin["id"]).expect(403, "FORBIDDEN")
        s.get(KEYS, key=admin["key"]).expect(200)
        boss.close()


def test_no_key_outlives_its_maker():
    with lib.Server() as s:
        for role, more in (("admin", {}), ("read", {"permissions": ["admin:key_create"]})):
            end = "2100-01-01T00:00:00Z"
            maker = {"tenant": "default", "role": role, "expires_at": end, **more}
            maker = s.post(KEYS, maker).expect(201).json["key"]
            new = {"tenant": "default", "role": "read"}
            for late in ({}, {"expires_at": None}, {"expires_at": "2100-01-01T00:00:00.001Z"},
                         {"expires_in_ms": 100 * 365 * 86400000}):
                s.post(KEYS, {**new, **late}, key=maker).expect(403, "FORBIDDEN")
            for early in ({"expires_at": end}, {"expires_in_ms": 60000}):
                s.post(KEYS, {**new, **early}, key=maker).expect(201)


def test_force_release():
    """DELETE /admin/locks/{tenant}/{pipeline}: cancels the run; the key is open once its processes are gone, or at once with `now`."""
    with lib.Server(store="sqlite") as s:
        c = s.new_client(s.key_for("acme", "operator"))
        path = "/api/v1/admin/locks/acme/etl"
        c.ask("DELETE", path, body={"reason": "x"}).expect(404)
        with s.held_run("pipeline:etl", "acme") as run:
            c.ask("DELETE", path).expect(400)
            c.ask("DELETE", path, body={"reason": ""}).expect(400)
            got = c.ask("DELETE", path, body={"reason": "it hangs"}).expect(200).json
            assert got["broken"] and got["closing"] and got["run"] == run["id"] and got["fence"] == run["fence"], got
            shown = c.get("/api/v1/runs/" + run["id"]).json
            assert shown["cancelled"] or shown["status"] == "CANCELLED", shown
        lib.eventually(lambda: c.post("/api/v1/locks/acquire", {"key": "pipeline:etl", "holder": "next"}).status == 200, 5, "the key")
        # at once
        c.ask("DELETE", path, body={"reason": "now", "now": True}).expect(200)
        c.post("/api/v1/locks/acquire", {"key": "pipeline:etl", "holder": "third"}).expect(200)
        reasons = [a["reason"] for a in s.get("/api/v1/admin/audit?action=lock.break").json["items"]]
        assert reasons[:2] == ["now", "it hangs"], reasons
        c.close()


def test_force_release_of_another_tenant_is_for_admins():
    with lib.Server() as s:
        a, b = s.new_client(s.key_for("alpha", "operator")), s.new_client(s.key_for("beta", "operator"))
        a.post("/api/v1/locks/acquire", {"key": "pipeline:etl", "holder": "h"}).expect(200)
        path = "/api/v1/admin/locks/alpha/etl"
        refused = b.ask("DELETE", path, body={"reason": "x", "now": True}).expect(404)
        nothing = b.ask("DELETE", "/api/v1/admin/locks/nobody/etl", body={"reason": "x", "now": True}).expect(404)
        mine = b.ask("DELETE", "/api/v1/admin/locks/beta/etl", body={"reason": "x", "now": True}).expect(404)
        assert refused.body == nothing.body == mine.body
        assert len(a.get("/api/v1/locks").json["items"]) == 1
        s.ask("DELETE", path, body={"reason": "an admin may", "now": True}).expect(200)
        assert a.get("/api/v1/locks").json["items"] == []
        a.close()
        b.close()


def test_a_tenant_is_made_once_with_an_idempotency_key():
    with lib.Server() as s:
        header = {"Idempotency-Key": "t-1"}
        one = s.post(TENANTS, {"id": "acme"}, headers=header).expect(201)
        two = s.post(TENANTS, {"id": "acme"}, headers=header).expect(201)
        assert one.body == two.body and two.headers.get("Idempotent-Replayed") == "true"


lib.main(globals())
