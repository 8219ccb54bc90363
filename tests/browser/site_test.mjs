// The site in a real browser: every page loads without a request, a complaint or anything to scroll
// sideways; sorting and filters do what they say; hostile text is text; axe finds nothing serious.
//
// Usage: site_test.mjs ASSAY ROOT [--modules FOLDER] [--images FOLDER]. Needs node, chromium and the
// packages of package.json, which scripts/setup.sh --browser installs; without them the exit status
// is 77. With --images two pictures for the README are written.
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import fs from "node:fs";
import { createRequire } from "node:module";
import os from "node:os";
import path from "node:path";
import { pathToFileURL } from "node:url";

const [assay, root] = process.argv.slice(2, 4).map((p) => path.resolve(p));
const option = (name) => {
  const at = process.argv.indexOf(name);
  return at < 0 ? "" : path.resolve(process.argv[at + 1]);
};

function skip(why) {
  console.log(`skipped: ${why}: scripts/setup.sh --browser installs it`);
  process.exit(77);
}

const modules = option("--modules") || path.join(root, "build", "browser");
const require = createRequire(path.join(modules, "package.json"));
let chromium, axe;
try {
  ({ chromium } = require("playwright-core"));
  axe = fs.readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
} catch {
  skip(`playwright-core or axe-core is not in ${modules}`);
}
const browserPath = ["chromium", "chromium-browser", "google-chrome"]
  .map((name) => spawnSync("sh", ["-c", `command -v ${name}`], { encoding: "utf8" }).stdout.trim())
  .find((found) => found);
if (!browserPath) skip("no chromium");

// --- sites to look at --------------------------------------------------------------------------

const folder = fs.mkdtempSync(path.join(os.tmpdir(), "assay_site."));
process.on("exit", () => fs.rmSync(folder, { recursive: true, force: true }));

function board(out, results, work) {
  const args = ["--root", root, "board", "--out", out, "--results", results];
  execFileSync(assay, args, { cwd: work, stdio: ["ignore", "pipe", "inherit"] });
  return out;
}

// Copies: a command that reads a board of an older assay rewrites it.
function copyOfResults(name) {
  const results = path.join(folder, name);
  execFileSync("python3", [path.join(root, "tests", "support", "shipped_board.py"), root, results]);
  return results;
}
const shipped = board(path.join(folder, "shipped"), copyOfResults("results"), root);

// The shipped board with a model, a case, a detail and a note that would like to be markup.
const HOSTILE = "<img src=x onerror=alert(1)>\"'\u202e";
function hostileResults() {
  const results = copyOfResults("hostile results");
  const rows = JSON.parse(fs.readFileSync(path.join(results, "scoreboard.json"), "utf8"));
  const entry = structuredClone(rows.entries.find((e) => e.cell.model === "flawed" && e.cell.device === "sim"));
  const evidence = JSON.parse(fs.readFileSync(path.join(results, entry.evidence.path), "utf8"));
  entry.cell.model = evidence.cell.model = HOSTILE;
  entry.reason = "</p><script>alert(2)</script>";
  evidence.cell.cases[0].name = "<svg onload=alert(3)>";
  for (const c of evidence.cell.cases) if (c.detail) c.detail = `<a href="javascript:alert(4)">${c.detail}`;
  const folderName = [...Buffer.from(HOSTILE)].map((b) =>
    /[\w-]/.test(String.fromCharCode(b)) ? String.fromCharCode(b) : `%${b.toString(16).toUpperCase().padStart(2, "0")}`);
  entry.evidence.path = entry.evidence.path.replace("cells/flawed/", `cells/${folderName.join("")}/`);
  // Large seeds are strings, so that nothing is lost on the way.
  const bytes = JSON.stringify(evidence);
  fs.mkdirSync(path.dirname(path.join(results, entry.evidence.path)), { recursive: true });
  fs.writeFileSync(path.join(results, entry.evidence.path), bytes);
  entry.evidence.sha256 = createHash("sha256").update(bytes).digest("hex");
  rows.entries.push(entry);
  fs.writeFileSync(path.join(results, "scoreboard.json"), JSON.stringify(rows));
  return results;
}
const hostile = board(path.join(folder, "hostile"), hostileResults(), root);

// --- the browser -------------------------------------------------------------------------------

