"""Generates requests for every route of a server from its /openapi.json: valid, odd and invalid
ones.

A test compares /openapi.json to the route table, so a new route is attacked without a change here.
Every choice comes from the caller's generator. Values that the server has returned (ids, fences,
cursors) are picked by a fraction of the list, so that a seed makes the same choices whatever the
lists contain.
"""
import collections
import itertools
import json
import string
import urllib.parse
import uuid

NAMES = [f"{kind}{i}" for kind in ("k", "pipeline:p", "job:", "a/b ", "é") for i in range(4)]
ODD_TEXTS = [
    "", " ", "\0", "\n", "../../etc/passwd", "%00", "%2e%2e%2f", "a" * 255, "a" * 513, "é" * 300,
    "-1", "\U0001f512" * 64, "';--", "{}", "[]", "null", "1e999", "\x7f", "\ufeff", "\ud7ff", "*",
    "{tag}"]
ODD_NUMBERS = [
    0, 1, -1, 2, 255, 999, 1000, 1001, 65535, 65536, 2**31 - 1, 2**31, 2**32, 2**53 - 1, 2**53,
    10**30, 2**63 - 1, 2**63, 2**64 - 1, 2**64, -2**31, -2**63, -2**63 - 1, 0.5, -0.0, 1e308]
ODD_JSON = [
    b"", b" ", b"{", b"}", b"[]", b"null", b"{}{}", b"{} x", b'"text"', b"0", b"\xff\xfe", b"nul\0",
    b'{"a":"\\ud800"}', b'{"key":"a","key":"b"}', b'{"key":"a\\u0000b"}', b"[" * 5000,
    b'{"a":' * 3000 + b"1" + b"}" * 3000, b'{"ops":[]}', b'{"ops":[null]}', b'{"items":[]}',
    b'{"items":{}}', b'{"ops":[{"op":"acquire"}]}', b'{"\\u0000":1}', b"\xef\xbb\xbf{}",
    b'{"ttl_ms":1e400}', b'{"ttl_ms":' + b"9" * 400 + b"}"]
ODD_QUERY = [("x", "1"), ("", ""), ("limit", "1"), ("limit", "é"), ("wait", "50ms"),
             ("a" * 900, "b")]
ODD_ENDS = ["?", "&", "%", "%zz", "#x", "/", "//", "/.", "?a&a", "%00", "?" + "a&" * 60, "x" * 4200]
ODD_HEADERS = [
    ("X-A", ""), ("X-B", "a" * 3000), ("Cookie", "a=b; c=\"d\""), ("Connection", "close"),
    ("Connection", "keep-alive, Upgrade"), ("Upgrade", "h2c"), ("Range", "bytes=0-1"),
    ("TE", "trailers"), ("Accept-Encoding", "gzip"), ("Last-Event-ID", "1"),
    ("X-Forwarded-For", "1.2.3.4"),
    ("If-None-Match", "*"), ("Content-Encoding", "gzip")]
UNESCAPED = "".join(c for c in string.punctuation if c not in "?#")
TYPES = ["text/plain", "application/json; charset=utf-8", "", "application/jsonx"]
NAMED = ("key", "queue", "q", "name", "group", "pipeline", "pipeline_id", "prefix", "step")
SCHEDULES = ["* * * * *", "0 0 1 1 *", "@daily", "*/5 1-3 * * 1,2"]
TIMES = ["2026-11-14T00:00:00Z", "9999-12-31T23:59:59Z"]
FACTS = ("id", "key", "holder", "fence", "token", "queue", "name", "claim_id", "pipeline_id")
METHODS = ["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW"]
KNOWN = 200  # things of a kind that a worker remembers
LARGE = (5_000, 50_000, 300_000, 1_000_000)


def pick(rng, items):
    """By a fraction: the choice uses the generator once, whatever the length of the list."""
    u = rng.random()
    return items[int(u * len(items))] if items else None


def recent(rng, items):
    """Rather one of those that were learned last."""
    u = rng.random() ** 3
    return items[-1 - int(u * len(items))] if items else None


