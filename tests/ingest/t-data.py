"""Race results from outside: the routes that read, links and users, and the commands on a store and with --server."""
import contextlib
import csv
import io
import json
import os
import shutil
import sqlite3
import subprocess
import tempfile
import urllib.request

import lib

SMALL = ["--events", "2", "--entries", "16", "--races", "6", "--laps", "8"]


class Rig:
    """A demo site, a store with one of its events, and a server on it."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="interlock-data-")
        self.store = f"sqlite:{self.folder}/x.db"
        self.site = subprocess.Popen([lib.BINARY, "demo-site", "--listen", "127.0.0.1:0", "--json", *SMALL],
                                     stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        self.url = json.loads(self.site.stdout.readline())["url"]
        self.env = {"INTERLOCK_LIVERC_URL": self.url + "/{slug}", "INTERLOCK_INGEST_REQUEST_DELAY_MS": "0"}
        self.event = None
        self.server = None

    def run(self, *args, status=0, remote=False):
        where = ["--server", "http://" + self.server.address] if remote else ["--store", self.store]
        env = {**os.environ, **self.env, **({"INTERLOCK_API_KEY": self.server.key} if remote else {})}
        done = subprocess.run([lib.BINARY, *args, *where], env=env, capture_output=True, text=True, check=False)
        assert done.returncode == status, (args, done.returncode, done.stdout, done.stderr)
        self.err = done.stderr
        return done.stdout

    def close(self):
        if self.server:
            self.server.end()
        self.site.kill()
        self.site.wait()
        shutil.rmtree(self.folder)


@contextlib.contextmanager
def rig():
    it = Rig()
    try:
        users = it.folder + "/users.csv"
        with open(users, "w", encoding="utf-8") as file:
            file.write("email,name,transponder\nnobody@example.org,Nobody At All,\n")
        it.run("ingest", "users", "import", users)
        it.run("ingest", "source", "100000", "--track", "hilltoprc", "--quiet")
        it.server = lib.Server(store=it.store, env=it.env)
        it.event = it.server.get("/api/v1/events").expect(200).json["items"][0]["id"]
        yield it
    finally:
        it.close()


def reads(it):
    get = lambda path: it.server.get("/api/v1" + path)
    one = get("/events?depth=laps_full&search=HILLTOP").expect(200).json
    assert [e["id"] for e in one["items"]] == [it.event] and one["next"] is None
    assert one["items"][0]["complete"] is True and one["items"][0]["ingest_depth"] == "laps_full"
    assert get("/events?search=nowhere").expect(200).json["items"] == []
    assert get("/events?depth=none").expect(200).json["items"] == []
    assert "depth" in get("/events?depth=half").expect(400).json["error"]["message"]
    assert get("/events?cursor=nobody").expect(400).json["error"]["code"] == "VALIDATION_ERROR"
    for sort in ("date", "oldest", "name", "ingested"):
        assert len(get("/events?sort=" + sort).expect(200).json["items"]) == 1
    event = get("/events/" + it.event).expect(200).json
    assert event["n_races"] == len(event["races"]) == 6
    truth = json.loads(lib_read(it.url + "/truth/event/100000.json"))
    assert {r["source_race_id"] for r in event["races"]} == {str(r["id"]) for r in truth["races"]}
    n_laps = 0
    for race in event["races"]:
        full = get("/races/" + race["id"]).expect(200).json
        laps = get(f"/races/{race['id']}/laps").expect(200).json["items"]
        assert [r["position"] for r in full["results"]] == list(range(1, len(full["results"]) + 1))
        for result in full["results"]:
            own = [lap for lap in laps if lap["result_id"] == result["id"]]
            assert len(own) == result["laps"] and [lap["lap_number"] for lap in own] == list(range(1, len(own) + 1))
            assert abs(sum(lap["seconds"] for lap in own) - (own[-1]["elapsed_seconds"] if own else 0)) < 0.01
        n_laps += len(laps)
    assert n_laps > 0
    for path in ("/events/nobody", "/races/nobody", "/races/nobody/laps"):
        assert get(path).expect(404).json["error"]["code"] == "NOT_FOUND"


def lib_read(url):
    with urllib.request.urlopen(url) as answer:
        return answer.read()


def pages(it):
    """More events, page by page: each once, in order."""
    it.run("ingest", "events", "--track", "hilltoprc", "--quiet")
    it.run("ingest", "events", "--track", "claypit", "--quiet")
    for sort in ("date", "oldest", "name", "ingested"):
        whole = it.server.get("/api/v1/events?sort=" + sort).expect(200).json["items"]
        seen, cursor = [], ""
        while cursor is not None:
            page = it.server.get(f"/api/v1/events?sort={sort}&limit=1&cursor={cursor}").expect(200).json
            seen += page["items"]
            cursor = page["next"]
        assert len(whole) == 4 and [e["id"] for e in seen] == [e["id"] for e in whole], sort
    first = it.server.get("/api/v1/events?sort=ingested").expect(200).json["items"]
    assert first[0]["id"] == it.event and first[1]["complete"] is False
    assert len(it.server.get("/api/v1/events?track=claypit").expect(200).json["items"]) == 2


def export(it):
    for remote in (False, True):
        rows = list(csv.DictReader(io.StringIO(it.run("ingest", "export", it.event, "--csv", remote=remote))))
        laps = list(csv.DictReader(io.StringIO(it.run("ingest", "export", it.event, "--csv", "--laps", remote=remote))))
        whole = json.loads(it.run("ingest", "export", it.event, "--json", remote=remote))
        assert len(rows) == sum(len(r["results"]) for r in whole["races"]) > 6
        assert len(laps) == sum(len(r["laps"]) for r in whole["races"]) > len(rows)
        assert sum(int(r["laps_completed"]) for r in rows) == len(laps)
        if remote:
            assert (rows, laps, whole) == before
        before = (rows, laps, whole)
        it.run("ingest", "export", "nobody", "--csv", status=1, remote=remote)
        assert "event nobody not found" in it.err
    it.run("ingest", "export", it.event, status=64)


def links(it):
    driver = it.server.get("/api/v1/races/" + it.server.get("/api/v1/events/" + it.event).json["races"][0]["id"]).json
    name = driver["results"][0]["name"]
    path = it.folder + "/more.csv"
    with open(path, "w", encoding="utf-8") as file:
        csv.writer(file).writerows([("name", "email"), (name, "Fast@Example.org"), ("Nobody", "second@example.org")])
    done = json.loads(it.run("ingest", "users", "import", path, "--json", remote=True))
    assert done == {"inserted": 2, "updated": 0, "unchanged": 0}
    assert json.loads(it.run("ingest", "users", "import", path, "--json"))["unchanged"] == 2
    it.run("ingest", "event", it.event, "--force", "--quiet")
    for remote in (False, True):
        found = json.loads(it.run("ingest", "links", "--json", "--state", "confirmed", remote=remote))["items"]
        assert [(f["email"], f["driver_name"], f["score"]) for f in found] == [("fast@example.org", name, 1.0)]
        assert it.run("ingest", "links", "--state", "conflict", remote=remote) == "" and "no links" in it.err, it.err
    one = found[0]["id"]
    assert "rejected" in it.run("ingest", "links", "reject", one)
    it.run("ingest", "event", it.event, "--force", "--quiet")
    found = json.loads(it.run("ingest", "links", "--json"))["items"]
    assert [f["state"] for f in found if f["id"] == one] == ["rejected"]
    shown = json.loads(it.run("ingest", "links", "confirm", one, "--user", "second@example.org", "--json", remote=True))
    assert (shown["state"], shown["email"]) == ("confirmed", "second@example.org")
    it.run("ingest", "links", "confirm", "nobody", status=1, remote=True)
    assert it.server.post("/api/v1/ingestion/links/nobody/reject", {}).expect(404).json["error"]["code"] == "NOT_FOUND"
    with open(path, "w", encoding="utf-8") as file:
        csv.writer(file).writerows([("name", "email"), (driver["results"][1]["name"], "third@example.org")])
    it.run("ingest", "users", "import", path)
    it.run("ingest", "event", it.event, "--force", "--quiet")
    every = json.loads(it.run("ingest", "links", "--json"))["items"]
    assert len(every) > 1, every
    for remote in (False, True):
        seen, cursor = [], None
        while cursor is not None or not seen:
            after = ("--cursor", cursor) if cursor is not None else ()
            page = json.loads(it.run("ingest", "links", "--json", "--limit", "1", *after, remote=remote))
            assert len(page["items"]) == 1, page
            seen, cursor = seen + page["items"], page["next"]
        assert seen == every, (seen, every)
        it.run("ingest", "links", "--limit", "1", remote=remote)
        assert f"more items: --cursor '{every[0]['id']}'" in it.err, it.err
    with open(path, "w", encoding="utf-8") as file:
        file.write("email,name\nx,y\nz@example.org,\n")
    it.run("ingest", "users", "import", path, status=65)
    assert f"{path}:2: 'x' is not an email address" in it.err and f"{path}:3: missing name" in it.err
    refused = it.server.post("/api/v1/ingestion/users", {"users": [{"email": "x", "name": "y"}]}).expect(400)
    assert refused.json["error"]["code"] == "VALIDATION_ERROR"


def damaged(it):
    """Tables that are missing: the database answers, but cannot read or write."""
    race = it.server.get("/api/v1/events/" + it.event).expect(200).json["races"][0]["id"]
    link = it.server.get("/api/v1/ingestion/links").expect(200).json["items"][0]["id"]
    with contextlib.closing(sqlite3.connect(it.folder + "/x-ingest.db", isolation_level=None)) as db:
        db.execute("PRAGMA legacy_alter_table = on")
        for table in ("laps", "drivers"):
            db.execute(f"ALTER TABLE {table} RENAME TO {table}_away")
        for answer in (it.server.get(f"/api/v1/races/{race}/laps"), it.server.get("/api/v1/ingestion/links"),
                       it.server.post(f"/api/v1/ingestion/links/{link}/reject", {})):
            error = answer.expect(500).json["error"]
            assert error["code"] == "PERSISTENCE_ERROR" and "no such table" not in error["message"], error
        for table in ("laps", "drivers"):
            db.execute(f"ALTER TABLE {table}_away RENAME TO {table}")
    it.server.get(f"/api/v1/races/{race}/laps").expect(200)


def verify(it):
    for remote in (False, True):
        assert "orphans: every reference points to an existing row: ok" in it.run("ingest", "verify", remote=remote)
    with contextlib.closing(sqlite3.connect(it.folder + "/x-ingest.db", isolation_level=None)) as db:
        db.execute("DELETE FROM laps WHERE lap_number = 1")
    for remote in (False, True):
        found = {v["name"]: v["found"] for v in json.loads(it.run("ingest", "verify", "--json", status=1, remote=remote))["items"]}
        assert found["lap_count"] > 0 and found["lap_numbers"] > 0 and found["orphans"] == 0
    assert "ingest.lap_count" in it.run("check", "ingest.lap_count", status=1)


def test_reads_export_links_verify():
    """one event: routes and commands say the same"""
    with rig() as it:
        reads(it)
        export(it)
        links(it)
        pages(it)
        damaged(it)
        verify(it)


lib.main(globals())