const browser = await chromium.launch({ executablePath: browserPath, args: ["--no-sandbox"] });
const pagesOf = (site) =>
  fs.readdirSync(site, { recursive: true }).map(String).filter((name) => name.endsWith(".html")).sort();

async function context(colorScheme, width) {
  const made = await browser.newContext({ colorScheme, viewport: { width, height: 900 } });
  made.setDefaultTimeout(20000);
  return made;
}

// A page that notes whatever a quiet one would not do.
async function open(made, site, name) {
  const page = await made.newPage();
  listen(page, site);
  await go(page, site, name);
  return page;
}

function listen(page, site) {
  page.complaints = [];
  page.on("console", (m) => page.complaints.push(`console: ${m.text()}`));
  page.on("pageerror", (e) => page.complaints.push(`error: ${e}`));
  page.on("dialog", (d) => {
    page.complaints.push(`dialog: ${d.message()}`);
    d.dismiss();
  });
  page.on("request", (r) => {
    if (!r.url().startsWith(`${pathToFileURL(site)}/`) && r.url() !== "data:,")
      page.complaints.push(`request: ${r.url()}`);
  });
  page.on("requestfailed", (r) => page.complaints.push(`failed: ${r.url()}`));
}

// A name in a path is percent-encoded once for the file and once for the URL.
const go = (page, site, name) =>
  page.goto(`${pathToFileURL(site)}/${name.split("/").map(encodeURIComponent).join("/")}`);

async function close(page, name) {
  assert.deepEqual(page.complaints, [], name);
  await page.close();
}

const tests = [];
const test = (name, run) => tests.push({ name, run });
const texts = (page, selector) => page.$$eval(selector, (all) => all.map((e) => e.innerText.trim()));
const shownModels = async (page) =>
  page.$$eval("[data-device=cpu] table.ranking tbody tr:not([hidden]) th", (all) => all.map((e) => e.innerText));

test("every page loads quietly and fits the window", async () => {
  for (const [site, width] of [[shipped, 1280], [hostile, 1280], [shipped, 360]]) {
    const made = await context("light", width);
    const page = await made.newPage();
    listen(page, site);
    for (const name of pagesOf(site)) {
      // Of the second site what differs; on a phone one page of each kind.
      if (site === hostile && !/^(index|models)\.html$|%3C|challenges\/fused/.test(name)) continue;
      if (width === 360 && !/^[^/]*$|tuned\.html|textbook\/kv_cache|challenges\/ternary/.test(name)) continue;
      await go(page, site, name);
      const { wide, style, dead } = await page.evaluate(() => ({
        wide: document.documentElement.scrollWidth - innerWidth,
        style: getComputedStyle(document.body).maxWidth,
        dead: [...document.querySelectorAll("a[href^='#']")].map((a) => a.hash.slice(1))
          .filter((id) => !document.getElementById(id)),
      }));
      assert.ok(wide <= 0, `${name} at ${width}: ${wide} pixels too wide`);
      assert.notEqual(style, "none", `${name} has no style`);
      assert.deepEqual(dead, [], `${name} has links to nowhere`);
      assert.deepEqual(page.complaints, [], name);
    }
    await made.close();
  }
});

test("hostile names, details and code are shown as text", async () => {
  const made = await context("light", 1280);
  const names = pagesOf(hostile).filter((name) => name.includes("%3C"));
  assert.ok(names.length >= 2, "no page of the hostile model");
  for (const name of ["index.html", ...names]) {
    const page = await open(made, hostile, name);
    assert.equal(await page.$$eval("img, iframe, object, [onerror], [onload], [href^=javascript]", (a) => a.length), 0);
    assert.ok((await page.innerText("body")).includes("<img src=x onerror=alert(1)>"), name);
    await close(page, name);
  }
  const page = await open(made, hostile, names.find((name) => name.startsWith("cells/")));
  const text = await page.innerText("body");
  assert.ok(text.includes("</p><script>alert(2)</script>"));
  assert.ok(text.includes("<svg onload=alert(3)>"));
  assert.ok(text.includes("[U+202E]"));
  assert.equal(await page.$$eval("script", (all) => all.length), 0);
  await close(page, "hostile cell");
  await made.close();
});

