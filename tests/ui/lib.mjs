// What the tests of the admin page share: a server of their own, a browser, TAP.
//
// INTERLOCK_BIN is the binary, UI_MODULES a folder with the modules of ui/package-lock.json,
// CHROMIUM another browser than the one that is found, UI_ONLY a text that the names of the tests
// to run contain, UI_SHOT a file for a picture of what failed.
import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { fileURLToPath } from "node:url";
import { delimiter, join } from "node:path";

const BINARY = process.env.INTERLOCK_BIN ?? "interlock";
export const MODULES =
  process.env.UI_MODULES ?? fileURLToPath(new URL("../../ui", import.meta.url));
const modules = createRequire(join(MODULES, "package.json"));
const { chromium } = modules("playwright-core");
const AXE = readFileSync(modules.resolve("axe-core/axe.min.js"), "utf8");

export const SLOW = Number(process.env.IL_TEST_SLOW ?? 1);
export const SOON = 10_000 * SLOW; /* for whatever must happen, but not at once */

/** A server on a free port with a store in a temporary folder, and a key for each role. */
export class Server {
  constructor({ pipelines = {} } = {}) {
    this.folder = mkdtempSync(join(tmpdir(), "interlock-ui-"));
    this.store = `sqlite:${this.folder}/store.db`;
    this.listen = "127.0.0.1:0";
    this.admin = this.newKey("admin");
    this.key = this.admin.key;
    this.args = [];
    this.env = {};
    if (Object.keys(pipelines).length > 0) {
      mkdirSync(join(this.folder, "pipelines/default"), { recursive: true });
      for (const [name, text] of Object.entries(pipelines)) {
        writeFileSync(join(this.folder, "pipelines/default", `${name}.yaml`), text);
      }
      this.args = ["--pipelines", join(this.folder, "pipelines")];
    }
  }

  createKey(role) {
    return this.newKey(role).key;
  }

  /** Of a new API key {key, id, …}. */
  newKey(role, name = role) {
    const args = ["--store", this.store, "key", "create", "--role", role, "--name", name, "--json"];
    return JSON.parse(execFileSync(BINARY, args, { encoding: "utf8" }));
  }

  /** Starts it, on the same port as before; ready when it says where it listens. */
  async start() {
    const args = [
      "--store",
      this.store,
      "serve",
      "--listen",
      this.listen,
      "--allow-root",
      "--log-format",
      "json",
      ...this.args,
    ];
    const env = { ...process.env, ...this.env };
    const server = (this.process = spawn(BINARY, args, {
      stdio: ["ignore", "inherit", "pipe"],
      env,
    }));
    const log = [];
    const address = await new Promise((resolve, reject) => {
      let text = "";
      server.once("exit", (status) =>
        reject(new Error(`the server ended with status ${status}:\n${log.join("\n")}`)),
      );
      server.stderr.setEncoding("utf8").on("data", (part) => {
        text += part;
        for (let end; (end = text.indexOf("\n")) >= 0; text = text.slice(end + 1)) {
          const line = text.slice(0, end);
          log.push(line);
          const event = line.startsWith("{") ? JSON.parse(line) : {};
          const where = /http:\/\/(\S+)$/.exec(event.message ?? "");
          if (event.event === "server.listening" && where) resolve(where[1]);
        }
      });
    });
    this.listen = address;
    this.url = `http://${address}`;
    return this;
  }

  async stop() {
    if (!this.process || this.process.exitCode !== null || this.process.signalCode !== null) return;
    const ended = new Promise((resolve) => this.process.once("exit", resolve));
    this.process.kill("SIGKILL");
    await ended;
  }

  async close() {
    await this.stop();
    rmSync(this.folder, { recursive: true, force: true });
  }

  async api(method, path, body, key = this.key) {
    const headers = { "X-API-Key": key, "Content-Type": "application/json" };
    const answer = await fetch(`${this.url}/api/v1${path}`, {
      method,
      headers,
      body: body && JSON.stringify(body),
    });
    const data = await answer.json();
    if (!answer.ok) throw new Error(`${method} ${path}: ${JSON.stringify(data)}`);
    return data;
  }

  post(path, body) {
    return this.api("POST", path, body);
  }
}

const DEMO_LINK = /http:\/\/\S+\/ui\/#link=\S+/;

