"""The admin page: its files, and signing in."""
import contextlib
import gzip
import hashlib
import hmac
import http.client
import os
import re
import secrets
import sqlite3
import time
import uuid

import lib
import schema

PEPPER = "a pepper for the tests of sessions"
PAGE = {"X-Interlock-Page": "1"}
CSP = ("default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; font-src 'self'; "
       "form-action 'self'; base-uri 'none'; frame-ancestors 'none'")


@contextlib.contextmanager
def peppered(**more):
    """A server whose pepper is known, so that the test can sign as it does."""
    with lib.Server(start=False, **more) as s:
        path = s.folder + "/pepper"
        with open(path, "w", encoding="ascii", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
            file.write(PEPPER)
        s.env["INTERLOCK_PEPPER_FILE"] = path
        s.start()
        yield s


def mac(key, text):
    return hmac.new(key, text.encode(), hashlib.sha256)


def signed(key_id, ends_ms, pepper=PEPPER):
    key = mac(pepper.encode(), "interlock: the key that signs sessions").digest()
    text = f"{key_id}.{ends_ms}"
    return f"{text}.{mac(key, text).hexdigest()}"


def now_ms(plus=0):
    return int(time.time() * 1000) + plus


def page(server, method, path, cookie=None, body=None, headers=PAGE, client=None, **more):
    """A call of the page: `cookie` is the value of ours, or a whole header with '='."""
    sent = dict(headers)
    if cookie is not None:
        sent["Cookie"] = cookie if "=" in cookie else "interlock=" + cookie
    return (client or server).ask(method, path, body=body, key=None, headers=sent, **more)


def cookie_of(answer, name="interlock"):
    found = re.fullmatch(rf"{name}=([^;]*)(;.*)", answer.headers["Set-Cookie"])
    assert found, answer.headers["Set-Cookie"]
    return found.group(1), found.group(2)


def sign_in(server, key=None, **more):
    answer = page(server, "POST", "/ui/session", body={"key": key or server.key}, **more).expect(200)
    return cookie_of(answer)[0], answer.json


def session(server, cookie=None, **more):
    return page(server, "GET", "/ui/session", cookie, **more)


def call(server, path, cookie, method="GET", **more):
    return page(server, method, "/ui/api" + path, cookie, **more)


def new_key(server, role="read", **more):
    return server.post("/api/v1/admin/api-keys", {"tenant": "default", "role": role, **more}).expect(201).json


# ---- files ------------------------------------------------------------------------------------------


def get_file(server, path, method="GET", **headers):
    return server.ask(method, path, key=None, headers={name.replace("_", "-"): value for name, value in headers.items()})


def test_redirects():
    """/ui goes to /ui/, and so does / for who prefers HTML"""
    with lib.Server() as s:
        answer = get_file(s, "/ui").expect(301)
        assert (answer.headers["Location"], answer.body) == ("/ui/", b"")
        browsers = ["text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", "text/html", "application/json;q=0.5, text/html;q=0.6",
                    "TEXT/HTML;level=1;q=0.2"]
        for accept in browsers:
            answer = get_file(s, "/", Accept=accept).expect(302)
            assert (answer.headers["Location"], answer.headers["Vary"]) == ("/ui/", "Accept"), accept
        others = ["*/*", "application/json", "application/json, text/html", "text/html;q=0", "text/*", "text/html;q=0.5,application/json;q=0.6",
                  "xtext/html", "text/htmlx", ";q=1", ",,,", "text/html;q=x"]
        for accept in others:
            assert get_file(s, "/", Accept=accept).expect(200).json["name"] == "interlock", accept
        assert get_file(s, "/").expect(200).headers["Vary"] == "Accept"


def test_files():
    """the page, with its policy and without caches that are not asked"""
    with lib.Server() as s:
        answer = get_file(s, "/ui/").expect(200)
        assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
        for name, value in {"Content-Security-Policy": CSP, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
                            "Cross-Origin-Opener-Policy": "same-origin", "Cache-Control": "no-cache", "Vary": "Accept-Encoding"}.items():
            assert answer.headers.get_all(name) == [value], (name, answer.headers.items())
        assert answer.headers["Access-Control-Allow-Origin"] is None
        html = answer.body.decode()
        assert "<title>Interlock" in html
        # what the policy refuses: inline script and style, handlers, other sites
        assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\bstyle=|\bon\w+=|https?://", html), html
        for path in re.findall(r'(?:src|href)="([^"#]+)"', html):
            if path.startswith("/openapi"):
                continue
            found = get_file(s, "/ui/" + path.removeprefix("/ui/").removeprefix("./")).expect(200)
            assert found.headers["Content-Security-Policy"] == CSP, path
        head = get_file(s, "/ui/", method="HEAD").expect(200)
        assert (head.body, head.headers["Content-Length"]) == (b"", str(len(answer.body)))


def test_unknown_files():
    with lib.Server() as s:
        for path in ("/ui/nothing", "/ui/app.js.map", "/ui/..%2fsession", "/ui/session/", "/ui//", "/ui/a/b", "/uix", "/ui/%00", "/ui/api", "/ui/api/"):
            get_file(s, path).expect(404, "NOT_FOUND")
        answer = s.ask("POST", "/ui/", key=None).expect(405)
        assert answer.headers["Allow"] == "GET, HEAD"


def test_compressed():
    """gzip for who accepts it; each form has its own ETag"""
    with lib.Server() as s:
        plain = get_file(s, "/ui/").expect(200)
        for accept in ("gzip", "deflate, gzip;q=1.0, *;q=0.5", "br, GZIP", "gzip;q=0.001"):
            packed = get_file(s, "/ui/", Accept_Encoding=accept).expect(200)
            assert packed.headers["Content-Encoding"] == "gzip" and gzip.decompress(packed.body) == plain.body, accept
            assert packed.headers["ETag"] != plain.headers["ETag"]
        for accept in ("gzip;q=0", "identity", "xgzip", "*", "gzip; q=0.0"):
            again = get_file(s, "/ui/", Accept_Encoding=accept).expect(200)
            assert again.body == plain.body and again.headers["Content-Encoding"] is None, accept


def test_small():
    """script and style sheet, compressed, are at most 150 KB"""
    with lib.Server() as s:
        html = get_file(s, "/ui/").expect(200).body.decode()
        names = [name for name in re.findall(r'(?:src|href)="([^"#]+)"', html) if name.endswith((".js", ".css"))]
        packed = [get_file(s, "/ui/" + name, Accept_Encoding="gzip").expect(200) for name in names]
        assert all(p.headers["Content-Encoding"] == "gzip" for p in packed)
        assert names or "-Dui=disabled" in html
        assert sum(len(p.body) for p in packed) <= 150_000, [len(p.body) for p in packed]


def test_not_modified():
    with lib.Server() as s:
        etag = get_file(s, "/ui/").headers["ETag"]
        for known in (etag, f'"x", {etag}', "W/" + etag, "*"):
            answer = get_file(s, "/ui/", If_None_Match=known).expect(304)
            assert answer.body == b"" and answer.headers["ETag"] == etag
            assert answer.headers["Content-Security-Policy"] == CSP
        for known in ('"x"', etag.strip('"'), etag[:-2] + '"'):
            get_file(s, "/ui/", If_None_Match=known).expect(200)
        packed = get_file(s, "/ui/", Accept_Encoding="gzip").headers["ETag"]
        get_file(s, "/ui/", If_None_Match=etag, Accept_Encoding="gzip").expect(200)
        get_file(s, "/ui/", If_None_Match=packed, Accept_Encoding="gzip").expect(304)


# ---- signing in -------------------------------------------------------------------------------------


def test_sign_in_and_out():
    with lib.Server() as s:
        made = new_key(s, "operator", permissions=["admin:usage"], prefix="a:")
        cookie, said = sign_in(s, made["key"])
        ends = said.pop("expires_at")
        assert said == {"tenant": "default", "key_id": made["id"], "role": "operator", "prefix": "a:", "demo": False,
                        "permissions": ["read", "write", "operator", "admin:usage"], "version": said["version"]}, said
        left_s = float(cookie.split(".")[1]) / 1000 - time.time()
        assert 12 * 3600 - 60 < left_s <= 12 * 3600, left_s
        assert session(s, cookie).expect(200).json == {**said, "expires_at": ends}
        assert page(s, "HEAD", "/ui/session", cookie).expect(200).body == b""
        call(s, "/locks", cookie).expect(200)
        call(s, "/locks/acquire", cookie, "POST", body={"key": "a:1", "holder": "me"}).expect(200)
        assert call(s, "/locks/get?key=a%3A1", cookie).expect(200).json["leases"][0]["holder"] == "me"
        answer = page(s, "DELETE", "/ui/session", cookie).expect(200)
        value, more = cookie_of(answer)
        assert (answer.json, value) == ({}, "") and "Max-Age=0;" in more, more
        session(s).expect(401, "UNAUTHORIZED")
        page(s, "DELETE", "/ui/session").expect(200)
        line = s.wait_log("ui.signed_in")
        assert made["id"] in line and "127.0.0.1" in line, line


def test_as_described():
    """the answers fit /openapi.json"""
    with lib.Server() as s:
        doc = schema.Document(s.get("/openapi.json", key=None).json)
        ops = {op["operationId"]: (method, op) for method, path, op in doc.operations() if path.startswith("/ui/")}
        assert sorted(ops) == ["ui_session_create", "ui_session_get", "ui_session_remove"]
        cookie = None
        for name, body, status in (("get", None, 401), ("create", {"key": s.key}, 200), ("create", {"link": "x" * 43}, 401), ("create", {}, 400),
                                   ("get", None, 200), ("remove", None, 200)):
            method, op = ops["ui_session_" + name]
            assert {"$ref": "#/components/parameters/Page"} in op["parameters"] and op["security"] == []
            answer = page(s, method, "/ui/session", cookie, body=body).expect(status)
            doc.check_answer(op, answer)
            if answer.headers["Set-Cookie"]:
                cookie, _ = cookie_of(answer)


def test_the_cookie():
    """out of reach of scripts and other sites; __Host- and Secure behind a TLS proxy"""
    with lib.Server() as s:
        answer = page(s, "POST", "/ui/session", body={"key": s.key}).expect(200)
        value, more = cookie_of(answer)
        assert more == "; Path=/ui; Max-Age=43200; HttpOnly; SameSite=Strict", more
        assert answer.headers["Cache-Control"] == "no-store" and s.key not in value
    with lib.Server(args=["--tls-proxy"]) as s:
        answer = page(s, "POST", "/ui/session", body={"key": s.key}).expect(200)
        value, more = cookie_of(answer, "__Host-interlock")
        assert more == "; Path=/; Max-Age=43200; HttpOnly; Secure; SameSite=Strict", more
        session(s, "__Host-interlock=" + value).expect(200)
        session(s, "interlock=" + value).expect(401)
        _, more = cookie_of(page(s, "DELETE", "/ui/session").expect(200), "__Host-interlock")
        assert "Path=/;" in more and "Secure" in more


def test_wrong_keys():
    """as with API keys: 401, and after ten of them the address has to wait"""
    with lib.Server() as s:
        for body in ({}, {"key": s.key, "link": "x" * 43}, {"key": 7}, {"key": ""}, {"keys": s.key}, []):
            page(s, "POST", "/ui/session", body=body).expect(400)
        page(s, "POST", "/ui/session", raw=b"{").expect(400)
        page(s, "POST", "/ui/session", raw=b"key=" + s.key.encode(), headers={**PAGE, "Content-Type": "application/x-www-form-urlencoded"}).expect(415)
        for wrong in ("x", s.key[:-1], "sk_default_" + "A" * 43):
            answer = page(s, "POST", "/ui/session", body={"key": wrong}).expect(401, "UNAUTHORIZED")
            assert answer.headers["Set-Cookie"] is None
        for _ in range(7):
            page(s, "POST", "/ui/session", body={"link": "x" * 43}).expect(401, "UNAUTHORIZED")
        answer = page(s, "POST", "/ui/session", body={"key": "sk_default_" + "B" * 43}).expect(429, "RATE_LIMITED")
        assert int(answer.headers["Retry-After"]) > 0
        page(s, "POST", "/ui/session", body={"link": "x" * 43}).expect(429, "RATE_LIMITED")
        sign_in(s)  # who has a key is let in all the same
        assert len(page(s, "POST", "/ui/session", raw=b'{"key":"' + b"x" * 70000 + b'"}').expect(413).body) < 1000


def test_the_header():
    """a request that another site can cause is refused, whatever cookie it brings"""
    with lib.Server() as s:
        cookie, _ = sign_in(s)
        for headers in ({}, {"X-Interlock-Page": "0"}, {"X-Interlock-Page": ""}, {"X-Interlock-Page": "1, 1"}):
            session(s, cookie, headers=headers).expect(403, "PAGE_HEADER_MISSING")
            page(s, "POST", "/ui/session", body={"key": s.key}, headers=headers).expect(403, "PAGE_HEADER_MISSING")
            page(s, "DELETE", "/ui/session", cookie, headers=headers).expect(403, "PAGE_HEADER_MISSING")
            call(s, "/locks", cookie, headers=headers).expect(403, "PAGE_HEADER_MISSING")
            call(s, "/queues/q/jobs", cookie, "POST", body={"payload": "x"}, headers=headers).expect(403, "PAGE_HEADER_MISSING")
        # and no other site gets permission to send it
        headers = {"Origin": "https://example.org", "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "x-interlock-page"}
        for path in ("/ui/session", "/ui/api/locks", "/api/v1/locks"):
            answer = s.ask("OPTIONS", path, key=None, headers=headers).expect(405)
            assert not [name for name in answer.headers if name.lower().startswith("access-control")]


def test_keys_and_cookies_are_apart():
    """/ui/api takes no API key, /api/v1 no cookie"""
    with lib.Server() as s:
        cookie, _ = sign_in(s)
        for headers in ({"X-API-Key": s.key}, {"Authorization": "Bearer " + s.key}):
            call(s, "/locks", None, headers={**PAGE, **headers}).expect(401, "UNAUTHORIZED")
        read, _ = sign_in(s, new_key(s)["key"])
        call(s, "/crons/x", read, "DELETE", headers={**PAGE, "X-API-Key": s.key}).expect(403, "FORBIDDEN")
        s.get("/api/v1/locks", key=None, headers={**PAGE, "Cookie": "interlock=" + cookie}).expect(401)
        s.get("/locks", key=None, headers={**PAGE, "Cookie": "interlock=" + cookie}).expect(404)
        s.get("/admin/tenants", key=None, headers={**PAGE, "Cookie": "interlock=" + cookie}).expect(401)
        # open routes exist once only; with the bare ones, only below /ui/api
        for path in ("/health", "/ready", "/metrics", "/openapi.json", "/session"):
            call(s, path, cookie).expect(404)
        call(s, "/admin/tenants", cookie).expect(200)


def other_texts(cookie):
    """Changes of a cookie: one character of each part, parts left out, doubled, moved."""
    key_id, ends, signature = cookie.split(".")
    yield from ("", ".", "..", "x", key_id, f"{key_id}.{ends}", f"{key_id}.{ends}.", f".{ends}.{signature}", f"{key_id}..{signature}", cookie + ".",
                cookie + "0", cookie[:-1], "." + cookie, f"{key_id}.{ends}.{signature.upper()}", f"{key_id}.0{ends}.{signature}", f'"{cookie}"',
                f"{key_id}.+{ends}.{signature}", f"{key_id}.-{ends}.{signature}", f"{key_id}.{ends}.{'0' * 64}", f"{key_id}.{'9' * 400}.{signature}",
                f"{key_id.upper()}.{ends}.{signature}", cookie.replace(".", "%2e"), cookie.replace(".", ":"))
    for part, i in ((0, 3), (0, 35), (1, 0), (1, 12), (2, 0), (2, 63)):
        parts = [key_id, ends, signature]
        parts[part] = parts[part][:i] + ("1" if parts[part][i] != "1" else "2") + parts[part][i + 1:]
        yield ".".join(parts)


def test_tampered_cookies():
    with peppered() as s:
        cookie, _ = sign_in(s)
        other, _ = sign_in(s, new_key(s)["key"])
        key_id, ends, signature = cookie.split(".")
        assert signed(key_id, ends) == cookie
        for wrong in other_texts(cookie):
            session(s, "interlock=" + wrong).expect(401, "UNAUTHORIZED")
        other_id, _, other_signature = other.split(".")
        session(s, f"{other_id}.{ends}.{signature}").expect(401)
        session(s, f"{key_id}.{ends}.{other_signature}").expect(401)
        session(s, signed(key_id, ends, pepper="another pepper of good length")).expect(401)
        session(s, signed(str(uuid.uuid4()), ends)).expect(401)  # ours, but of no key
        session(s, signed("' OR 1=1 -- aaaaaaaaaaaaaaaaaaaaaaaaa", ends)).expect(401)
        session(s, cookie).expect(200)
        # none of it counts as a failed login
        page(s, "POST", "/ui/session", body={"key": "x"}).expect(401)


def test_several_cookies():
    """others beside ours do no harm; which of two is ours nobody can tell"""
    with lib.Server() as s:
        cookie, _ = sign_in(s)
        mine = "interlock=" + cookie
        for header in (f"a=b; {mine}", f"{mine}; a=b", f"{mine};a=b", f"  {mine}  ", f"; ;{mine};;", f"xinterlock=1; {mine}; interlockx=2",
                       f"a; {mine}", f"Interlock=x; {mine}", f"a=\"x; {mine}"):
            session(s, header).expect(200)
        for header in (f"{mine}; {mine}", f"interlock=; {mine}", f"{mine}; interlock=x", f"a={mine}", f"__Host-{mine}", f"interlock = {cookie}",
                       f"interlock={cookie} x", "interlock", "=", ";"):
            session(s, header + ";" if "=" not in header else header).expect(401, "UNAUTHORIZED")
        with s.socket() as sock:
            sock.sendall(f"GET /ui/session HTTP/1.1\r\nHost: x\r\nX-Interlock-Page: 1\r\nCookie: {mine}\r\nCookie: {mine}\r\n\r\n".encode())
            assert lib.read_answer(sock)[0] == 400
        with s.socket() as sock:
            sock.sendall(f"GET /ui/session HTTP/1.1\r\nHost: x\r\nX-Interlock-Page: 1\r\nX-Interlock-Page: 1\r\nCookie: {mine}\r\n\r\n".encode())
            assert lib.read_answer(sock)[0] == 400


def test_large_cookies():
    """a large head of another application's cookies works as long as any other head of that size"""
    with lib.Server() as s:
        cookie, _ = sign_in(s)
        session(s, f"a={'x' * 3000}; interlock={cookie}").expect(200)
        session(s, "interlock=" + "x" * 3000).expect(401)

        def status(header):
            try:
                with s.new_client() as c:
                    return session(s, header, client=c).status
            except http.client.RemoteDisconnected:
                return 431  # refused, and not even that has room
        # No size is accepted for which the answer has no room left.
        of_one = [status(f"a={'x' * n}; interlock={cookie}") for n in (*range(3000, 7000, 32), *range(7000, 24000, 500))]
        assert set(of_one) == {200, 431} and of_one == sorted(of_one), of_one
        of_many = [status("; ".join(f"c{i}=1" for i in range(n))) for n in range(20, 260)]
        assert set(of_many) == {401, 431} and of_many == sorted(of_many), of_many
        session(s, cookie).expect(200)


# ---- the end of a session ---------------------------------------------------------------------------


def test_expired_session():
    with peppered() as s:
        made = new_key(s)
        call(s, "/locks", signed(made["id"], now_ms(60000))).expect(200)
        answer = call(s, "/locks", signed(made["id"], now_ms(-1))).expect(401, "UNAUTHORIZED")
        assert "expired" in answer.json["error"]["message"]
        soon = signed(made["id"], now_ms(1500))
        call(s, "/locks", soon).expect(200)
        lib.eventually(lambda: call(s, "/locks", soon).status == 401, 5, "the end of the session")
        session(s, soon).expect(401)


def test_a_session_ends_with_its_key():
    """one that expires sooner than the session would"""
    with lib.Server() as s:
        made = new_key(s, expires_in_ms=2000)
        answer = page(s, "POST", "/ui/session", body={"key": made["key"]}).expect(200)
        cookie, more = cookie_of(answer)
        assert answer.json["expires_at"] == made["expires_at"]
        assert 0 < int(re.search(r"Max-Age=(\d+)", more).group(1)) <= 2
        lib.eventually(lambda: session(s, cookie).status == 401, 6, "the end of the session")


def test_revoked_here():
    with lib.Server() as s:
        made = new_key(s)
        cookie, _ = sign_in(s, made["key"])
        call(s, "/locks", cookie).expect(200)
        s.delete("/api/v1/admin/api-keys/" + made["id"]).expect(200)
        answer = call(s, "/locks", cookie).expect(401, "UNAUTHORIZED")
        assert "revoked" in answer.json["error"]["message"]
        session(s, cookie).expect(401)
        page(s, "POST", "/ui/session", body={"key": made["key"]}).expect(401)
        for _ in range(30):  # the page asks again and again; that is no guessing
            call(s, "/locks", cookie).expect(401)
        page(s, "POST", "/ui/session", body={"key": "x"}).expect(401)


def test_revoked_elsewhere():
    """within a second, as an API key; a session is good for all servers of a store, and after a restart"""
    with lib.Server(store="sqlite") as a, lib.Server(store=a.store, key=a.key) as b:
        made = new_key(a)
        cookie, _ = sign_in(a, made["key"])
        call(b, "/locks", cookie).expect(200)
        a.stop()
        a.start()
        call(a, "/locks", cookie).expect(200)
        a.delete("/api/v1/admin/api-keys/" + made["id"]).expect(200)
        began = time.monotonic()
        asked = began
        while call(b, "/locks", cookie).status == 200:
            assert asked - began < 1.0, "a session outlives its key"
            asked = time.monotonic()
        # with permissions it is the same: they are those of the key, as it is now
        made = new_key(a, "operator")
        cookie, _ = sign_in(a, made["key"])
        call(b, "/crons/x", cookie, "DELETE").expect(404)
        with contextlib.closing(sqlite3.connect(a.store.removeprefix("sqlite:"), timeout=20)) as db, db:
            db.execute("UPDATE il_api_key SET role = 'read' WHERE id = ?", (made["id"],))
        lib.eventually(lambda: call(b, "/crons/x", cookie, "DELETE").status == 403, 3, "the change of its role")
        assert session(b, cookie).expect(200).json["permissions"] == ["read"]


# ---- what a session may do --------------------------------------------------------------------------


def test_read_only():
    """permissions, prefixes and tenants are those of the key"""
    with lib.Server() as s:
        cookie, said = sign_in(s, new_key(s)["key"])
        assert said["permissions"] == ["read"]
        call(s, "/overview", cookie).expect(200)
        for method, path, body in (("POST", "/locks/acquire", {"key": "k", "holder": "h"}), ("POST", "/locks/break", {"key": "k", "reason": "r"}),
                                   ("PUT", "/queues/q", {}), ("DELETE", "/crons/c", None), ("GET", "/admin/tenants", None), ("GET", "/admin/audit", None)):
            call(s, path, cookie, method, body=body).expect(403, "FORBIDDEN")
        acme, said = sign_in(s, s.key_for("acme", "admin", permissions=[]))
        assert (said["tenant"], said["permissions"]) == ("acme", ["read", "write", "operator", "admin"])
        call(s, "/locks/acquire", acme, "POST", body={"key": "theirs", "holder": "h"}).expect(200)
        call(s, "/locks/get?key=theirs", cookie).expect(404)
        narrow, said = sign_in(s, new_key(s, "write", prefix="a:")["key"])
        assert said["prefix"] == "a:"
        call(s, "/locks/acquire", narrow, "POST", body={"key": "b:1", "holder": "h"}).expect(403)
        none, said = sign_in(s, new_key(s, "none", permissions=["queue:claim", "lock:list"])["key"])
        assert said["permissions"] == ["queue:claim", "lock:list"]
        call(s, "/locks", none).expect(200)
        call(s, "/overview", none).expect(403, "FORBIDDEN")


def test_acts_are_those_of_the_key():
    with lib.Server() as s:
        cookie, said = sign_in(s)
        call(s, "/locks/acquire", cookie, "POST", body={"key": "k", "holder": "h"}).expect(200)
        call(s, "/locks/break", cookie, "POST", body={"key": "k", "reason": "stuck"}).expect(200)
        (act, *_) = call(s, "/admin/audit?action=lock.break", cookie).expect(200).json["items"]
        assert (act["who"], act["what"], act["reason"]) == (said["key_id"], "k", "stuck"), act
        (key,) = [k for k in call(s, "/admin/api-keys", cookie).expect(200).json["items"] if k["id"] == said["key_id"]]
        assert key["used_at"], key


def test_the_rate_of_the_tenant():
    with lib.Server() as s:
        key = s.key_for("acme", "read")
        s.put("/api/v1/admin/tenants/acme", {"limits": {"requests_per_second": 1, "burst": 5}}).expect(200)
        cookie, _ = sign_in(s, key)
        lib.eventually(lambda: call(s, "/locks", cookie).status == 429, 10, "the end of the burst", pause=0)


def stream(server, cookie, path="/ui/api/stream"):
    sock = server.socket()
    sock.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\nX-Interlock-Page: 1\r\nCookie: interlock={cookie}\r\n\r\n".encode())
    return sock


def until(sock, wanted):
    data = b""
    sock.settimeout(10 * lib.SLOW)
    while wanted not in data:
        more = sock.recv(4096)
        assert more, data
        data += more


def test_stream():
    with lib.Server() as s:
        cookie, _ = sign_in(s)
        with stream(s, cookie) as sock:
            until(sock, b"200 OK")
            s.post("/api/v1/locks/acquire", {"key": "watched", "holder": "h"}).expect(200)
            until(sock, b'"name":"watched"')
        with stream(s, cookie, "/api/v1/stream") as sock:
            until(sock, b"401 Unauthorized")


def ends(sock, seconds):
    began = time.monotonic()
    sock.settimeout(3 * seconds * lib.SLOW)
    while sock.recv(4096):
        pass
    assert time.monotonic() - began < seconds * lib.SLOW


def test_stream_ends_with_the_session():
    with peppered() as s:
        made = new_key(s)
        with stream(s, signed(made["id"], now_ms(2000))) as sock:
            until(sock, b"200 OK")
            ends(sock, 5)
        cookie, _ = sign_in(s, made["key"])
        with stream(s, cookie) as sock:
            until(sock, b"200 OK")
            s.delete("/api/v1/admin/api-keys/" + made["id"]).expect(200)
            ends(sock, 4)


# ---- one-time links ---------------------------------------------------------------------------------


@contextlib.contextmanager
def linked(role="admin", token=None):
    """A server that was started with a link for one of its keys, and its token."""
    token = token or secrets.token_urlsafe(32)
    with lib.Server(store="sqlite") as s:
        made = new_key(s, role)
        s.stop()
        s.env["INTERLOCK_LINK"] = f"{made['id']} {token}"
        s.start()
        yield s, made, token


def test_a_link_signs_in_once():
    with linked() as (s, made, token):
        page(s, "POST", "/ui/session", body={"link": token}, headers={}).expect(403, "PAGE_HEADER_MISSING")
        page(s, "POST", "/ui/session", body={"link": token[:-1]}).expect(401)
        page(s, "POST", "/ui/session", body={"key": token}).expect(401)
        answer = page(s, "POST", "/ui/session", body={"link": token}).expect(200)
        assert answer.json["key_id"] == made["id"]
        call(s, "/locks", cookie_of(answer)[0]).expect(200)
        answer = page(s, "POST", "/ui/session", body={"link": token}).expect(401, "UNAUTHORIZED")
        assert "link" in answer.json["error"]["message"]
        assert token not in s.log + "".join(s.out) and cookie_of(session_again(s, made))[0] not in s.log


def session_again(server, made):
    return page(server, "POST", "/ui/session", body={"key": made["key"]}).expect(200)


def test_a_refused_link_is_not_used_up():
    """a limit of the tenant refuses it; later it signs in"""
    with linked() as (s, _, token):
        s.put("/api/v1/admin/tenants/default", {"limits": {"requests_per_second": 1, "burst": 2}}).expect(200)

        def use():
            return page(s, "POST", "/ui/session", body={"link": token}).status
        lib.eventually(lambda: s.get("/api/v1/status").status == 429, 10, "the limit")
        assert use() == 429
        lib.eventually(lambda: use() == 200, 20, "the link signs in")
        assert use() == 401


def test_two_tabs():
    """a tab does nothing in the session of another one, which has replaced the cookie"""
    with lib.Server() as s:
        cookie, answer = sign_in(s)
        mine = {**PAGE, "X-Interlock-Session": answer["key_id"]}
        page(s, "GET", "/ui/api/locks", cookie, headers=mine).expect(200)
        other = page(s, "POST", "/ui/session", body={"key": new_key(s, "admin")["key"]}).expect(200)
        page(s, "GET", "/ui/api/locks", cookie_of(other)[0], headers=mine).expect(401, "UNAUTHORIZED")
        page(s, "GET", "/ui/api/locks", cookie_of(other)[0], headers={**PAGE, "X-Interlock-Session": "x"}).expect(401)


def test_two_use_a_link_at_once():
    with linked() as (s, _, token):
        def use(_):
            with s.new_client() as c:
                return page(s, "POST", "/ui/session", body={"link": token}, client=c).status
        assert sorted(lib.together(8, use)) == [200] + [401] * 7


def test_a_link_of_a_revoked_key():
    with linked() as (s, made, token):
        s.delete("/api/v1/admin/api-keys/" + made["id"]).expect(200)
        page(s, "POST", "/ui/session", body={"link": token}).expect(401)


def test_no_link():
    """nobody can use one that the server was not given"""
    with lib.Server() as s:
        for token in ("", "x", "0" * 43, "A" * 43):
            assert page(s, "POST", "/ui/session", body={"link": token}).status in (400, 401)


def test_bad_links():
    """a short token, or one for no key, stops the start"""
    key_id = str(uuid.uuid4())
    for link in ("x", f"{key_id} short", f"{key_id} ", "nobody " + "x" * 43, " " + "x" * 43,
                 f"{key_id} " + "x" * 121, f"{key_id} " + "x" * 300):
        done = lib.run("serve", "--allow-root", "--store", "memory:", "--listen", "127.0.0.1:0", env={"INTERLOCK_LINK": link})
        assert done.returncode != 0 and "INTERLOCK_LINK" in done.stderr, (link, done)
        assert "x" * 43 not in done.stderr


def test_secrets_are_in_no_log():
    """neither keys nor cookies, at the most talkative level"""
    with lib.Server(args=["--log-level", "debug"]) as s:
        cookie, _ = sign_in(s)
        call(s, "/locks", cookie).expect(200)
        call(s, "/nothing", cookie).expect(404)
        session(s, cookie[:-1] + "x").expect(401)
        page(s, "POST", "/ui/session", body={"key": s.key[:-1]}).expect(401)
        s.wait_log('"path":"/ui/session"|path=/ui/session')
        s.stop()
        assert s.key not in s.log and s.key[:-1] not in s.log and cookie not in s.log and cookie.split(".")[2][:20] not in s.log


lib.main(globals())