test("columns sort both ways", async () => {
  const made = await context("light", 1280);
  const page = await open(made, shipped, "index.html");
  const before = await shownModels(page);
  const head = "[data-device=cpu] table.ranking th[data-sort]";
  const button = page.locator(head, { hasText: "score" }).locator("button");
  const scores = async () =>
    (await texts(page, "[data-device=cpu] table.ranking tbody tr td:nth-child(4)")).map((t) => parseFloat(t));
  await button.click();
  const down = await scores();
  assert.deepEqual(down, [...down].sort((a, b) => b - a));
  await button.click();
  assert.deepEqual(await scores(), [...down].reverse());
  assert.equal(await page.locator(head, { hasText: "score" }).getAttribute("aria-sort"), "ascending");
  await page.locator(head, { hasText: "model" }).locator("button").press("Enter");
  assert.deepEqual(await shownModels(page), [...before].sort());
  await close(page, "index");
  await made.close();
});

test("grades sort from the best to the worst", async () => {
  const made = await context("light", 1280);
  const page = await open(made, shipped, "models/textbook.html");
  const table = page.locator("table:has(th[data-sort=grade])").first();
  const grades = async () => (await table.locator("td .grade").allInnerTexts()).map((t) => t.trim());
  const order = ["A", "A-", "B+", "B", "B-", "C+", "C", "D", "F"];
  const best = (await grades()).sort((a, b) => order.indexOf(a) - order.indexOf(b));
  assert.ok(best.includes("B+") && best.includes("B-"), "the shipped grades differ");
  await table.locator("th[data-sort=grade] button").click();
  assert.deepEqual(await grades(), best);
  await table.locator("th[data-sort=grade] button").click();
  assert.deepEqual(await grades(), best.reverse());
  await close(page, "grades");
  await made.close();
});

test("references can be left out", async () => {
  const made = await context("light", 1280);
  const page = await open(made, shipped, "index.html");
  const references = await page.$$eval("[data-device=cpu] tr[data-ref]", (all) => all.map((r) => r.dataset.m));
  const box = page.locator("[name=references]");
  assert.equal(await box.count(), references.length > 0 ? 1 : 0);
  if (references.length > 0) {
    const before = await shownModels(page);
    await box.uncheck();
    assert.deepEqual(await shownModels(page), before.filter((m) => !references.includes(m)));
  }
  await close(page, "index");
  await made.close();
});

test("filters hide what they say", async () => {
  const made = await context("light", 1280);
  const page = await open(made, shipped, "index.html");
  await page.fill("[name=model]", "TUN");
  assert.deepEqual(await shownModels(page), ["tuned"]);
  assert.equal(await page.innerText("form output"), "1 model");
  const lines = await page.$$eval("[data-device=cpu] path[data-m]", (all) =>
    all.filter((l) => l.style.display !== "none").map((l) => l.dataset.m));
  assert.deepEqual(lines, ["tuned"]);
  await page.fill("[name=model]", "");
  await page.selectOption("[name=device]", "sim");
  assert.equal(await page.isVisible("section[data-device=cpu]"), false);
  assert.equal(await page.isVisible("section[data-device=sim]"), true);
  await page.selectOption("[name=device]", "");
  assert.equal(await page.isVisible("section[data-device=cpu]"), true);
  await close(page, "index");
  await made.close();
});

test("the figure of attempts is the reader's choice", async () => {
  const made = await context("light", 1280);
  const page = await open(made, shipped, "index.html");
  const score = () => page.innerText("[data-device=sim] table.ranking tr[data-m=flawed] td:nth-child(4)");
  const [best, first] = await texts(page, "[data-device=sim] table.ranking tr[data-m=flawed] td:nth-child(n+5):nth-child(-n+6)");
  const mean = parseFloat(await score());
  await page.selectOption("[name=figure]", "best");
  assert.equal(parseFloat(await score()), parseFloat(best));
  await page.selectOption("[name=figure]", "first");
  assert.equal(parseFloat(await score()), parseFloat(first));
  assert.ok(mean < parseFloat(best), "the shipped attempts differ");
  await close(page, "index");
  await made.close();
});

test("pointing at a model marks it in every table", async () => {
  const made = await context("light", 1280);
  const page = await open(made, shipped, "index.html");
  await page.hover("[data-device=cpu] table.matrix tr[data-m=textbook] th");
  const marked = await page.$$eval(".at", (all) => [...new Set(all.map((e) => e.dataset.m))]);
  assert.deepEqual(marked, ["textbook"]);
  assert.ok((await page.$$(".at")).length >= 4);
  await close(page, "index");
  await made.close();
});

