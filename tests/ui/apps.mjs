// The views of apps and of administration in a real browser, against a server with a generated site
// of race results, pipelines, invariants, a campus and an invented source of usage.
import { execFileSync, spawn } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import {
  check,
  COLOR_RULES,
  go,
  main,
  newPage,
  same,
  seriousFaults,
  Server,
  signIn,
  startBrowser,
} from "./lib.mjs";

const BINARY = process.env.INTERLOCK_BIN ?? "interlock";
const SCRIPT = `<img src=x onerror="window.hurt=1">`;
const DAY_MS = 86_400_000;

const PIPELINE = `
pipeline_id: gated
description: '${SCRIPT}'
parameters: {day: null, region: eu}
steps:
- {step_id: first, type: command, run: [sh, -c, 'until [ -e "$INTERLOCK_PARAM_day" ]; do sleep 0.1; done']}
- {step_id: beside, type: command, run: [echo, "{region}"]}
- {step_id: last, type: command, run: [echo, done], depends_on: [first, beside]}
`;

const CHECKS = `
- name: held
  description: 'Finds a row: ${SCRIPT}'
  connection: app
  sql: SELECT 7 AS id, '${SCRIPT}' AS owner
- name: leans
  description: Finds a row that is only worth a warning
  severity: warning
  connection: app
  sql: SELECT 8 AS id
- name: holds
  description: Finds nothing
  connection: app
  sql: SELECT 1 WHERE 0
`;

/** Waits for the first line of a program's output. */
function firstLine(child) {
  return new Promise((resolve, reject) => {
    let text = "";
    child.once("exit", (status) => reject(new Error(`it ended with status ${status}`)));
    child.stdout.setEncoding("utf8").on("data", (part) => {
      text += part;
      if (text.includes("\n")) resolve(text.split("\n")[0].trim());
    });
  });
}

/** The generated site; each page takes a while, so that an ingestion can be seen running. */
async function startSite() {
  const args = [
    "demo-site",
    "--listen",
    "127.0.0.1:0",
    "--entries",
    "16",
    "--races",
    "6",
    "--laps",
    "4",
  ];
  const child = spawn(BINARY, args, { stdio: ["ignore", "pipe", "inherit"] });
  const url = await firstLine(child);
  return { url, child };
}

/** A server with every app in use. */
async function startFull(site) {
  const server = new Server({ pipelines: { gated: PIPELINE } });
  const checks = `${server.folder}/checks`;
  const config = `${server.folder}/config.yml`;
  mkdirSync(`${checks}/default`, { recursive: true });
  writeFileSync(`${checks}/default/a.yml`, CHECKS);
  execFileSync("python3", [
    "-c",
    "import sqlite3, sys; sqlite3.connect(sys.argv[1]).execute('CREATE TABLE t (a)')",
    `${server.folder}/app.db`,
  ]);
  writeFileSync(
    config,
    `connections: {app: "sqlite:${server.folder}/app.db"}
checks: ${checks}
liverc_url: ${site.url}/{slug}
ingest_request_delay_ms: 400
usage:
  source: {type: generator}
`,
  );
  execFileSync(BINARY, ["--store", server.store, "campus", "seed"], { stdio: "ignore" });
  server.args.push("--config", config);
  return server.start();
}

let browser, empty, site, server;

async function signedIn(test, { on = server, key = on.key, hash = "/", ...options } = {}) {
  const page = await newPage(browser, options);
  try {
    await signIn(page, on, key, hash);
    await test(page);
    same(page.problems, [], "errors of the page");
    check(!(await page.evaluate(() => window.hurt)), "a script of a user ran");
  } finally {
    await page.context().close();
  }
}

const row = (page, text) => page.locator("main [data-row]").filter({ hasText: text });
const button = (page, name) => page.getByRole("button", { name, exact: true });
const panel = (page, name) => page.getByRole("region", { name });
const inDialog = (page, name) =>
  page.getByRole("dialog").getByRole("button", { name, exact: true });