class World:
    """What a worker knows of the server: keys, and what it has read in answers."""

    def __init__(self, keys, protected=()):
        self.keys = list(keys)  # (tenant, role, secret): an API key, or the cookie of a session
        self.protected = set(protected)  # ids of keys that must live
        self.ids, self.numbers = collections.deque(maxlen=KNOWN), collections.deque(maxlen=KNOWN)
        self.cursors, self.made_keys = (collections.deque(maxlen=KNOWN),
                                        collections.deque(maxlen=KNOWN))
        self.facts = {}  # tenant: what belongs together in answers, such as key, holder and fence

    def learn_facts(self, tenant, answer):
        items = answer.get("items") or answer.get("results") or ()
        for thing in [answer] + [item for item in items if isinstance(item, dict)][:3]:
            fact = {k: v for k, v in thing.items() if k in FACTS and isinstance(v, (str, int))}
            if len(fact) > 1:
                if "queue" in fact:
                    fact["q"] = fact["queue"]
                self.facts.setdefault(tenant, collections.deque(maxlen=KNOWN)).append(fact)

    def fact(self, rng, tenant):
        """Mostly of the tenant itself; of another one only what does not carry its mark."""
        own, u = recent(rng, self.facts.get(tenant)), rng.random()
        other = recent(rng, self.facts.get(pick(rng, sorted(filter(None, self.facts)))))
        if u < 0.3 or (u < 0.9 and own is None):
            return {}
        if u < 0.9:
            return own
        return {k: v for k, v in (other or {}).items()
                if k in ("id", "fence", "token", "queue", "q", "claim_id")}


class Request:
    """One request; bytes() is what is sent."""
    __slots__ = ("method", "target", "headers", "body", "operation", "path", "tenant", "stream",
                 "version", "request_id", "expects")

    def __init__(self, method, target, operation=None, path=None):
        self.method, self.target, self.operation, self.path = method, target, operation, path
        self.headers, self.body, self.tenant, self.stream = [], b"", None, False
        self.version, self.request_id, self.expects = "HTTP/1.1", None, False

    def head(self):
        lines = [f"{self.method} {self.target} {self.version}"]
        lines += [f"{name}: {value}" for name, value in self.headers]
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", "replace")

    def set_body(self, body):
        """Another one, with its length."""
        self.body = body
        self.headers = [(name, str(len(body)) if name == "Content-Length" else value)
                        for name, value in self.headers]

    def bytes(self):
        return self.head() + self.body