test("without JavaScript everything is there to read", async () => {
  const made = await browser.newContext({ javaScriptEnabled: false, viewport: { width: 1280, height: 900 } });
  const page = await made.newPage();
  await page.goto(`${pathToFileURL(shipped)}/index.html`);
  assert.equal(await page.isVisible("form.filters"), false);
  assert.equal(await page.locator("th button").count(), 0);
  assert.equal(await page.isVisible("[data-device=cpu] table.ranking"), true);
  assert.match(await page.innerText("[data-device=cpu] table.ranking"), /tuned\s+[\d.]+/);
  await made.close();
});

test("a finding leads to its line", async () => {
  const made = await context("light", 1280);
  const page = await open(made, shipped, "cells/flawed/fused_softmax_topk/2.sim.html");
  const link = page.locator(".failures a[href^='#f0-']").first();
  const line = (await link.innerText()).split(":")[1];
  await link.click();
  assert.equal(await page.$eval("mark:target", (m) => m.id), `f0-${line}`);
  await close(page, "cell");
  await made.close();
});

test("the keyboard reaches links, tables and filters", async () => {
  const made = await context("light", 1280);
  const page = await open(made, shipped, "index.html");
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.className), "skip");
  const seen = new Set();
  for (let i = 0; i < 60; ++i) {
    await page.keyboard.press("Tab");
    seen.add(await page.evaluate(() => document.activeElement.tagName));
  }
  for (const tag of ["A", "SELECT", "INPUT", "BUTTON", "DIV"]) assert.ok(seen.has(tag), tag);
  await close(page, "index");
  await made.close();
});

test("axe finds nothing serious in either theme", async () => {
  const kinds = ["index.html", "models/flawed.html", "challenges/ternary_training.cpu.html",
    "cells/textbook/layer_norm_backward/sim.html", "cells/flawed/layer_norm_backward/cpu.html"];
  // The themes differ in colours alone: of the dark one a page with all of them suffices beside the index.
  for (const [scheme, names] of [["light", kinds], ["dark", [kinds[0], kinds.at(-1)]]]) {
    const made = await context(scheme, 1280);
    for (const name of names) {
      const page = await open(made, shipped, name);
      // By the protocol, which no content security policy holds back.
      const session = await made.newCDPSession(page);
      const { frameTree } = await session.send("Page.getFrameTree");
      const world = await session.send("Page.createIsolatedWorld", { frameId: frameTree.frame.id });
      const call = (expression) =>
        session.send("Runtime.evaluate", { expression, contextId: world.executionContextId, awaitPromise: true,
          returnByValue: true });
      await call(axe);
      const answer = await call(`axe.run(document, {preload: false, runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]})
        .then((r) => r.violations.filter((v) => ["serious", "critical"].includes(v.impact))
          .map((v) => v.id + ": " + v.help + ": " + v.nodes.slice(0, 3).map((n) => n.html.slice(0, 160)).join(" | ")))`);
      assert.ok(Array.isArray(answer.result.value), JSON.stringify(answer).slice(0, 500));
      assert.deepEqual(answer.result.value, [], `${name}, ${scheme}`);
      await close(page, name);
    }
    await made.close();
  }
});

let failed = 0;
for (const { name, run } of tests) {
  const start = Date.now();
  try {
    await run();
    console.log(`ok      ${name} (${((Date.now() - start) / 1000).toFixed(1)} s)`);
  } catch (error) {
    ++failed;
    console.log(`FAILED  ${name}\n${error.stack}`);
  }
}

if (option("--images")) {
  const images = option("--images");
  const shots = [["site-index.png", "index.html", "light", 230, 600], ["site-cell.png", "cells/tuned/kv_cache/cpu.html", "dark", 0, 760]];
  for (const [file, name, scheme, y, height] of shots) {
    const made = await browser.newContext({ colorScheme: scheme, viewport: { width: 1100, height } });
    const page = await open(made, shipped, name);
    await page.evaluate((to) => scrollTo(0, to), y);
    await page.screenshot({ path: path.join(images, file) });
    await made.close();
  }
}
await browser.close();
console.log(failed === 0 ? "all passed" : `${failed} of ${tests.length} failed`);
process.exit(failed === 0 ? 0 : 1);