/** `interlock demo`, in a folder of its own. */
export class Demo {
  constructor() {
    this.folder = mkdtempSync(join(tmpdir(), "interlock-ui-demo-"));
    const env = { ...process.env, HOME: this.folder, TMPDIR: this.folder };
    this.process = spawn(BINARY, ["demo"], { env, stdio: ["ignore", "pipe", "inherit"] });
    this.output = "";
    this.process.stdout.setEncoding("utf8").on("data", (part) => (this.output += part));
    this.ended = new Promise((resolve) => this.process.once("exit", resolve));
  }

  /** Waits until it has printed a text. */
  async says(text) {
    while (!this.output.includes(text)) {
      const more = new Promise((resolve) => this.process.stdout.once("data", resolve));
      const status = await Promise.race([more.then(() => undefined), this.ended]);
      if (status !== undefined) throw new Error(`the demo ended with ${status}: ${this.output}`);
    }
  }

  /** The link that signs in, once. */
  async link() {
    await this.says("Ctrl-C");
    return DEMO_LINK.exec(this.output)[0];
  }

  /** Ends it as Ctrl-C does; returns its exit status. */
  async close() {
    this.process.kill("SIGINT");
    const status = await this.ended;
    rmSync(this.folder, { recursive: true, force: true });
    return status;
  }
}

function findBrowser() {
  if (process.env.CHROMIUM) return process.env.CHROMIUM;
  for (const folder of (process.env.PATH ?? "").split(delimiter)) {
    for (const name of ["chromium", "chromium-browser", "google-chrome"]) {
      if (existsSync(join(folder, name))) return join(folder, name);
    }
  }
  console.log(
    "Bail out! no Chromium found: run tools/setup test, or name another browser in $CHROMIUM",
  );
  process.exit(1);
}

const QUIET = [
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

export async function startBrowser() {
  // Chromium's own sandbox refuses to run as root, as it does in a container.
  const args = process.getuid() === 0 ? ["--no-sandbox", ...QUIET] : QUIET;
  return chromium.launch({ executablePath: findBrowser(), args });
}

/** A page of its own context; `problems` collects errors and refused loads. */
export async function newPage(browser, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(SOON);
  page.problems = [];
  page.on("pageerror", (e) => page.problems.push(`error: ${e.message}`));
  page.on("console", (m) => {
    if (/Content Security Policy/i.test(m.text())) page.problems.push(m.text());
  });
  return page;
}

export async function signIn(page, server, key = server.key, hash = "/") {
  await page.goto(`${server.url}/ui/#${hash}`);
  await page.getByLabel("API key").fill(key);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.locator(".shell").waitFor();
}

/** Goes to a view as a link would, and waits until it has read what it shows. */
export async function go(page, hash) {
  await page.evaluate((to) => (location.hash = to), hash);
  await page.waitForFunction((to) => location.hash === `#${to}`, hash);
  await page.locator("main h1").first().waitFor();
  await page.waitForFunction(() => !document.querySelector("main .loading"));
}

/**
 * What axe finds that is serious or worse, of all its rules or of some. The policy of the page
 * refuses script tags.
 */
export async function seriousFaults(page, rules) {
  await page.evaluate(AXE);
  const { violations } = await page.evaluate(
    (runOnly) =>
      globalThis.axe.run(document, { resultTypes: ["violations"], ...(runOnly && { runOnly }) }),
    rules,
  );
  return violations
    .filter((v) => v.impact === "serious" || v.impact === "critical")
    .map(
      (v) =>
        `${v.id}: ${v.nodes.map((n) => `${n.target.join(" ")} (${n.failureSummary})`).join("; ")}`,
    );
}

/** The rules that can tell a color scheme from another: the document is the same. */
export const COLOR_RULES = ["color-contrast"];

export function check(condition, message) {
  if (!condition) throw new Error(message);
}

export function same(got, wanted, what) {
  const [a, b] = [JSON.stringify(got), JSON.stringify(wanted)];
  check(a === b, `${what}: got ${a}, wanted ${b}`);
}

/** Runs the tests in order and prints TAP; the exit status says whether all passed. */
export async function main(tests) {
  const chosen = Object.entries(tests).filter(([name]) => name.includes(process.env.UI_ONLY ?? ""));
  console.log(`1..${chosen.length}`);
  let failed = chosen.length === 0;
  for (const [i, [name, test]] of chosen.entries()) {
    try {
      await test();
      console.log(`ok ${i + 1} - ${name}`);
    } catch (e) {
      failed = true;
      console.log(`not ok ${i + 1} - ${name}`);
      console.log(String(e.stack).replace(/^/gm, "# "));
    }
  }
  return failed ? 1 : 0;
}
