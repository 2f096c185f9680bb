"""`interlock demo-site` from outside: pages say what /truth says, in every style; failures on request, conditional
requests, changes, the log, the end."""
import http.client
import json
import os
import re
import signal
import subprocess
import sys
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "http"))
sys.path.insert(0, HERE)
import lib  # noqa: E402
import reader  # noqa: E402

LIMIT = 20 * lib.SLOW
SMALL = ["--events", "2", "--entries", "26", "--races", "9", "--laps", "12"]


def styles():
    with open(os.path.join(lib.SOURCE, "src/apps/ingest/site/styles.def"), encoding="utf-8") as file:
        return re.findall(r'^X\(\w+, +"([\w-]+)"', file.read(), re.M)


class Site:
    """The command on a free port; `log` has a dict for each request."""

    def __init__(self, *args, listen="127.0.0.1:0"):
        self.process = subprocess.Popen([lib.BINARY, "demo-site", "--listen", listen, "--json", *args],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        first = self.process.stdout.readline()
        assert first, "demo-site does not start"
        self.address = json.loads(first)["url"].removeprefix("http://")
        self.log = []
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            self.log.append(json.loads(line))

    def ask(self, path, method="GET", **headers):
        connection = http.client.HTTPConnection(self.address, timeout=LIMIT)
        try:
            connection.request(method, path, headers={name.replace("_", "-"): text for name, text in headers.items()})
            answer = connection.getresponse()
            return lib.Answer(answer.status, answer.headers, answer.read())
        finally:
            connection.close()

    def get(self, path):
        return self.ask(path).expect(200).body.decode()

    def truth(self, path):
        return json.loads(self.get(f"/truth/{path}.json"))

    def stop(self, number=signal.SIGTERM):
        """Ends it; returns its exit status. The log is complete then."""
        self.process.send_signal(number)
        status = self.process.wait(LIMIT)
        self.reader.join(LIMIT)
        return status

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


def same(what, actual, expected):
    """Each member that the page gave is the expected one."""
    for name, text in actual.items():
        if name in expected and text != expected[name]:
            raise AssertionError(f"{what}: {name} is {text!r}, expected {expected[name]!r}")


def check_event(site, slug, event_id):
    """All pages of an event; returns its truth."""
    base = f"/{slug}/results/?p="
    truth = site.truth(f"event/{event_id}")
    page = reader.event(site.get(f"{base}view_event&id={event_id}"))
    races = page.pop("races")
    same(event_id, page, truth)
    assert [race["id"] for race in races] == [race["id"] for race in truth["races"]]
    assert page["n_laps"] == sum(result["laps"] for race in truth["races"] for result in race["results"])
    entries = reader.entries(site.get(f"{base}view_entry_list&id={event_id}"))
    assert entries == truth["entries"], (entries, truth["entries"])
    for race, expected in zip(races, truth["races"], strict=True):
        same(race["id"], race, expected)
        page = reader.race(site.get(f"{base}view_race_result&id={race['id']}"))
        results = page.pop("results")
        same(race["id"], page, expected)
        assert len(results) == len(expected["results"])
        for result, row in zip(results, expected["results"]):
            assert set(result) == set(row), set(result) ^ set(row)
            same((race["id"], row["position"]), result, row)
            assert result["lap_ms"] == [] or sum(result["lap_ms"]) == result["total_ms"]
            assert len(result["lap_ms"]) == result["laps"]
        race["n_racers"] = page["n_racers"]
    truth["seen"] = races
    return truth


def check_site(site):
    """All pages; returns the truths of all events."""
    truth = site.truth("site")
    assert reader.tracks(site.get("/")) == [{"slug": t["slug"], "name": t["name"]} for t in truth["tracks"]]
    events = []
    for track in truth["tracks"]:
        assert reader.events(site.get(f"/{track['slug']}/events")) == track["events"]
        events += [check_event(site, track["slug"], event["id"]) for event in track["events"]]
    return events


def test_pages_say_the_truth():
    """Every page of sites with several seeds, in whatever styles"""
    for seed in range(1, 4):
        with Site("--seed", str(seed), *SMALL) as site:
            check_site(site)


def test_every_style_alone():
    """Every page in each style"""
    plain = None
    for style in ["none"] + styles():
        with Site("--style", style, "--events", "1", "--entries", "26", "--races", "8", "--laps", "8") as site:
            try:
                check_event(site, "hilltoprc", 100000)
            except AssertionError as why:
                raise AssertionError(f"{style}: {why}") from why
            pages = [site.ask(f"/results/?p={page}").body for page in
                     ["view_event&id=100000", "view_entry_list&id=100000"] +
                     [f"view_race_result&id={100000001 + i}" for i in range(8)]]
        assert style in ("none", "unlisted") or pages != plain, f"{style} changes nothing"
        plain = plain or pages


def test_every_style_together():
    """Styles combined: all but those that leave out content"""
    names = [style for style in styles() if style not in ("no-races", "not-run", "only-h1", "only-h3")]
    with Site("--style", ",".join(names), *SMALL) as site:
        events = check_site(site)
    results = [result for event in events for race in event["races"] for result in race["results"]]
    assert any(result["driver_id"] is None for result in results)  # did not start, and is not in the script


def test_special_drivers():
    """Drivers who did not start, namesakes, and a race that was not run"""
    def results(*names):
        with Site("--style", ",".join(names), *SMALL) as site:
            event = check_event(site, "hilltoprc", 100000)
        return event, [result for race in event["races"] for result in race["results"]]

    _, rows = results("absent")
    absent = [row for row in rows if row["laps"] == 0]
    assert absent and all(row["driver_id"] and row["total_ms"] is None for row in absent)
    assert {"0.000", "1 Lap", "2 Laps", ""} <= {row["behind"] for row in rows}
    _, rows = results("absent", "unlisted")
    assert all(row["driver_id"] is None for row in rows if row["laps"] == 0)
    event, _ = results("namesakes")
    race = next(race["results"] for race in event["races"] if race["class"] == event["entries"][0]["class"])
    assert len({row["name"] for row in race}) == len(race) - 1
    assert len({row["driver_id"] for row in race}) == len({row["car"] for row in race}) == len(race)
    event, rows = results("not-run")
    assert all(row["laps"] == 0 for row in rows) and all(race["n_racers"] == 0 for race in event["seen"])
    event, _ = results("no-races")
    assert event["races"] == [] and event["entries"]


def test_the_large_event():
    """150 entries, 60 races, about 500 laps each"""
    with Site() as site:
        truth = check_event(site, "hilltoprc", 100000)
    assert (len(truth["entries"]), len(truth["races"])) == (150, 60)
    n_laps = [result["laps"] for race in truth["races"] for result in race["results"]]
    assert 25000 < sum(n_laps) < 35000 and max(n_laps) <= 60, sum(n_laps)
    assert {race["section"] for race in truth["races"]} >= {"Main Events", "Qualifier Round 1", "Qualifier Round 2"}


def test_a_heavy_page():
    """13 drivers with up to 60 laps each"""
    with Site("--style", "none", "--entries", "13", "--races", "1", "--laps", "60") as site:
        page = site.get("/results/?p=view_race_result&id=100000001")
    assert len(reader.race(page)["results"]) == 13
    assert 150_000 < len(page) < 250_000, len(page)


def test_the_same_again():
    """Two processes serve the same bytes; another seed serves others"""
    paths = ["/", "/hilltoprc/events", "/results/?p=view_event&id=100000", "/results/?p=view_race_result&id=100000001"]
    with Site("--seed", "5") as one, Site("--seed", "5") as same_seed, Site("--seed", "6") as other:
        for path in paths:
            assert one.get(path) == same_seed.get(path), path
            assert path == "/" or one.get(path) != other.get(path), path


def test_conditional():
    """ETag and Last-Modified, and 304 for those who send them back"""
    path = "/hilltoprc/results/?p=view_event&id=100000"
    with Site(*SMALL) as site:
        answer = site.ask(path).expect(200)
        etag, modified = answer.headers["ETag"], answer.headers["Last-Modified"]
        unchanged = site.ask(path, If_None_Match=etag).expect(304)
        assert unchanged.body == b"" and unchanged.headers["ETag"] == etag
        site.ask(path, If_None_Match=f'"x", {etag}').expect(304)
        site.ask(path, If_Modified_Since=modified).expect(304)
        site.ask(path, If_None_Match='"x"', If_Modified_Since=modified).expect(200)
        site.ask(path, If_Modified_Since="Mon, 01 Dec 2025 00:00:00 GMT").expect(200)
        site.ask("/nowhere", If_None_Match="*").expect(404)
    with Site("--revision", "1", *SMALL) as site:
        site.ask(path, If_None_Match=etag).expect(200)
        site.ask(path, If_Modified_Since=modified).expect(200)


def test_changes():
    """--change-every: results change between two reads, and the truth with them"""
    path = "/results/?p=view_race_result&id=100000001"
    with Site("--change-every", "3", "--style", "none", *SMALL) as site:
        first, second = site.get(path), site.get(path)
        assert first == second and site.truth("event/100000")["revision"] == 0
        third = site.get(path)
        truth = site.truth("event/100000")
        assert truth["revision"] == 1 and third != first
        results = reader.race(third)["results"]
        assert results == truth["races"][0]["results"] != reader.race(first)["results"]


def test_robots():
    """robots.txt: allows, is missing, forbids"""
    with Site() as site:
        assert "Disallow: /admin/\n" in site.get("/robots.txt")
    with Site("--no-robots") as site:
        site.ask("/robots.txt").expect(404)
    with Site("--robots-deny") as site:
        assert "Disallow: /\n" in site.get("/hilltoprc/robots.txt")


def test_methods():
    """HEAD has no body, others are refused"""
    with Site() as site:
        head = site.ask("/", method="HEAD").expect(200)
        assert head.body == b"" and int(head.headers["Content-Length"]) == len(site.ask("/").body)
        assert site.ask("/", method="POST").expect(405).headers["Allow"] == "GET, HEAD"


# ---- failures ----

def failing(how, *args):
    """Every second request fails."""
    return Site("--fail-every", "2", "--fail-how", how, *SMALL, *args)


def test_failing_statuses():
    """503, and 429 with Retry-After; the next request is answered"""
    for how in ("503", "429"):
        with failing(how) as site:
            site.ask("/").expect(200)
            site.truth("site")  # does not count
            answer = site.ask("/").expect(int(how))
            assert answer.headers["Retry-After"] == ("1" if how == "429" else None)
            site.ask("/").expect(200)
            assert site.stop() == 0
            assert [line["failure"] for line in site.log] == [None, None, how, None]
            assert site.log[0] == {"method": "GET", "path": "/", "status": 200, "failure": None}


def test_failing_connections():
    """cut: no answer; truncate: half of one"""
    with failing("cut") as site:
        site.ask("/").expect(200)
        try:
            site.ask("/")
            raise AssertionError("answered")
        except (http.client.RemoteDisconnected, ConnectionResetError):
            pass
        site.ask("/").expect(200)
    with failing("truncate") as site:
        whole = site.ask("/").body
        try:
            site.ask("/")
            raise AssertionError("complete")
        except http.client.IncompleteRead as half:
            assert half.partial == whole[:len(whole) // 2]


def test_failing_content():
    """type: an image; redirect: to another name of this host, where the page is"""
    with failing("type") as site:
        assert site.ask("/").headers["Content-Type"] == "text/html; charset=UTF-8"
        assert site.ask("/").headers["Content-Type"] == "image/png"
    with failing("redirect") as site:
        site.ask("/").expect(200)
        port = site.address.rpartition(":")[2]
        assert site.ask("/?a=1").expect(302).headers["Location"] == f"http://localhost:{port}/?a=1"


def test_huge():
    """huge: more than any client should read"""
    with failing("huge") as site:
        page = site.ask("/").body
        body = site.ask("/").expect(200).body
        assert body.startswith(page) and len(body) >= 64 << 20
        connection = http.client.HTTPConnection(site.address, timeout=LIMIT)
        site.ask("/")
        connection.request("GET", "/")
        assert len(connection.getresponse().read(1 << 20)) == 1 << 20
        connection.close()  # in the middle: the site survives
        site.ask("/").expect(200)


def test_slow():
    """slow: a few bytes at a time; a server that stops does not wait for it, nor for a delay"""
    with failing("slow") as site:
        site.ask("/").expect(200)
        connection = http.client.HTTPConnection(site.address, timeout=LIMIT)
        connection.request("GET", "/")
        answer = connection.getresponse()
        assert answer.read1(1 << 20) and not answer.isclosed()
        assert site.stop() == 0
    with Site("--delay", "10m") as site:
        connection = http.client.HTTPConnection(site.address, timeout=LIMIT)
        connection.request("GET", "/")
        assert site.truth("site")["tracks"]  # is not delayed
        assert site.stop(signal.SIGINT) == 0


def test_many_at_once():
    """Threads that read at the same time: each request is counted once"""
    with Site("--fail-every", "4", *SMALL) as site:
        statuses = []

        def read():
            for _ in range(20):
                statuses.append(site.ask("/").status)

        threads = [threading.Thread(target=read) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert statuses.count(503) == 40 and statuses.count(200) == 120, statuses
        assert site.stop() == 0 and len(site.log) == 160


# ---- the command ----

def test_bad_input():
    """Addresses that others could reach, and invalid values, are refused with a reason"""
    for args, text in [
            (["--listen", "0.0.0.0:0"], "loopback"),
            (["--listen", "unix:/tmp/x"], "loopback"),
            (["--listen", "example.com:80"], "not an IP address"),
            (["--style", "wrapped,round"], "no page style 'round'"),
            (["--no-robots", "--robots-deny"], "cannot be combined"),
            (["--races", "201"], "--races"),
            (["--fail-how", "softly"], "--fail-how"),
            (["--newest", "1970-01-01T00:00:00Z"], "--newest")]:
        done = subprocess.run([lib.BINARY, "demo-site", *args], capture_output=True, text=True, timeout=LIMIT)
        assert done.returncode == 64 and text in done.stderr and done.stdout == "", (args, done)
    with Site() as site:
        done = subprocess.run([lib.BINARY, "demo-site", "--listen", site.address], capture_output=True, text=True,
                              timeout=LIMIT)
        assert done.returncode == 69 and "cannot listen" in done.stderr, done


def test_styles_are_documented():
    """docs/INGEST.md lists every style"""
    with open(os.path.join(lib.SOURCE, "docs/INGEST.md"), encoding="utf-8") as file:
        text = file.read()
    assert [style for style in styles() if f"`{style}`" not in text] == []


def test_plain_output():
    """Without --json the only line is the URL"""
    with subprocess.Popen([lib.BINARY, "demo-site", "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE,
                          text=True) as process:
        line = process.stdout.readline()
        connection = http.client.HTTPConnection(line.strip().removeprefix("http://"), timeout=LIMIT)
        connection.request("GET", "/")
        assert connection.getresponse().status == 200
        process.terminate()
        assert process.stdout.read() == "" and process.wait(LIMIT) == 0


lib.main(globals())