class Grammar:
    def __init__(self, document):
        self.root = document
        self.schemas = document["components"]["schemas"]
        self.routes = [(method.upper(), path, operation)
                       for path, methods in document["paths"].items() if "$ref" not in methods
                       for method, operation in methods.items()]
        self.weights = list(itertools.accumulate(self.weight(*route) for route in self.routes))
        self.ops = {self.follow(ref)["properties"]["op"]["const"]: self.follow(ref)
                    for ref in self.schemas["Op"]["oneOf"]}
        self.fact = {}  # of the request that is being made

    @staticmethod
    def weight(method, path, operation):
        """How often a route is asked for: rather one that changes something."""
        if operation["x-permission"] == "open":
            return 0.3
        if operation["operationId"] == "batch":
            return 6
        return (1 if method == "GET" else 3) * (0.3 if "/admin/" in path else 1)

    def follow(self, schema):
        while "$ref" in schema:
            schema = self.schemas[schema["$ref"].rsplit("/", 1)[1]]
        return schema

    # ---- values

    def text(self, rng, world, name, wild, tenant):
        if rng.random() < wild:
            return pick(rng, ODD_TEXTS)
        if isinstance(self.fact.get(name), str):
            return self.fact[name]
        if name in ("id", "parent", "claim_id"):
            known = recent(rng, world.ids)
            new = str(uuid.UUID(int=rng.getrandbits(128)))
            return known if known and rng.random() < 0.8 else new
        if name in NAMED:
            return pick(rng, NAMES + ["hello", "slow", "params", "probed"])
        if name == "cursor":
            return recent(rng, world.cursors) or "x"
        if name == "schedule":
            return pick(rng, SCHEDULES + ["61 * * * *", "x"] * (wild > 0))
        if name == "tenant":
            return pick(rng, ["x0", "x1", "x2", "x3", "nobody"])
        if name == "wait":
            return pick(rng, ["0", "1ms", "50ms"] + ["0.1s", "x"] * (wild > 0))
        # What is stored carries the mark of its tenant: nobody else may ever read it.
        return f"~{tenant}~{rng.randrange(6)}"

    def number(self, rng, world, name, schema, wild):
        if rng.random() < wild:
            return pick(rng, ODD_NUMBERS)
        if isinstance(self.fact.get(name), int):
            return self.fact[name]
        if name in ("fence", "token"):
            return recent(rng, world.numbers) or 1
        low, high = schema.get("minimum", 0), schema.get("maximum", 100_000)
        if name in ("ttl_ms", "lease_ms", "keep_ms", "unique_for_ms", "delay_ms", "rate_ms"):
            return low + int(rng.random() * 3000)
        return low + int(rng.random() ** 3 * max(min(high, low + 5000) - low, 1))

    def value(self, rng, world, schema, name, wild, tenant):
        schema = self.follow(schema)
        if name == "wait_ms":  # short: somebody waits for the answer
            odd = rng.random() < wild
            return pick(rng, [-1, "x", None, 0.5, [], -2**63] if odd else [0, 0, 40, 80])
        if rng.random() < wild / 4:
            return pick(rng, [None, True, 1, "text", [], {}, [[]], {"a": 1}, -1, "é"])
        for word in ("anyOf", "oneOf"):
            if word in schema:
                choices = schema[word]
                if rng.random() >= wild:  # a list of known words rather than any text
                    choices = [c for c in choices if c.get("type") == "array"] or choices
                return self.value(rng, world, pick(rng, choices), name, wild, tenant)
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return pick(rng, schema["enum"])
        kind = schema.get("type", "any")
        if isinstance(kind, list):
            kind = pick(rng, kind)
        if kind == "object":
            return self.object(rng, world, schema, wild, tenant)
        if kind == "array":
            n = 1 + int(rng.random() ** 4 * 12)
            items = schema.get("items", {})
            return [self.value(rng, world, items, name, wild, tenant) for _ in range(n)]
        if kind == "boolean":
            return rng.random() < 0.5
        if kind in ("integer", "number"):
            return self.number(rng, world, name, schema, wild)
        if kind == "null":
            return None
        if "contentEncoding" in schema or name.endswith("_base64"):
            return pick(rng, ["", "AA==", "////", "Zm9vYmFy"] + ["YQ", "="] * (wild > 0))
        if schema.get("format") == "date-time":
            return pick(rng, TIMES + ["1970-01-01T00:00:00.000Z", "x"] * (wild > 0))
        if kind == "any" and rng.random() < 0.3:
            return pick(rng, [{"a": [1, 2, {"b": None}]}, [1, "x"], 7, None, f"~{tenant}~any"])
        if rng.random() < 0.004 and schema.get("maxLength", 2**20) >= 2**20:
            return f"~{tenant}~" + "v" * pick(rng, LARGE)
        return self.text(rng, world, name, wild, tenant)

    def object(self, rng, world, schema, wild, tenant):
        properties, required = schema.get("properties", {}), schema.get("required", ())
        made = {}
        for name, member in properties.items():
            needed = name in required
            chance = 0.03 if name in ("parent", "children") else 0.25
            if (needed and rng.random() >= wild / 4) or (not needed and rng.random() < chance):
                if name.endswith("_base64") and name[:-7] in made:
                    continue
                made[name] = self.value(rng, world, member, name, wild, tenant)
        if rng.random() < wild / 2:
            made[pick(rng, ["extra", "", "key\0", "op", "é"])] = 1
        return made

    def batch(self, rng, world, wild, tenant):
        n = pick(rng, [1, 2, 3, 5, 8, 40])
        if rng.random() < 0.005:
            n = pick(rng, [4095, 4096, 4097])
        names = list(self.ops)
        ops = []
        for _ in range(min(n, 40)):
            self.fact = world.fact(rng, tenant)
            ops.append(self.object(rng, world, self.ops[pick(rng, names)], wild, tenant))
        if n > 40:
            ops = (ops * (n // len(ops) + 1))[:n]
        body = {"ops": ops}
        if rng.random() < 0.1:
            body["raw"] = True
        return body

    def body(self, rng, world, operation, wild, tenant):
        """Bytes."""
        how = rng.random()
        if how < 0.04:
            return pick(rng, ODD_JSON)
        content = operation.get("requestBody", {}).get("content", {})
        schema = content.get("application/json", {}).get("schema")
        if operation["operationId"] == "batch":
            made = self.batch(rng, world, wild, tenant)
        elif schema is None:
            return b"" if how < 0.97 else b"{}"
        else:
            made = self.value(rng, world, schema, "body", wild, tenant)
        data = json.dumps(made, ensure_ascii=how < 0.5).encode("utf-8", "surrogatepass")
        if rng.random() < wild / 3:
            at = int(rng.random() * (len(data) + 1))
            data = pick(rng, [data[:at], data[:at] + b"\0" + data[at:],
                              data[:at] + b"\xff" + data[at:], data + data])
        return data

    # ---- requests

    def target(self, rng, world, path, operation, wild, tenant):
        parts = []
        for part in path.split("/"):
            if not part.startswith("{"):
                parts.append(part)
                continue
            name = part[1:-1]
            if path.startswith("/api/v1/admin/tenants"):
                name = "tenant"  # the limits of those that attack stay as they are
            text = self.text(rng, world, name, wild / 2, tenant)
            if path.startswith("/api/v1/admin/api-keys") and text in world.protected:
                text = str(uuid.UUID(int=rng.getrandbits(128)))
            safe = pick(rng, ["", "/", UNESCAPED]) if rng.random() < wild else ""
            parts.append(urllib.parse.quote(text, safe=safe, errors="replace"))
        query = []
        for parameter in operation.get("parameters", ()):
            if "$ref" in parameter:
                if parameter["$ref"].endswith("/wait") and rng.random() < 0.1:
                    query.append(("wait", self.text(rng, world, "wait", wild, tenant)))
                continue
            name = parameter["name"]
            wanted = rng.random() < (0.05 if name == "cursor" else 0.3)
            if parameter["in"] == "query" and (parameter.get("required") or wanted):
                made = self.value(rng, world, parameter["schema"], name, wild, tenant)
                if name == "force":
                    made = "false"
                if isinstance(made, bool):
                    made = str(made).lower()
                made = made if isinstance(made, list) else [made]
                query.append((name, ",".join(map(str, made))))
        if rng.random() < wild / 2:
            query.append(pick(rng, ODD_QUERY))
        text = "/".join(parts)
        if query:
            text += "?" + urllib.parse.urlencode(query, errors="replace")
        if rng.random() < wild / 10:
            text += pick(rng, ODD_ENDS)
        return text

    def key(self, rng, world):
        """(tenant, secret or None)"""
        how = rng.random()
        if how < 0.03:
            return None, pick(rng, [None, "sk_x_" + "A" * 43, "", "é", "A" * 300])
        if how < 0.1 and world.made_keys:
            return None, recent(rng, world.made_keys)
        tenant, _, secret = pick(rng, world.keys)
        return tenant, secret

    def request(self, rng, world, number, expects=0.03, stream=None):
        """A request that is well-formed HTTP. stream: True = only the stream, False = others."""
        while True:
            method, path, operation = rng.choices(self.routes, cum_weights=self.weights)[0]
            is_stream = operation["operationId"] == "stream_get"
            if stream is None or stream == is_stream:
                break
        wild = pick(rng, [0, 0, 0, 0, 0.02, 0.15, 0.6])
        tenant, secret = self.key(rng, world)
        self.fact = world.fact(rng, tenant)
        r = Request(method, self.target(rng, world, path, operation, wild, tenant), operation, path)
        r.tenant = tenant
        if rng.random() < 0.03:
            r.method = pick(rng, METHODS)
        elif r.method == "GET" and rng.random() < 0.03:
            r.method = "HEAD"
        r.stream = is_stream and r.method == "GET"
        if r.method in ("POST", "PUT", "DELETE", "PATCH") or rng.random() < 0.02:
            r.body = self.body(rng, world, operation, wild, tenant)
        self.headers(rng, r, secret, number, wild, expects)
        return r

    def headers(self, rng, r, secret, number, wild, expects):
        add = r.headers.append
        add(("Host", "a"))
        if secret is not None and secret.startswith("interlock="):  # a session of the admin page
            if r.target.startswith("/api/v1/"):
                r.target = "/ui/api/" + r.target.removeprefix("/api/v1/")
            add(("Cookie", secret))
            if rng.random() < 0.95:
                add(("X-Interlock-Page", "1"))
        elif secret is not None:
            plain = rng.random() < 0.8
            add(("X-API-Key", secret) if plain else ("Authorization", "Bearer " + secret))
        if r.body or rng.random() < 0.02:
            odd = rng.random() < 0.02
            add(("Content-Type", pick(rng, TYPES) if odd else "application/json"))
        if r.body or rng.random() < 0.1:
            add(("Content-Length", str(len(r.body))))
        r.request_id = f"n{number}"
        add(("X-Request-Id", r.request_id))
        if rng.random() < expects:
            r.expects = True
            add(("Expect", pick(rng, ["100-continue"] * 6 + ["100-Continue", "200-ok", ""])))
        if rng.random() < 0.05:
            add(("Idempotency-Key", pick(rng, ["one", "two", "three", "", "é", "a" * 255,
                                               "a" * 256])))
        if rng.random() < wild:
            for _ in range(1 + int(rng.random() * 3)):
                add(pick(rng, ODD_HEADERS))
        if rng.random() < 0.005:
            for i in range(pick(rng, [90, 99, 101, 400])):
                add((f"X-{i}", "a" * pick(rng, [1, 20, 200])))
        if rng.random() < 0.01:
            r.version = "HTTP/1.0"
