// The admin page in a real browser, against a real server.
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import {
  check,
  COLOR_RULES,
  go,
  main,
  MODULES,
  newPage,
  same,
  seriousFaults,
  Server,
  SLOW,
  SOON,
  signIn,
  startBrowser,
} from "./lib.mjs";

const LIVE_MS = 2000 * SLOW; /* within which the page shows what has changed */
const SCRIPT = `<img src=x onerror="window.hurt=1">`;
const SLOW_PIPELINE = `
pipeline_id: slow
description: counts to a hundred
steps:
- step_id: count
  type: command
  shell: true
  run: for i in $(seq 100); do echo line $i; sleep 0.2; done
`;

/** The views that need no object, by their path, and their headings. */
const VIEWS = {
  "/": "Overview",
  "/locks": "Locks",
  "/locks?tab=waiting": "Locks",
  "/order": "Lock order",
  "/runs": "Runs",
  "/pipelines": "Pipelines",
  "/queues": "Queues",
  "/ingestion": "Ingestion",
  "/campus": "Campus",
  "/usage": "Usage",
  "/invariants": "Invariants",
  "/cache": "Cache & idempotency",
  "/audit": "Audit",
  "/keys": "Keys & tenants",
  "/settings": "Settings",
};

const browser = await startBrowser();
const empty = await new Server().start();
const server = await new Server({ pipelines: { slow: SLOW_PIPELINE } }).start();

/** Runs `test` with a page of its own, which must not have had errors. */
async function onPage(test, options) {
  const page = await newPage(browser, options);
  try {
    await test(page);
    same(page.problems, [], "errors of the page");
  } catch (e) {
    if (process.env.UI_SHOT) await page.screenshot({ path: process.env.UI_SHOT });
    throw e;
  } finally {
    await page.context().close();
  }
}

const signedIn = (test, { on = server, key = on.key, hash = "/", ...options } = {}) =>
  onPage(async (page) => {
    await signIn(page, on, key, hash);
    await test(page);
  }, options);

const row = (page, text) => page.locator("main [data-row]").filter({ hasText: text });
const button = (page, name) => page.getByRole("button", { name, exact: true });
const acquire = (key, more = {}) =>
  server.post("/locks/acquire", { key, holder: `holder of ${key}`, ttl_ms: 600_000, ...more });

/** Cancels a run of a pipeline, and waits until it has ended: the next trigger starts another. */
async function cancelled(id) {
  await server.api("DELETE", `/pipelines/runs/${id}`, { reason: "the test is over" });
  while ((await server.api("GET", `/runs/${id}?wait=5s`)).state === "RUNNING") continue;
}

/** Pushes a job and lets its only attempt fail. */
async function failedJob(queue, error) {
  const { id } = await server.post(`/queues/${queue}/jobs`, {
    payload: { to: SCRIPT },
    max_attempts: 1,
  });
  const { items } = await server.post(`/queues/${queue}/claim`, { worker: "w", limit: 1 });
  same(
    items.map((j) => j.id),
    [id],
    "the claimed job",
  );
  await server.post(`/jobs/${id}/fail`, { token: items[0].token, error });
  return id;
}

