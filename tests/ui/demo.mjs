// `interlock demo` as somebody meets it: the link that it prints, and the buttons of the page.
import { check, Demo, main, newPage, same, seriousFaults, SOON, startBrowser } from "./lib.mjs";

const demo = new Demo();
let browser, page;

const panel = (name) => page.getByRole("region", { name });

/** Presses a button and waits for what has happened; returns the values beside their names. */
async function press(name, last) {
  await panel(name).getByRole("button", { name }).click();
  await panel(name).locator("dt").filter({ hasText: last }).waitFor({ timeout: 3 * SOON });
  const [names, values] = await Promise.all([
    panel(name).locator("dt").allTextContents(),
    panel(name).locator("dd").allTextContents(),
  ]);
  return Object.fromEntries(names.map((n, i) => [n, values[i]]));
}

const state = (text) => page.locator("main .badge").filter({ hasText: text }).first();

const tests = {
  async "the link signs in once, without a password"() {
    await page.goto(await demo.link());
    await page.locator(".shell").waitFor();
    check(!page.url().includes("link="), "the link is still in the address");
    const other = await newPage(browser);
    await other.goto(await demo.link());
    await other.getByText("This link was used already or has expired").waitFor();
    await other.context().close();
  },

  async "every button says what it does and what to watch"() {
    await page.getByRole("link", { name: "Try it" }).click();
    for (const name of ["Trigger it ten times at once", "Kill the worker", "Pause the holder"]) {
      await panel(name).getByText("What to watch:").waitFor();
    }
    same(await seriousFaults(page), [], "axe");
  },

  async "of ten triggers one starts a run"() {
    const done = await press("Trigger it ten times at once", "Triggers that joined it");
    same([done["Runs started"], done["Triggers that joined it"]], ["1", "9"], "started, joined");
    await page.getByRole("link", { name: done.Run }).click();
    await state("running").waitFor();
    await page.goBack();
  },

  async "the job of a killed worker is claimed again"() {
    const done = await press("Kill the worker", "Lease expires");
    same(done["Failed attempt"], "1", "attempt");
    await page.getByRole("link", { name: done.Job }).click();
    await state("completed").waitFor({ timeout: 6 * SOON });
    await page.getByText("2 of").first().waitFor();
    await page.goBack();
  },

  async "the key of a paused holder passes on, with a higher fence"() {
    const done = await press("Pause the holder", "Lease expires");
    await page.getByRole("link", { name: done.Key }).click();
    await page.waitForFunction(
      ([text, fence]) => {
        const found = [...document.querySelectorAll("main dd, main td")].map((e) => e.textContent);
        return !found.includes(text) && found.some((f) => /^\d{16}$/.test(f) && BigInt(f) > BigInt(fence));
      },
      [done.Holder, done.Fence],
      { timeout: 6 * SOON },
    );
  },

  async "Ctrl-C ends it"() {
    same(await demo.close(), 0, "exit status");
  },
};

try {
  browser = await startBrowser();
  page = await newPage(browser);
  process.exitCode = await main(tests);
  if (page.problems.length > 0) {
    console.log(`# ${page.problems.join("\n# ")}`);
    process.exitCode = 1;
  }
} finally {
  await browser?.close();
  await demo.close();
}
