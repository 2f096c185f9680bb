"""/metrics, the alert rules and the dashboard."""
import contextlib
import json
import os
import re
import shutil
import subprocess
import tempfile
import time

import lib
from fleet import Fleet, script

DEPLOY = lib.SOURCE + "/deploy/"


def scrape(s):
    answer = s.get("/metrics", key=None).expect(200)
    assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    return answer.body.decode()


def parse(text):
    """{(name, labels): value}, and the types by family; everything is checked on the way."""
    values, types, helps = {}, {}, {}
    for line in text.splitlines():
        if line.startswith("# HELP "):
            name, _, text = line[7:].partition(" ")
            assert name not in helps and text, line
            helps[name] = text
        elif line.startswith("# TYPE "):
            name, kind = line[7:].split(" ")
            assert name not in types and kind in ("counter", "gauge", "histogram"), line
            types[name] = kind
        else:
            found = re.fullmatch(r'([a-zA-Z_:][a-zA-Z0-9_:]*)(\{(.*)\})? (\S+)', line)
            assert found, line
            labels = tuple(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', found.group(3) or ""))
            key = (found.group(1), tuple(sorted(labels)))
            assert key not in values, line
            values[key] = float(found.group(4))
            family = re.sub(r"_(bucket|sum|count)$", "", found.group(1))
            assert types.get(found.group(1)) or types.get(family) == "histogram", line
    assert set(types) == set(helps)
    return values, types


def value(values, name, **labels):
    return values.get((name, tuple(sorted(labels.items()))))


def promtool(*args, **more):
    assert shutil.which("promtool") is not None, "there is no promtool (package prometheus, see tools/setup)"
    return subprocess.run(["promtool", *args], capture_output=True, text=True, check=False, timeout=60, **more)


@contextlib.contextmanager
def busy(s):
    """Something of everything; yields a lease."""
    c = s.new_client(s.key_for("acme", "operator"))
    held = c.post("/api/v1/locks/acquire", {"key": "pipeline:etl", "holder": "h", "ttl_ms": 60000}).expect(200).json
    c.post("/api/v1/locks/acquire", {"key": "pipeline:etl", "holder": "h2", "wait_ms": 120}).expect(409)
    done = c.post("/api/v1/locks/acquire", {"key": "pipeline:done", "holder": "h"}).expect(200).json
    c.post("/api/v1/locks/renew", {"key": "pipeline:done", "holder": "h", "fence": done["fence"]}).expect(200)
    c.post("/api/v1/locks/release", {"key": "pipeline:done", "holder": "h", "fence": done["fence"]}).expect(200)
    for i in range(3):
        c.post("/api/v1/queues/mail/jobs", {"payload": str(i)}, headers={"Idempotency-Key": f"k{i}"}).expect(201)
    c.post("/api/v1/queues/mail/jobs", {"payload": "0"}, headers={"Idempotency-Key": "k0"}).expect(201)
    job = c.post("/api/v1/queues/mail/claim", {}).expect(200).json["items"][0]
    c.post(f"/api/v1/jobs/{job['id']}/finish", {"token": job["token"]}).expect(200)
    led = c.post("/api/v1/cache/lookup", {"key": "c", "holder": "h"}).expect(202).json
    c.post("/api/v1/cache/fill", {"key": "c", "holder": "h", "token": led["token"], "value": "x", "ttl_ms": 60000}).expect(200)
    for _ in range(3):
        c.post("/api/v1/cache/get", {"key": "c"}).expect(200)
    c.post("/api/v1/fences/check", {"key": "pipeline:etl", "fence": held["fence"] + 1}).expect(409)
    c.close()
    with s.held_run("pipeline:runs", "acme"):
        yield held


def gathered(s, want):
    """Scrape until the values that are gathered from the store are there; the server does so every 5 s."""
    def look():
        values, _ = parse(scrape(s))
        return values if want(values) else None
    return lib.eventually(look, 15, "the gathering", pause=0.2)


def test_pipelines():
    """names and labels exactly; the wait is observed on a conflict too; the age counts from the acquisition."""
    with lib.Server(store="sqlite") as s, busy(s) as held:
        etl = dict(tenant_id="acme", pipeline_id="etl")
        v = gathered(s, lambda v: value(v, "pipeline_active_locks", **etl))
        assert value(v, "pipeline_lock_acquisitions_total", **etl, result="success") == 1
        assert value(v, "pipeline_lock_acquisitions_total", **etl, result="conflict") == 1
        assert value(v, "pipeline_lock_acquisitions_total", **etl, result="error") == 0
        assert value(v, "pipeline_lock_wait_time_seconds_count", **etl) == 2
        assert 0.1 <= value(v, "pipeline_lock_wait_time_seconds_sum", **etl) < 5 * lib.SLOW
        assert value(v, "pipeline_active_locks", **etl) == 1 and value(v, "pipeline_running_count", **etl) == 0
        assert value(v, "pipeline_lock_timeout_seconds", **etl) == 3600 and 0 <= value(v, "pipeline_lock_age_seconds", **etl) < 60
        done = dict(tenant_id="acme", pipeline_id="done")
        assert value(v, "pipeline_lock_duration_seconds_count", **done) == 1 and value(v, "pipeline_active_locks", **done) == 0
        assert value(v, "pipeline_lock_expirations_total", **done) == 0 and value(v, "pipeline_lock_age_seconds", **done) is None
        runs = dict(tenant_id="acme", pipeline_id="runs")
        assert value(v, "pipeline_running_count", **runs) == 1 and value(v, "pipeline_active_locks", **runs) == 1
        # a renewal does not make it young
        age = value(v, "pipeline_lock_age_seconds", **etl)
        with s.new_client(s.key_for("acme", "operator")) as c:
            time.sleep(1.1)
            c.post("/api/v1/locks/renew", {"key": "pipeline:etl", "holder": "h", "fence": held["fence"]}).expect(200)
        older = gathered(s, lambda v: value(v, "pipeline_lock_age_seconds", **etl) != age)
        assert value(older, "pipeline_lock_age_seconds", **etl) >= age + 1
        for (name, labels), _ in v.items():
            if name.startswith("pipeline_"):
                assert {"tenant_id", "pipeline_id"} <= {n for n, _ in labels}, (name, labels)


def test_values():
    with lib.Server(store="sqlite") as s, busy(s):
        q = dict(tenant_id="acme", queue="mail")
        v = gathered(s, lambda v: value(v, "interlock_queue_completed_total", **q))
        assert value(v, "interlock_queue_depth", **q, state="READY") == 2
        assert value(v, "interlock_queue_pushed_total", **q) == 3 and value(v, "interlock_queue_claimed_total", **q) == 1
        assert value(v, "interlock_queue_oldest_seconds", **q) > 0
        assert value(v, "interlock_lock_active", tenant_id="acme") == 2
        assert value(v, "interlock_lock_acquisitions_total", result="success") == 2  # the run was started elsewhere
        assert value(v, "interlock_lock_hold_seconds_count") == 1
        assert value(v, "interlock_cache_lookups_total", result="hit") == 3 and value(v, "interlock_cache_lookups_total", result="lead") == 1
        assert value(v, "interlock_once_replayed_total") == 1 and value(v, "interlock_fence_stale_total") == 1
        assert value(v, "interlock_commit_seconds_count") == value(v, "interlock_batches_total") > 5
        assert value(v, "interlock_batch_size_sum") == value(v, "interlock_batch_ops_total")
        assert value(v, "interlock_http_requests_total", route="lock_acquire", **{"class": "2xx"}) == 2
        assert value(v, "interlock_http_requests_total", route="lock_acquire", **{"class": "4xx"}) == 1
        # The wait that was asked for is not the server's time.
        assert value(v, "interlock_http_request_seconds_sum", route="lock_acquire") < 0.1 * lib.SLOW
        assert value(v, "interlock_http_connections") >= 1 and value(v, "interlock_store_up") == 1 and value(v, "interlock_data_up") == 1
        assert value(v, "process_resident_memory_bytes") > 1e6 and value(v, "process_open_fds") > 5
        assert abs(value(v, "process_start_time_seconds") - time.time()) < 120 and value(v, "process_cpu_seconds_total") > 0
        assert value(v, "interlock_audit_failures_total") == 0 and value(v, "interlock_audit_actions_total") == 2


def refused_writes(s, store):
    """What the guard of a table refuses is counted."""
    psql = lambda text: subprocess.run(["psql", "-X", "-q", store, "-c", text], capture_output=True, text=True).returncode
    assert psql("CREATE TABLE laps (event_id int)") == 0
    subprocess.run([lib.BINARY, "--store", store, "guard", "public.laps", "--key", "event:{event_id}"], check=True)
    assert psql("INSERT INTO laps VALUES (1)") != 0 and psql("INSERT INTO laps VALUES (2)") != 0
    gathered(s, lambda v: value(v, "interlock_guard_refused_total", tenant_id="default", table="public.laps") == 2)


def test_other_engines():
    """What is gathered comes from every engine."""
    with tempfile.TemporaryDirectory(prefix="interlock-metrics-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as folder:
        os.chmod(folder, 0o755)
        tool = [lib.SOURCE + "/tools/test-servers"]
        out = subprocess.run(tool + ["start", folder + "/servers"], capture_output=True, text=True, check=True).stdout
        try:
            postgres, redis = re.search("IL_TEST_POSTGRES='(.*)'", out), re.search("IL_TEST_REDIS='(.*)'", out)
            if postgres is None or redis is None:
                raise lib.Skip("PostgreSQL or Redis is not installed")
            for store in (postgres.group(1), "redis+unix://" + redis.group(1)):
                with lib.Server(store=store) as s, busy(s):
                    runs = dict(tenant_id="acme", pipeline_id="runs")
                    v = gathered(s, lambda v: value(v, "pipeline_running_count", **runs))
                    assert value(v, "pipeline_active_locks", **runs) == 1
                    assert value(v, "interlock_queue_completed_total", tenant_id="acme", queue="mail") == 1
                    assert value(v, "interlock_lock_active", tenant_id="acme") == 2
                    assert value(v, "interlock_commit_seconds_count") > 5
                    is_clean(scrape(s))
                    if store == postgres.group(1):
                        refused_writes(s, store)
        finally:
            subprocess.run(tool + ["stop", folder + "/servers"], check=False)


def test_histograms_are_histograms():
    with lib.Server(store="sqlite") as s, busy(s):
        values, types = parse(scrape(s))
        for family in (name for name, kind in types.items() if kind == "histogram"):
            series = {}
            for (name, labels), n in values.items():
                if name == family + "_bucket":
                    rest = tuple(label for label in labels if label[0] != "le")
                    series.setdefault(rest, []).append((float(dict(labels)["le"].replace("+Inf", "inf")), n))
            for rest, buckets in series.items():
                assert buckets == sorted(buckets) and [n for _, n in buckets] == sorted(n for _, n in buckets), (family, rest)
                assert buckets[-1][0] == float("inf") and buckets[-1][1] == values[(family + "_count", rest)]


def is_clean(text):
    """promtool has nothing to remark but that one name, which is given."""
    done = promtool("check", "metrics", input=text)
    remarks = [line for line in (done.stdout + done.stderr).splitlines() if line]
    assert all(line.startswith("pipeline_running_count ") for line in remarks), remarks
    assert done.returncode == (3 if remarks else 0), done


def test_promtool_accepts_a_scrape():
    """A fresh server's, and after traffic of every kind, runs of pipelines included; test_other_engines: with what is gathered"""
    with Fleet("sqlite") as f:
        is_clean(scrape(f.a))
        f.put("acme", {"good": script("true"), "bad": script("exit 3")})
        f.a.post("/pipelines/reload").expect(200)
        with busy(f.a), f.a.new_client(f.a.key_for("acme")) as c:
            for name, status in (("good", "COMPLETED"), ("bad", "FAILED")):
                run = c.post(f"/pipelines/run/{name}").expect(200).json["pipeline_logging_id"]
                lib.eventually(lambda: c.get(f"/pipelines/runs/{run}").json["status"] == status, what=status)
            c.get("/api/v1/none").expect(404)
            is_clean(scrape(f.a))


def test_labels_are_bounded_and_escaped():
    with lib.Server() as s:
        with s.new_client(s.key_for("acme", "write")) as c:
            ops = [{"op": "acquire", "key": f"pipeline:p{i}", "holder": "h"} for i in range(1000)]
            c.post("/api/v1/batch", {"ops": ops}).expect(200)
            c.post("/api/v1/batch", {"ops": [{"op": "push", "queue": f"q{i}", "payload": "x"} for i in range(1200)]}).expect(200)
            c.post("/api/v1/locks/acquire", {"key": 'pipeline:a"b\\c', "holder": "h"}).expect(200)
        v = gathered(s, lambda v: value(v, "interlock_queue_depth", tenant_id="other", queue="other", state="READY"))
        pipelines = {labels for (name, labels) in v if name == "pipeline_active_locks"}
        assert len(pipelines) == 201, len(pipelines)
        other = dict(tenant_id="other", pipeline_id="other")
        assert value(v, "pipeline_lock_acquisitions_total", **other, result="success") == 801
        assert value(v, "pipeline_active_locks", **other) >= 1
        queues = [labels for (name, labels) in v if name == "interlock_queue_pushed_total"]
        assert len(queues) <= 1001, len(queues)
        assert sum(n for (name, _), n in v.items() if name == "interlock_queue_pushed_total") in (1000, 1200)
    with lib.Server() as s:
        s.post("/api/v1/locks/acquire", {"key": 'pipeline:a"b\\c', "holder": "h"}).expect(200)
        assert 'pipeline_id="a\\"b\\\\c"' in scrape(s)
        parse(scrape(s))


def test_a_scrape_costs_the_store_nothing():
    with lib.Server(store="sqlite") as s:
        before, _ = parse(scrape(s))
        began = time.monotonic()
        for _ in range(300):
            scrape(s)
        took = time.monotonic() - began
        after, _ = parse(scrape(s))
        assert value(after, "interlock_batches_total") - value(before, "interlock_batches_total") < 30
        print(f"# {took / 300 * 1000:.2f} ms per scrape")


def test_metrics_on_an_address_of_their_own():
    with lib.Server(args=["--metrics-listen", "127.0.0.1:0"]) as s:
        import http.client
        host, port = s.metrics_address.rsplit(":", 1)
        conn = http.client.HTTPConnection(host, int(port), timeout=10)
        conn.request("GET", "/metrics")
        assert b"interlock_build_info" in conn.getresponse().read()
        conn.close()


def names_in(expression):
    expression = re.sub(r'"[^"]*"|\[[^\]]*\]|\{[^}]*\}|(by|on|without|ignoring) *\([^)]*\)', " ", expression)
    return {name for name in re.findall(r"[a-zA-Z_:][a-zA-Z0-9_:]*(?! *\()", expression)
            if re.match(r"(interlock|pipeline|process)_", name)}


def test_rules():
    """checked and unit-tested with promtool."""
    done = promtool("check", "rules", DEPLOY + "prometheus/interlock.rules.yml")
    assert done.returncode == 0, done.stdout + done.stderr
    done = promtool("test", "rules", "interlock.rules.test.yml", cwd=DEPLOY + "prometheus")
    assert done.returncode == 0, done.stdout + done.stderr
    done = promtool("check", "config", DEPLOY + "prometheus/prometheus.yml")
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_alert_is_tested():
    with open(DEPLOY + "prometheus/interlock.rules.yml", encoding="utf-8") as file:
        alerts = set(re.findall(r"- alert: (\w+)", file.read()))
    with open(DEPLOY + "prometheus/interlock.rules.test.yml", encoding="utf-8") as file:
        tested = set(re.findall(r"alertname: (\w+)", file.read()))
    assert alerts == tested, alerts ^ tested
    assert {"PipelineLockExpiring", "HighLockContention", "PossibleLockLeak"} <= alerts


def test_every_summary_says_what_to_do():
    """A summary is often all that is shown: what has happened, then what to do about it."""
    todo = r"[:;] (add|check|find|look|make|raise|review|run|see|speed up|trigger|warm) "
    with open(DEPLOY + "prometheus/interlock.rules.yml", encoding="utf-8") as file:
        rules = file.read().split("- alert: ")[1:]
    for rule in rules:
        summary = re.search(r"summary: (.*?)\n +description: ", rule, re.S).group(1)
        assert re.search(todo, " ".join(summary.split())), rule.split("\n")[0]
    assert len(rules) > 20


def test_what_rules_and_dashboard_name_exists():
    with lib.Server(store="sqlite") as s, busy(s):
        gathered(s, lambda v: value(v, "pipeline_active_locks", tenant_id="acme", pipeline_id="etl"))
        values, types = parse(scrape(s))
        known = {name for name, _ in values} | {name + "_bucket" for name, kind in types.items() if kind == "histogram"}
        with open(DEPLOY + "prometheus/interlock.rules.yml", encoding="utf-8") as file:
            rules = file.read()
        named = set()
        for found in re.finditer(r"expr: (?:\|\n((?: {10,}.*\n)+)|(.*)\n)", rules):
            named |= names_in(found.group(1) or found.group(2))
        assert len(named) > 15, named
        with open(DEPLOY + "grafana/interlock.json", encoding="utf-8") as file:
            board = json.load(file)
        ids = [panel["id"] for panel in board["panels"]]
        assert len(ids) == len(set(ids)) and board["uid"] == "interlock"
        for panel in board["panels"]:
            for target in panel.get("targets", ()):
                found = names_in(target["expr"])
                assert found, target
                named |= found
        for variable in board["templating"]["list"][1:]:
            named |= set(re.findall(r"label_values\((\w+)", variable["definition"]))
        assert named <= known, named - known
        assert len(named) > 40, len(named)


def test_the_docs_name_what_there_is():
    """docs/METRICS.md has a row for every metric of a scrape."""
    with lib.Server(store="sqlite") as s, busy(s):
        _, types = parse(scrape(s))
    with open(lib.SOURCE + "/docs/METRICS.md", encoding="utf-8") as file:
        rows = set(re.findall(r"^\| `([a-z_]+)` \|", file.read(), re.M))
    assert set(types) <= rows, set(types) - rows
    assert rows - set(types) <= {"interlock_commit_microseconds_total"}, rows - set(types)


lib.main(globals())