const tests = {
  async types_are_right() {
    const tsc = join(MODULES, "node_modules/typescript/bin/tsc");
    try {
      execFileSync(process.execPath, [tsc, "--noEmit", "-p", join(MODULES, "tsconfig.json")], {
        encoding: "utf8",
      });
    } catch (e) {
      throw new Error(e.stdout);
    }
  },

  async sign_in_and_out() {
    await onPage(async (page) => {
      await page.goto(`${server.url}/ui/`);
      await page.getByLabel("API key").fill("sk_default_wrong");
      await button(page, "Sign in").click();
      await page.getByRole("alert").filter({ hasText: "Unknown, revoked or expired key" }).waitFor();
      await page.getByLabel("API key").fill(server.key);
      await button(page, "Sign in").click();
      await page.getByRole("heading", { name: "Overview" }).waitFor();
      await page.reload();
      await page.getByRole("heading", { name: "Overview" }).waitFor();
      await button(page, "Sign out").click();
      await page.getByText("Signed out.").waitFor();
      await page.reload();
      await page.getByLabel("API key").waitFor();
    });
  },

  async links_sign_in_once() {
    const token = "a-token-of-at-least-32-characters";
    const mine = new Server();
    mine.env.INTERLOCK_LINK = `${mine.admin.id} ${token}`;
    await mine.start();
    try {
      await onPage(async (page) => {
        await page.goto(`${mine.url}/ui/#link=${token}`);
        await page.getByRole("heading", { name: "Overview" }).waitFor();
        same(await page.evaluate(() => location.hash), "#/", "the token is gone from the address");
      });
      await onPage(async (page) => {
        await page.goto(`${mine.url}/ui/#link=${token}`);
        await page.getByText("This link was used already").waitFor();
      });
    } finally {
      await mine.close();
    }
  },

  async session_ends_with_its_key() {
    const { key, id } = server.newKey("read", "short-lived");
    await signedIn(
      async (page) => {
        await page.getByRole("heading", { name: "Runs" }).waitFor();
        await server.api("DELETE", `/admin/api-keys/${id}`);
        await page.getByText("Your session has ended").waitFor();
        same(
          await page.evaluate(() => location.hash),
          "#/runs?state=FAILED",
          "the address is kept",
        );
        await page.getByLabel("API key").fill(server.key);
        await button(page, "Sign in").click();
        await page.getByRole("heading", { name: "Runs" }).waitFor();
      },
      { key, hash: "/runs?state=FAILED" },
    );
  },

  async session_expires_with_its_key() {
    const { key } = await server.post("/admin/api-keys", {
      tenant: "default",
      name: "for seconds",
      role: "read",
      expires_in_ms: 5000 * SLOW,
    });
    await signedIn(
      async (page) => {
        await page.getByText("Your session has ended").waitFor({ timeout: 5000 * SLOW + SOON });
        same(await seriousFaults(page), [], "axe on the sign-in page");
      },
      { key },
    );
  },

  async views_without_data_say_what_to_do() {
    await signedIn(
      async (page) => {
        for (const [path, title] of Object.entries(VIEWS)) {
          await go(page, path);
          same(await page.locator("main h1").first().innerText(), title, path);
          same(await seriousFaults(page), [], `axe on ${path}`);
        }
        await go(page, "/locks");
        await page.getByText("Nothing is locked").waitFor();
        await go(page, "/queues");
        await page.getByText("No queues").waitFor();
        await go(page, "/runs");
        await page.getByText("Nothing has run yet").waitFor();
      },
      { on: empty },
    );
  },

  async views_with_data_are_accessible() {
    await acquire("invoice:1", { place: "billing.c:42" });
    const job = await failedJob("mail", "SMTP 550");
    const { pipeline_logging_id: run } = await server.post("/pipelines/run/slow", {});
    const objects = [
      "/locks/invoice%3A1",
      `/runs/${run}`,
      "/queues/mail",
      "/queues/mail?tab=settings",
      `/jobs/${job}`,
      "/pipelines/slow",
    ];
    for (const colorScheme of ["light", "dark"]) {
      const rules = colorScheme === "dark" ? COLOR_RULES : undefined;
      await signedIn(
        async (page) => {
          for (const path of [...Object.keys(VIEWS), ...objects]) {
            await go(page, path);
            same(await seriousFaults(page, rules), [], `axe on ${path}, ${colorScheme}`);
          }
        },
        { colorScheme },
      );
    }
    await cancelled(run);
  },

  async numbers_equal_their_lists() {
    const mine = await new Server().start();
    try {
      const lock = (key, holder, more) =>
        mine.post("/locks/acquire", { key, holder, ttl_ms: 600_000, ...more });
      for (const key of ["n:1", "n:2", "n:3"]) await lock(key, "me");
      const waiting = ["a", "b"].map((holder) =>
        lock("n:1", holder, { wait_ms: 30_000 }).catch(() => undefined),
      );
      await mine.post("/queues/numbers/jobs", {
        items: [{ payload: 1 }, { payload: 2 }, { payload: 3, delay_ms: 600_000 }],
      });
      await signedIn(
        async (page) => {
          const tile = async (title, value) => {
            await page
              .locator(".tile")
              .filter({ hasText: title })
              .locator(".tile-value", { hasText: new RegExp(`^${value}$`) })
              .waitFor();
          };
          await tile("Jobs ready", 2);
          await tile("Jobs scheduled", 1);
          for (const [title, value] of [
            ["Locks held", 3],
            ["Waiting", 2],
          ]) {
            await go(page, "/");
            await tile(title, value);
            await page.locator("a.tile").filter({ hasText: title }).click();
            await page
              .locator("main [data-row]")
              .nth(value - 1)
              .waitFor();
            same(await page.locator("main [data-row]").count(), value, title);
          }
        },
        { on: mine },
      );
      await mine.stop();
      await Promise.all(waiting);
    } finally {
      await mine.close();
    }
  },

  async problems_come_first_however_much_there_is() {
    const mine = await new Server().start();
    try {
      const batch = (ops) => mine.post("/batch", { ops });
      const many = [...Array(210).keys()].map((i) => String(i).padStart(3, "0"));
      await batch(
        many.map((i) => ({ op: "acquire", key: `a:${i}`, holder: "me", ttl_ms: 600_000 })),
      );
      const ttl_ms = 20_000 * SLOW;
      const { id } = await mine.post("/runs", { key: "stuck", holder: "w", ttl_ms });
      await mine.post("/locks/acquire", { key: "z:last", holder: "w", ttl_ms });
      await batch(many.map((i) => ({ op: "run_start", key: `b:${i}`, ttl_ms: 600_000 })));
      await signedIn(
        async (page) => {
          const attention = page.getByRole("region", { name: "Needs attention" });
          const late = { timeout: ttl_ms };
          await attention.getByText(/^z:last: last renewed .* ago, .* left$/).waitFor(late);
          const stuck = attention.locator("li").filter({ hasText: "stuck" });
          await stuck.getByText("Run may be stuck").waitFor();
          same(await stuck.count(), 1, "a run is told once, not also as its lease");
          same(await stuck.getByRole("link").getAttribute("href"), `#/runs/${id}`, "the link");
        },
        { on: mine },
      );
    } finally {
      await mine.close();
    }
  },

  async times_and_cut_texts_are_whole_on_hover() {
    const key = `hover:${"x".repeat(300)}`;
    await acquire(key, { holder: "me" });
    await signedIn(
      async (page) => {
        const exact = /\d{4}-\d\d-\d\dT\d\d:\d\d/;
        const title = (locator) => locator.first().getAttribute("title");
        await row(page, key).waitFor();
        same(await row(page, key).locator("time").count(), 2, "its age, and its last renewal");
        for (const time of await row(page, key).locator("time").all())
          check(exact.test(await title(time)), "a time of the row");
        check(exact.test(await title(row(page, key).locator(".bar"))), "the time left");
        same(await title(row(page, key).locator("td")), key, "the key");
        await go(page, `/locks/${encodeURIComponent(key)}`);
        check(exact.test(await title(page.locator(".facts time"))), "the view of a key");
      },
      { hash: "/locks?prefix=hover" },
    );
  },

  async opposite_lock_orders_are_red_with_both_places() {
    const lock = (key, holder, place) =>
      server.post("/locks/acquire", { key, holder, place, ttl_ms: 600_000 });
    await lock("account:1", "pay", "pay.c:10");
    await lock("ledger:1", "pay", "pay.c:20");
    await lock("ledger:2", "refund", "refund.c:30");
    await lock("account:2", "refund", "refund.c:40");
    await signedIn(
      async (page) => {
        await row(page, "refund.c:30").waitFor();
        same(await page.locator(".graph-edge.bad").count(), 2, "red edges");
        same(await page.locator(".graph-node.bad").count(), 2, "red classes");
        for (const [held, ...places] of [
          ["account", "pay.c:10", "pay.c:20"],
          ["ledger", "refund.c:30", "refund.c:40"],
        ]) {
          const cells = await row(page, places[0]).locator("td").allInnerTexts();
          const [first, at, , then, result] = cells;
          same([first, at, then, result], [held, ...places, "can deadlock"], "a row");
        }
        same(await seriousFaults(page), [], "axe on the graph");
        await go(page, "/");
        await page.getByText("account, ledger are acquired in opposite orders").click();
        await page.getByRole("heading", { name: "Lock order" }).waitFor();
      },
      { hash: "/order" },
    );
  },

  async breaking_a_lock_is_in_the_audit() {
    await acquire("break:me");
    await signedIn(
      async (page) => {
        await button(page, "Break…").click();
        const dialog = page.getByRole("dialog");
        await dialog.getByRole("button", { name: "Break", exact: true }).click();
        check(await dialog.isVisible(), "a reason is required");
        await dialog.getByLabel("Reason").fill("its machine is gone");
        await dialog.getByLabel("Free the key at once").check();
        same(await seriousFaults(page), [], "axe on the dialog");
        await dialog.getByRole("button", { name: "Break", exact: true }).click();
        await dialog.waitFor({ state: "detached" });
        await page.getByText("broke the lease of break:me").waitFor();
        await page.getByText("The key is free").waitFor();
        await go(page, "/audit");
        await page.locator("main").getByText("its machine is gone").first().waitFor();
      },
      { hash: "/locks/break%3Ame" },
    );
  },

  async failed_jobs_are_retried() {
    const ids = [
      await failedJob("retry", "no route"),
      await failedJob("retry", "no route"),
      await failedJob("retry", "no route"),
    ];
    await signedIn(
      async (page) => {
        await page.getByText("no route").waitFor();
        await button(page, "Retry").click();
        await page.locator(".facts .badge", { hasText: "ready" }).waitFor();
        same((await server.api("GET", `/jobs/${ids[0]}`)).state, "READY", "the job");
        await go(page, "/queues/retry?tab=failed");
        await row(page, ids[1]).waitFor();
        await button(page, "Retry all failed…").click();
        await page.getByRole("dialog").getByRole("button", { name: "Retry all" }).click();
        await page.getByText("retried 2 jobs").waitFor();
        await page.getByText("No such jobs").waitFor();
      },
      { hash: `/jobs/${ids[0]}` },
    );
  },

  async queues_are_paused_and_resumed() {
    await server.post("/queues/pausing/jobs", { payload: "x" });
    await signedIn(
      async (page) => {
        await button(page, "Pause…").click();
        await page.getByRole("dialog").getByLabel("Reason").fill("the mail server is down");
        await page.getByRole("dialog").getByRole("button", { name: "Pause" }).click();
        await page.getByText("No jobs are claimed: the mail server is down").waitFor();
        await button(page, "Resume…").click();
        await page.getByRole("dialog").getByRole("button", { name: "Resume" }).click();
        await button(page, "Pause…").waitFor();
      },
      { hash: "/queues/pausing" },
    );
  },

  async changes_are_shown_within_two_seconds() {
    await signedIn(
      async (page) => {
        await page.getByText("No matching locks").waitFor();
        await page.evaluate(() => (window.loadedOnce = true));
        await acquire("live:1");
        await row(page, "live:1").waitFor({ timeout: LIVE_MS });
        await server.post("/locks/break", { key: "live:1", reason: "gone", now: true });
        await row(page, "live:1").waitFor({ state: "detached", timeout: LIVE_MS });
        check(await page.evaluate(() => window.loadedOnce), "the page was loaded again");
      },
      { hash: "/locks?prefix=live" },
    );
  },

  async lost_connections_are_told_and_resumed() {
    const mine = await new Server().start();
    try {
      await signedIn(
        async (page) => {
          await page.getByText("Nothing is locked").waitFor();
          await page.evaluate(() => (window.loadedOnce = true));
          await mine.stop();
          await page.locator(".lost-banner").waitFor();
          await page.getByText("Connection lost", { exact: true }).waitFor();
          await mine.start();
          await page.locator(".lost-banner").waitFor({ state: "detached" });
          await mine.post("/locks/acquire", { key: "back:1", holder: "me", ttl_ms: 60_000 });
          await row(page, "back:1").waitFor();
          check(await page.evaluate(() => window.loadedOnce), "the page was loaded again");
        },
        { on: mine, hash: "/locks" },
      );
    } finally {
      await mine.close();
    }
  },

  async readers_see_no_buttons_they_may_not_press() {
    await acquire("read:only");
    const job = await failedJob("reading", "no");
    await signedIn(
      async (page) => {
        for (const [path, text, names] of [
          ["/locks/read%3Aonly", "holder of read:only", ["Break…"]],
          [`/jobs/${job}`, "no", ["Retry", "Cancel…"]],
          ["/queues/reading", job, ["Retry", "Retry all failed…", "Pause…"]],
        ]) {
          await go(page, path);
          await page.locator("main").getByText(text).first().waitFor();
          for (const name of names) same(await button(page, name).count(), 0, `${name} on ${path}`);
        }
        const nav = page.getByRole("navigation", { name: "Views" });
        for (const name of ["Audit", "Keys & tenants", "Settings"]) {
          same(await nav.getByRole("link", { name }).count(), 0, name);
        }
        await go(page, "/settings");
        await page.getByText("Page not found").waitFor();
      },
      { key: server.createKey("read") },
    );
  },

  async keys_with_a_prefix_see_no_views_that_refuse_them() {
    const newKey = async (prefix) => {
      const body = { tenant: "default", name: `limited to ${prefix}`, role: "admin", prefix };
      return (await server.post("/admin/api-keys", body)).key;
    };
    const nav = (page) => page.getByRole("navigation", { name: "Views" });
    await signedIn(
      async (page) => {
        const links = await nav(page).getByRole("link").all();
        const views = await Promise.all(links.map((link) => link.innerText()));
        same(
          views.filter((view) => ["Ingestion", "Campus", "Usage"].includes(view)),
          [],
          "views of more than names",
        );
        check(views.includes("Locks") && views.includes("Settings"), `others: ${views}`);
        for (const [path, title] of Object.entries(VIEWS)) {
          await go(page, path);
          const shown = views.includes(title);
          const heading = await page.locator("main h1").first().innerText();
          same(heading, shown ? title : "Page not found", path);
          same(await page.locator("main .error-box").count(), 0, `refusals on ${path}`);
        }
        await go(page, "/");
        await page.getByText("Locks held").waitFor();
        same(await page.getByText("Last hour").count(), 0, "samples");
        await go(page, "/pipelines");
        same(await button(page, "Reload files").count(), 0, "Reload files");
      },
      { key: await newKey("a:") },
    );
    await signedIn(
      async (page) => {
        await nav(page).getByRole("link", { name: "Usage" }).waitFor();
      },
      { key: await newKey("usage") },
    );
    await signedIn(
      async (page) => {
        await button(page, "Reload files").waitFor();
      },
      { key: await newKey("pipe"), hash: "/pipelines" },
    );
  },

  async addresses_lead_to_filters_and_pages() {
    for (let i = 0; i < 60; i++) await acquire(`page:${String(i).padStart(2, "0")}`);
    await signedIn(
      async (page) => {
        await row(page, "page:00").waitFor();
        same(await page.locator("main [data-row]").count(), 50, "rows of the first page");
        await button(page, "Next").click();
        await row(page, "page:59").waitFor();
        same(await page.locator("main [data-row]").count(), 10, "rows of the second page");
        const second = page.url();
        await page.goBack();
        await row(page, "page:00").waitFor();
        await page.goto("about:blank");
        await page.goto(second);
        await row(page, "page:59").waitFor();
        await button(page, "First").click();
        await row(page, "page:00").waitFor();
        await page.getByLabel("Key starts with").fill("page:3");
        await row(page, "page:00").waitFor({ state: "detached" });
        await row(page, "page:39").waitFor();
        same(await page.locator("main [data-row]").count(), 10, "filtered rows");
        await page.waitForFunction(() => location.hash === "#/locks?prefix=page%3A3");
      },
      { hash: "/locks?prefix=page" },
    );
  },

  async scripts_of_users_are_shown_as_text() {
    await acquire(SCRIPT, { holder: SCRIPT, place: SCRIPT, meta: SCRIPT });
    const job = await failedJob("scripts", SCRIPT);
    const { id, fence } = await server.post("/runs", {
      key: `run:${SCRIPT}`,
      holder: SCRIPT,
      by: SCRIPT,
      meta: SCRIPT,
    });
    await server.post(`/runs/${id}/finish`, {
      holder: SCRIPT,
      fence,
      state: "FAILED",
      error: SCRIPT,
      log: SCRIPT,
    });
    const waiting = server
      .post("/locks/acquire", { key: SCRIPT, holder: `w${SCRIPT}`, wait_ms: 60_000 * SLOW })
      .catch(() => undefined);
    await acquire(`${SCRIPT}:inner`, { holder: SCRIPT, place: SCRIPT });
    await server.post("/queues/scripts/pause", { reason: SCRIPT });
    await server.post("/queues/working/jobs", {
      payload: SCRIPT,
      unique_key: SCRIPT,
      group: SCRIPT,
    });
    const { items } = await server.post("/queues/working/claim", { worker: SCRIPT, limit: 1 });
    await server.post(`/jobs/${items[0].id}/heartbeat`, {
      token: items[0].token,
      message: SCRIPT,
    });
    const running = await server.post("/runs", {
      key: "run:staged",
      holder: "me",
      ttl_ms: 600_000,
    });
    await server.post(`/runs/${running.id}/stage`, {
      holder: "me",
      fence: running.fence,
      stage: SCRIPT,
    });
    const joined = await server.post("/pipelines/run/slow", { trigger_by: SCRIPT });
    await acquire("broken:1");
    await server.post("/locks/break", { key: "broken:1", reason: SCRIPT, now: true });
    await server.post("/admin/tenants", { id: "scripts", name: SCRIPT });
    await signedIn(async (page) => {
      const views = [
        "/",
        "/locks",
        "/locks?tab=waiting",
        `/locks/${encodeURIComponent(SCRIPT)}`,
        "/order",
        "/runs",
        `/runs/${id}`,
        `/runs/${running.id}`,
        `/runs/${joined.pipeline_logging_id}`,
        "/pipelines/slow",
        "/queues/scripts",
        "/queues/working",
        `/jobs/${job}`,
        `/jobs/${items[0].id}`,
        "/audit",
        "/keys?tab=tenants",
        `/locks?prefix=${encodeURIComponent(SCRIPT)}`,
      ];
      for (const path of views) {
        await go(page, path);
        const shown = page.locator("main").getByText("<img src=x").filter({ visible: true });
        await shown.first().waitFor();
        same(await page.locator("main img").count(), 0, `images on ${path}`);
        check(!(await page.evaluate(() => window.hurt)), `a script ran on ${path}`);
      }
    });
    await server.post("/locks/break", { key: SCRIPT, reason: "the test is over", now: true });
    await cancelled(joined.pipeline_logging_id);
    await waiting;
  },

  async a_duplicate_trigger_joins_the_run() {
    const first = await server.post("/pipelines/run/slow", { trigger_by: "ann" });
    const second = await server.post("/pipelines/run/slow", { trigger_by: "bob" });
    same(second.pipeline_logging_id, first.pipeline_logging_id, "the run");
    await signedIn(
      async (page) => {
        await page.getByText("1 duplicate trigger joined this run").waitFor();
        await row(page, "bob").waitFor();
        await page.getByRole("log").getByText("line 1", { exact: false }).waitFor();
        await button(page, "Cancel…").click();
        await page.getByRole("dialog").getByLabel("Reason").fill("no longer needed");
        await page.getByRole("dialog").getByRole("button", { name: "Cancel run" }).click();
        await page.locator(".facts .badge", { hasText: "cancelled" }).waitFor();
        await button(page, "Run again").click();
        await page.waitForFunction(
          (old) => !location.hash.includes(old),
          first.pipeline_logging_id,
        );
        await page.locator(".facts .badge", { hasText: "running" }).waitFor();
      },
      { hash: `/runs/${first.pipeline_logging_id}` },
    );
  },

  async the_keyboard_reaches_everything() {
    await acquire("keys:a");
    await acquire("keys:b");
    await signedIn(
      async (page) => {
        await row(page, "keys:b").waitFor();
        await page.keyboard.press("j");
        await page.keyboard.press("j");
        await page.keyboard.press("k");
        await page.keyboard.press("Enter");
        await page.getByText("holder of keys:a").first().waitFor();
        await page.keyboard.press("g");
        await page.keyboard.press("q");
        await page.getByRole("heading", { name: "Queues" }).waitFor();
        await page.keyboard.press("/");
        await page.keyboard.type("none-like-this");
        await page.getByText("No matching queues").waitFor();
        await page.keyboard.press("Escape");
        await page.keyboard.press("?");
        await page.getByRole("dialog", { name: "Keyboard" }).waitFor();
        await page.keyboard.press("Escape");
        await page.getByRole("dialog", { name: "Keyboard" }).waitFor({ state: "detached" });
      },
      { hash: "/locks?prefix=keys" },
    );
  },

  async phones_show_every_view_without_sideways_scrolling() {
    await signedIn(
      async (page) => {
        for (const path of Object.keys(VIEWS)) {
          await go(page, path);
          const wider = await page.evaluate(
            () => document.querySelector("main").scrollWidth - innerWidth,
          );
          check(wider <= 0, `${path} is ${wider} pixels too wide`);
        }
        await button(page, "Menu").click();
        await page.getByRole("link", { name: "Queues" }).click();
        await page.getByRole("heading", { name: "Queues" }).waitFor();
        await page.context().setOffline(true);
        await page.locator(".lost-banner").waitFor();
        for (const width of [390, 320]) {
          await page.setViewportSize({ width, height: 700 });
          same(
            await page.evaluate(() => document.querySelector(".shell").scrollWidth - innerWidth),
            0,
            `pixels that the page is too wide without a connection, on ${width}`,
          );
        }
        await page.context().setOffline(false);
        await page.locator(".lost-banner").waitFor({ state: "detached" });
      },
      { viewport: { width: 390, height: 844 } },
    );
  },
};

let status = 1;
try {
  status = await main(tests);
} finally {
  await browser.close();
  await empty.close();
  await server.close();
}
process.exitCode = status;