const day = (back) => new Date(Date.now() - back * DAY_MS).toISOString().slice(0, 10);

/** The number beside a name in a list of facts. */
const fact = (page, name) =>
  page
    .locator(".facts > div")
    .filter({ has: page.getByText(name, { exact: true }) })
    .locator("dd");

async function ended(id) {
  for (;;) {
    const run = await server.api("GET", `/runs/${id}?wait=5s`);
    if (!["PENDING", "RUNNING"].includes(run.state)) return run;
  }
}

/** Reads the events of a track of the site. */
async function readEvents() {
  await ended((await server.post("/tracks/sync", {})).job_id);
  await ended((await server.post("/events/sync", { track_slug: "hilltoprc" })).job_id);
}

/** An event with all its laps. */
async function ingestedEvent() {
  await readEvents();
  const [event] = (await server.api("GET", "/events?search=100003")).items;
  await ended((await server.post(`/events/${event.id}/ingest`, { on_conflict: "join" })).job_id);
  return server.api("GET", `/events/${event.id}`);
}

const tests = {
  async views_of_apps_that_are_not_in_use_say_what_to_do() {
    await signedIn(
      async (page) => {
        for (const [path, text] of [
          ["/pipelines", "interlock serve --pipelines"],
          ["/ingestion", "No events yet"],
          ["/ingestion?tab=runs", "No ingestions yet"],
          ["/ingestion?tab=drivers", "No links yet"],
          ["/campus", "campus seed"],
          ["/usage", "Usage is not configured"],
          ["/cache", "Enter the full key that the program passed to the cache"],
          ["/cache?tab=counts", "Nothing is cached"],
          ["/cache?tab=once", "interlock once"],
          ["/audit", "key.create"],
        ]) {
          await go(page, path);
          await page.locator("main").getByText(text).first().waitFor();
          same(await page.locator("main .error-box").count(), 0, `errors on ${path}`);
        }
      },
      { on: empty },
    );
  },

  async a_second_trigger_shows_the_running_run() {
    const gate = `${server.folder}/gate-1`;
    await signedIn(
      async (page) => {
        await button(page, "Trigger").click();
        check(
          (await page.locator("input:invalid").count()) === 1,
          "the parameter `day` must be given",
        );
        await page.getByLabel("day").fill(gate);
        await button(page, "Trigger").click();
        await panel(page, "Trigger").getByText("Started.").waitFor();
        await page.locator(".graph-node.busy", { hasText: "first" }).waitFor();
        await page.locator(".graph-node.ok", { hasText: "beside" }).waitFor();
        await button(page, "Trigger").click();
        await panel(page, "Trigger")
          .getByText("Already running: your trigger joined that run")
          .waitFor();
        const { items } = await server.api("GET", "/pipelines/runs?pipeline_id=gated");
        same(items.length, 1, "runs");
        await panel(page, "Trigger").getByRole("link").click();
        await page.waitForFunction(
          (id) => location.hash === `#/runs/${id}`,
          items[0].pipeline_logging_id,
        );
        writeFileSync(gate, "");
        await ended(items[0].pipeline_logging_id);
        await go(page, "/pipelines/gated");
        await page.locator(".graph-node.ok", { hasText: "last" }).waitFor();
        await go(page, "/pipelines");
        await row(page, "gated").getByText("completed").waitFor();
        await page.getByText(SCRIPT).waitFor();
      },
      { hash: "/pipelines/gated" },
    );
  },

  async pipeline_files_are_reloaded_and_faults_shown() {
    const bad = `${server.folder}/pipelines/default/bad.yaml`;
    writeFileSync(bad, "pipeline_id: bad\nsteps: []\n");
    await signedIn(
      async (page) => {
        await button(page, "Reload files").click();
        await panel(page, "1 invalid file").getByText("bad.yaml:2: steps").waitFor();
        writeFileSync(
          bad,
          "pipeline_id: good\nsteps: [{step_id: a, type: command, run: [echo]}]\n",
        );
        await button(page, "Reload files").click();
        await row(page, "good").waitFor();
        same(await panel(page, "1 invalid file").count(), 0, "faults");
      },
      { hash: "/pipelines" },
    );
  },

  async an_event_is_ingested_once_and_seen_on_its_way() {
    await signedIn(
      async (page) => {
        const form = (name) => page.getByRole("form", { name });
        await form("Tracks").getByRole("button").click();
        await form("Tracks").getByText("completed").waitFor();
        await form("Events of a track").getByLabel("Slug of the track").fill("hilltoprc");
        await form("Events of a track").getByRole("button").click();
        await form("Events of a track").getByText("completed").waitFor();

        await go(page, "/ingestion");
        const first = page.locator("main [data-row]").first();
        const name = await first.locator("td").first().innerText();
        await button(page, `Ingest ${name}`).click();
        await first.getByRole("meter", { name: "Progress" }).waitFor();
        same(
          await button(page, `Ingest ${name}`).count(),
          0,
          "a button that could start a second one",
        );
        await first.getByText("Details").click();
        await row(page, "Storing races, results and laps").waitFor();
        await fact(page, "State").getByText("completed").waitFor();
        await fact(page, "Stored").getByText("6 races").waitFor();

        await go(page, "/ingestion?depth=laps_full");
        await button(page, `Re-ingest ${name}`).waitFor();
        same(await page.locator("main [data-row]").count(), 1, "events with all laps");
        await row(page, name).locator(".row-link").click();
        await panel(page, "6 races").waitFor();
        await panel(page, "6 races").locator(".row-link").first().click();
        await panel(page, "Results").locator("[data-row]").first().waitFor();
      },
      { hash: "/ingestion?tab=site" },
    );
  },

  async an_ingestion_that_runs_already_is_linked() {
    await readEvents();
    const { items } = await server.api("GET", "/events?search=100001");
    await signedIn(
      async (page) => {
        const form = page.getByRole("form", { name: "One event" });
        await form.getByLabel("Its id at the site").fill("100001");
        await form.getByLabel("Slug of its track").fill("hilltoprc");
        const { job_id: job } = await server.post(`/events/${items[0].id}/ingest`, {
          force: true,
        });
        await form.getByRole("button").click();
        await form.getByText("not started again").waitFor();
        await form.getByRole("link", { name: "Show it" }).click();
        await page.waitForFunction((id) => location.hash === `#/ingestion/jobs/${id}`, job);
        await button(page, "Cancel…").click();
        await page.getByRole("dialog").getByLabel("Reason").fill("wrong event");
        await inDialog(page, "Cancel ingestion").click();
        await fact(page, "State").getByText("cancelled").waitFor();
        await page.getByText("wrong event").first().waitFor();
      },
      { hash: "/ingestion?tab=site" },
    );
  },

  async a_button_pressed_too_late_leads_to_the_running_ingestion() {
    await readEvents();
    const [event] = (await server.api("GET", "/events?search=100002")).items;
    await signedIn(
      async (page) => {
        // The page has not heard of the run yet.
        await page.route("**/ui/api/runs?*", (route) =>
          route.fulfill({ json: { items: [], next: null } }),
        );
        await go(page, "/ingestion?search=100002");
        const start = page.getByRole("button", { name: /^(Re-i|I)ngest / });
        await start.waitFor();
        const { job_id: job } = await server.post(`/events/${event.id}/ingest`, {
          force: true,
        });
        await start.click();
        await page.getByRole("link", { name: /^already running for/ }).click();
        await page.waitForFunction((id) => location.hash === `#/ingestion/jobs/${id}`, job);
      },
      { hash: "/settings" },
    );
  },

  async drivers_are_linked_with_users() {
    const event = await ingestedEvent();
    const { results } = await server.api("GET", `/races/${event.races[0].id}`);
    const first = results[0].name;
    // The other user has the family name of the drivers: alike enough to be suggested for some.
    const near = `Mina ${first.split(" ").at(-1)}`;
    await server.post("/ingestion/users", {
      users: [
        { email: "a@example.org", name: first },
        { email: "b@example.org", name: near },
      ],
    });
    await ended((await server.post(`/events/${event.id}/ingest`, { force: true })).job_id);
    const { items } = await server.api("GET", "/ingestion/links?state=suggested");
    const second = items[0].driver_name;
    await signedIn(
      async (page) => {
        await row(page, first).getByText("confirmed").waitFor();
        await button(page, `Reject ${first}`).click();
        await row(page, first).getByText("rejected").waitFor();
        await button(page, `Confirm ${second}`).first().click();
        await row(page, second).getByText("confirmed").first().waitFor();
        await page.getByLabel("State").selectOption("rejected");
        await page.waitForFunction(() => document.querySelectorAll("main [data-row]").length === 1);
      },
      { hash: "/ingestion?tab=drivers" },
    );
  },

  async a_failed_ingestion_says_why() {
    const { job_id: job } = await server.post("/events/sync", { track_slug: "nowhere" });
    await ended(job);
    await signedIn(
      async (page) => {
        await page.getByRole("alert").getByText("HTTP status 404").waitFor();
        await page.getByRole("alert").getByText("CONNECTOR_HTTP_ERROR").waitFor();
        await page.getByRole("alert").getByText("stage: fetch_events").waitFor();
      },
      { hash: `/ingestion/jobs/${job}` },
    );
  },

  async events_are_searched_and_sorted_by_the_server() {
    await readEvents();
    const sorted = (await server.api("GET", "/events?sort=name")).items.map((e) => e.name);
    await signedIn(
      async (page) => {
        await page.locator("main [data-row]").first().waitFor();
        await page.getByLabel("Sort").selectOption("by name");
        await page.waitForFunction(() => location.hash.includes("sort=name"));
        await page.waitForFunction(
          (name) => document.querySelector("main [data-row] td").innerText === name,
          sorted[0],
        );
        same(
          await page.locator("main [data-row] td:first-child").allInnerTexts(),
          sorted,
          "the order",
        );
        await page.getByLabel("Name, track or id").fill("100002");
        await page.waitForFunction(() => document.querySelectorAll("main [data-row]").length === 1);
        await page.getByLabel("Name, track or id").fill("no such event");
        await page.getByText("No matching events").waitFor();
        await button(page, "Show all events").click();
        await row(page, sorted[0]).waitFor();
      },
      { hash: "/ingestion" },
    );
  },

  async looking_at_usage_fetches_nothing() {
    await signedIn(
      async (page) => {
        const state = (date) => row(page, date).locator("td").nth(1);
        await row(page, day(0)).waitFor();
        same(
          await page.locator("main [data-row]", { hasText: "missing" }).count(),
          7,
          "missing days",
        );
        same(
          (await server.api("GET", "/admin/usage/cache/metrics")).cacheRebuilds,
          0,
          "days that were built",
        );
        await button(page, "Refresh today").click();
        await state(day(0)).getByText("fresh").waitFor();
        await button(page, "Fetch 6 days").click();
        await page.getByText("All days are stored").waitFor();
        await state(day(6)).getByText("fresh").waitFor();
        same(await page.getByRole("button", { name: /^Fetch/ }).count(), 0, "a button to fetch");

        const { metrics, days } = await server.post("/admin/usage/analytics", {
          startDate: day(6),
          endDate: day(0),
        });
        same(days.length, 7, "days");
        await fact(page, "Requests")
          .getByText(metrics.api_requests.toLocaleString("en-US"))
          .waitFor();
        await page.getByRole("link", { name: "By user" }).click();
        const parts = await server.post("/admin/usage/by-user", {
          startDate: day(6),
          endDate: day(0),
        });
        same(
          await page.locator("main [data-row] td:first-child").allInnerTexts(),
          parts.items.map((p) => p.name),
          "users by spend",
        );
        const [file] = await Promise.all([
          page.waitForEvent("download"),
          button(page, "Export CSV").click(),
        ]);
        same(file.suggestedFilename(), "usage.csv", "the file");
      },
      { hash: "/usage?days=7" },
    );
  },

  async a_rebuild_of_usage_shows_its_run() {
    await signedIn(
      async (page) => {
        await button(page, "Rebuild…").click();
        await page.getByRole("dialog").getByLabel("Also complete days").check();
        same(await seriousFaults(page), [], "axe on the dialog");
        await inDialog(page, "Rebuild").click();
        await page.getByText("Last rebuild:").waitFor();
        await page.locator("main p", { hasText: "Last rebuild:" }).getByText("completed").waitFor();
        await button(page, "Rebuild…").click();
        await inDialog(page, "Rebuild").click();
        await page.getByRole("dialog").getByRole("alert").waitFor();
      },
      { hash: "/usage?days=7" },
    );
  },

  async invariants_are_checked_and_offenders_shown() {
    await signedIn(
      async (page) => {
        await button(page, "Check all now").click();
        await row(page, "held").getByText("broken").waitFor();
        same(
          await page.locator("main [data-row] td:first-child").first().innerText(),
          "held",
          "the broken one comes first",
        );
        await row(page, "holds").getByText("passed").waitFor();
        await row(page, "held").locator(".row-link").click();
        await panel(page, "1 new offender").getByText(SCRIPT).waitFor();
        await panel(page, "History").locator("[data-row]").first().waitFor();
        const before = await panel(page, "History").locator("[data-row]").count();
        await button(page, "Check now").click();
        await page.waitForFunction(
          (n) => document.querySelectorAll("[aria-label=History] [data-row]").length > n,
          before,
        );
        await page.goBack();
        await row(page, "leans").getByText("broken").waitFor();
        await page.getByLabel("Show").selectOption("problems");
        same(await page.locator("main [data-row]").count(), 2, "problems");
        await go(page, "/");
        const attention = page.getByRole("region", { name: "Needs attention" });
        for (const text of ["held: 1 new offender", "leans: 1 new offender"])
          await attention.getByText(text).waitFor();
      },
      { hash: "/invariants" },
    );
  },

  async one_cached_value_is_looked_up_and_dropped() {
    const key = "rates & more";
    const { holder, token } = await server.post("/cache/lookup", { key });
    await server.post("/cache/fill", {
      key,
      holder,
      token,
      value: { EUR: SCRIPT },
      ttl_ms: 600_000,
    });
    await signedIn(
      async (page) => {
        await page.getByLabel("Key of a cached value").fill(key);
        await button(page, "Look up").click();
        await page.getByText("window.hurt").waitFor();
        await page.reload();
        await fact(page, "State").getByText("fresh").waitFor();
        await go(page, "/cache?tab=counts&prefix=rates");
        same(await fact(page, "Values").innerText(), "1", "values");
        await page.goBack();
        await button(page, "Drop…").click();
        await inDialog(page, "Drop value").click();
        await page.getByText("Nothing is cached under this key").waitFor();
      },
      { hash: "/cache" },
    );
  },

  async one_idempotency_key_is_looked_up() {
    execFileSync(BINARY, ["--store", server.store, "once", "order:7", "--", "echo", "done"], {
      stdio: "ignore",
    });
    await signedIn(
      async (page) => {
        await page.getByLabel("Idempotency key").fill("order:7");
        await button(page, "Look up").click();
        await page.getByText("its response is stored and replayed").waitFor();
        await page.getByLabel("Idempotency key").fill("order:8");
        await button(page, "Look up").click();
        await page.getByText("This key is not in use").waitFor();
      },
      { hash: "/cache?tab=once" },
    );
  },

  async a_new_key_is_shown_once_and_revoked() {
    await signedIn(
      async (page) => {
        await button(page, "Create key…").click();
        await page.getByRole("dialog").getByLabel("Name", { exact: true }).fill(SCRIPT);
        await page.locator("dialog select[name=role]").selectOption("operator");
        await page
          .getByRole("dialog")
          .getByLabel("Additional permissions")
          .fill("admin:usage");
        await page.locator("dialog select[name=days]").selectOption("in a week");
        same(await seriousFaults(page), [], "axe on the dialog");
        await inDialog(page, "Create key").click();
        const key = await page.locator(".new-key .copyable-text").innerText();
        await server.api("GET", "/status", undefined, key);
        await button(page, "I have copied it").click();
        same(await page.getByText(key).count(), 0, "the key on the page");
        await page.reload();
        const mine = row(page, SCRIPT);
        await mine.getByText("admin:usage").waitFor();
        await mine.getByText("in 6 d").waitFor();
        await mine.getByRole("button", { name: /^Revoke/ }).click();
        await inDialog(page, "Revoke key").click();
        await mine.getByText("revoked").waitFor();
        const refused = await fetch(`${server.url}/api/v1/status`, {
          headers: { "X-API-Key": key },
        });
        same(refused.status, 401, "the revoked key");
        await row(page, "admin").getByText("yours").waitFor();
        await go(page, "/audit?action=key.revoke");
        await row(page, "key.revoke")
          .getByRole("button", { name: /^Show entry/ })
          .click();
        await page.getByRole("group", { name: "entry", exact: true }).waitFor();
      },
      { hash: "/keys" },
    );
  },

  async tenants_are_created_and_limited() {
    await signedIn(
      async (page) => {
        await button(page, "Create tenant…").click();
        await page.getByRole("dialog").getByLabel("Id").fill("globex");
        await page.getByRole("dialog").getByLabel("Live locks").fill("20");
        await inDialog(page, "Create tenant").click();
        await row(page, "globex").getByText("live locks: 20").waitFor();
        await button(page, "Change tenant globex").click();
        await page.getByRole("dialog").getByLabel("Name").fill("Globex Corporation");
        await inDialog(page, "Save").click();
        await row(page, "Globex Corporation").waitFor();
        await button(page, "Create tenant…").click();
        await page.getByRole("dialog").getByLabel("Id").fill("globex");
        await inDialog(page, "Create tenant").click();
        await page.getByRole("dialog").getByRole("alert").getByText("ALREADY_EXISTS").waitFor();
      },
      { hash: "/keys?tab=tenants" },
    );
  },

  async settings_show_where_values_come_from() {
    await signedIn(
      async (page) => {
        await row(page, "liverc_url").getByText("config.yml:3").waitFor();
        await page.getByLabel("Changed from the default").check();
        await row(page, "log_format").getByText("--log-format").waitFor();
        same(await row(page, "pepper_file").count(), 0, "settings with their default");
        same(await fact(page, "Engine of the store").innerText(), "sqlite", "the engine");
      },
      { hash: "/settings" },
    );
  },

  async tournaments_are_enrolled_in_and_completed() {
    await signedIn(
      async (page) => {
        await row(page, "SEED-002").locator(".row-link").click();
        await page.getByRole("heading", { name: "SEED-002" }).waitFor();
        const { id, enrolled } = await server.api("GET", "/campus/tournaments/seed-tournament-002");
        const user = (
          await server.post("/campus/users", { email: "ada@example.org", credits: 500 })
        ).id;
        await server.post(`/campus/users/${user}/licenses`, {});
        await page.getByLabel("Id of a user").fill(user);
        await button(page, "Enroll").click();
        await fact(page, "Players")
          .getByText(`${enrolled + 1}/`)
          .waitFor();
        await button(page, "Enroll").click();
        await page.getByText("ALREADY_ENROLLED").waitFor();
        await button(page, "Close enrollment…").click();
        await inDialog(page, "Close enrollment").click();
        await fact(page, "State").getByText("enrollment closed").waitFor();
        same(
          (await server.api("GET", `/campus/tournaments/${id}`)).state,
          "ENROLLMENT_CLOSED",
          "the state",
        );
        await go(page, "/campus");
        await row(page, "enrollment").filter({ hasText: "User" }).getByText("0 %").waitFor();
        await page.getByLabel("Id", { exact: true }).fill(user);
        await button(page, "Open").click();
        await page.getByRole("heading", { name: "ada@example.org" }).waitFor();
        same(await fact(page, "Credits").innerText(), "450", "credits");
      },
      { hash: "/campus" },
    );
  },

  async views_with_data_are_accessible_and_fit_a_phone() {
    const event = await ingestedEvent();
    const { items: runs } = await server.api("GET", "/runs?prefix=ingest:&limit=1");
    const views = [
      ...[
        "/pipelines",
        "/pipelines/gated",
        "/ingestion",
        "/ingestion?tab=site",
        "/ingestion?tab=runs",
        "/ingestion?tab=drivers",
        `/ingestion/events/${event.id}`,
      ],
      ...[
        `/ingestion/races/${event.races[0].id}`,
        `/ingestion/jobs/${runs[0].id}`,
        "/usage",
        "/usage?tab=user",
        "/invariants",
        "/invariants/held",
      ],
      ...[
        "/campus",
        "/campus/tournaments/seed-tournament-001",
        "/campus/users/seed-user-001",
        "/campus/sessions/seed-session-001",
      ],
      ...[
        "/cache?key=nothing",
        "/cache?tab=counts",
        "/audit",
        "/keys",
        "/keys?tab=tenants",
        "/settings",
      ],
    ];
    for (const options of [
      { colorScheme: "light" },
      { colorScheme: "dark" },
      { viewport: { width: 390, height: 844 } },
    ]) {
      const rules = options.colorScheme === "dark" ? COLOR_RULES : undefined;
      await signedIn(async (page) => {
        for (const path of views) {
          await go(page, path);
          const faults = await seriousFaults(page, rules);
          same(faults, [], `axe on ${path}, ${JSON.stringify(options)}`);
          const wider = await page.evaluate(
            () => document.querySelector("main").scrollWidth - innerWidth,
          );
          check(wider <= 0, `${path} is ${wider} pixels too wide`);
          same(await page.locator("main img").count(), 0, `images on ${path}`);
        }
      }, options);
    }
  },

  async readers_of_usage_can_fetch_but_not_rebuild() {
    const { key } = await server.post("/admin/api-keys", {
      tenant: "default",
      name: "usage",
      role: "none",
      permissions: ["admin:usage"],
    });
    await signedIn(
      async (page) => {
        await row(page, day(0)).waitFor();
        await button(page, "Export CSV").waitFor();
        for (const name of ["Refresh today", "Rebuild…"])
          same(await button(page, name).count(), 0, name);
      },
      { key, hash: "/usage" },
    );
  },

  async readers_see_no_buttons_they_may_not_press() {
    const event = await ingestedEvent();
    await signedIn(
      async (page) => {
        for (const [path, text, names] of [
          ["/pipelines", "gated", ["Reload files"]],
          ["/pipelines/gated", "On conflict", ["Trigger"]],
          ["/ingestion", event.name, [/^Ingest/, /^Re-ingest/]],
          [`/ingestion/events/${event.id}`, event.source_event_id, [/^Ingest/]],
          ["/campus/tournaments/seed-tournament-001", "SEED-001", ["Enroll", /…$/]],
          ["/invariants", "held", ["Check all now"]],
          ["/invariants/held", "History", ["Check now"]],
        ]) {
          await go(page, path);
          await page.locator("main").getByText(text).first().waitFor();
          for (const name of names)
            same(
              await page.locator("main").getByRole("button", { name }).count(),
              0,
              `${name} on ${path}`,
            );
        }
        const nav = page.getByRole("navigation", { name: "Views" });
        for (const name of ["Usage", "Audit", "Keys & tenants", "Settings"])
          same(await nav.getByRole("link", { name }).count(), 0, name);
      },
      { key: server.createKey("read") },
    );
  },
};

let status = 1;
try {
  browser = await startBrowser();
  empty = await new Server().start();
  site = await startSite();
  server = await startFull(site);
  status = await main(tests);
} finally {
  await browser?.close();
  await empty?.close();
  await server?.close();
  site?.child.kill();
}
process.exitCode = status;
