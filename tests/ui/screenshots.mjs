// screenshots.mjs FOLDER [light|dark|phone...]: pictures of every view of the page, with the data of
// `interlock demo`. `make screenshots` makes those of README and docs.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { Demo, go, newPage, startBrowser } from "./lib.mjs";

const LOOKS = {
  light: { colorScheme: "light" },
  dark: { colorScheme: "dark" },
  phone: { colorScheme: "light", viewport: { width: 390, height: 844 }, deviceScaleFactor: 2 },
};
const VIEWS = {
  overview: "/",
  demo: "/demo",
  locks: "/locks",
  lock: "/locks/export%3Acustomers",
  order: "/order",
  runs: "/runs",
  pipelines: "/pipelines",
  pipeline: "/pipelines/export_and_check",
  queues: "/queues",
  queue: "/queues/mails",
  ingestion: "/ingestion",
  campus: "/campus",
  usage: "/usage",
  invariants: "/invariants",
  cache: "/cache",
  audit: "/audit",
  keys: "/keys",
  settings: "/settings",
};
const CHARTS_MS = Number(process.env.UI_CHARTS_MS ?? 90_000); /* so that charts show a load */

const [folder, ...looks] = process.argv.slice(2);
const demo = new Demo();
let browser;
try {
  mkdirSync(folder, { recursive: true });
  browser = await startBrowser();
  const first = await newPage(browser);
  await first.goto(await demo.link());
  await first.locator(".shell").waitFor();
  const origin = new URL(first.url()).origin;
  await demo.says("sample data is loaded");
  await new Promise((resolve) => setTimeout(resolve, CHARTS_MS));
  const storageState = await first.context().storageState();
  for (const look of looks.length > 0 ? looks : Object.keys(LOOKS)) {
    const page = await newPage(browser, { ...LOOKS[look], storageState });
    await page.goto(`${origin}/ui/`);
    await page.locator(".shell").waitFor();
    for (const [name, path] of Object.entries(VIEWS)) {
      await go(page, path);
      await page.screenshot({ path: join(folder, `${name}-${look}.png`) });
    }
    await page.context().close();
  }
} finally {
  await browser?.close();
  await demo.close();
}
