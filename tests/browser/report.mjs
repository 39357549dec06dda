// Opens a report in headless Chromium, uses every part of it, and fails on any complaint.
//
//   npm install --no-save puppeteer-core        (anywhere above this file, or set NODE_PATH)
//   cresset train mlp --profile out
//   node tests/browser/report.mjs out/mlp.html [screenshots-to-this-directory]
//
// CHROMIUM names the browser if it is not `chromium-headless-shell` in /usr/bin.

import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { createRequire } from "node:module";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";

const require = createRequire(resolve(process.env.NODE_PATH || process.cwd(), "x.js"));
const puppeteer = require("puppeteer-core");
const [file, pictures] = process.argv.slice(2);
if (!file) throw new Error("usage: node report.mjs REPORT.html [DIRECTORY]");
if (pictures) mkdirSync(pictures, { recursive: true });

const browser = await puppeteer.launch({
  executablePath: process.env.CHROMIUM || "/usr/bin/chromium-headless-shell",
  args: ["--no-sandbox", "--disable-gpu"],
});
const page = await browser.newPage();
await page.setViewport({ width: 1280, height: 860 });
const complaints = [];
page.on("console", message => complaints.push(`console: ${message.text()}`));
page.on("pageerror", error => complaints.push(`error: ${error.message}`));
page.on("request", request => {
  if (!request.url().startsWith("file:")) complaints.push(`network: ${request.url()}`);
});

let shots = 0;
const picture = async name => {
  if (pictures) await page.screenshot({ path: `${pictures}/${String(shots++).padStart(2, "0")}-${name}.png` });
};
const text = selector => page.$eval(selector, one => one.textContent);
const frame = () => page.evaluate(() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done))));
const canvas = () => page.$eval("#flame canvas", one => one.toDataURL());
const names = () => page.$$eval("#operators tbody td.name", cells => cells.map(cell => cell.textContent));

await page.goto(pathToFileURL(resolve(file)).href);
await frame();
assert.match(await text("#title"), /^Profile of /);
const slices = await page.evaluate(() => JSON.parse(document.querySelector("#data").textContent).tracks
  .reduce((sum, track) => sum + track.slices.length / 7, 0));
assert.ok(slices > 0, "there are slices");
await picture("top");

// Sorting: by the first column both ways, then by a figure.
await page.click('#operators th[data-key="name"]');
const rising = await names();
assert.deepEqual(rising, rising.slice().sort((a, b) => (a < b ? -1 : a > b ? 1 : 0)), "rising by name");
await page.click('#operators th[data-key="name"]');
assert.equal(await page.$eval('#operators th[data-key="name"]', one => one.ariaSort), "descending");
await page.click('#operators th[data-key="count"]');
const counts = await page.$$eval("#operators tbody td:nth-child(2)", cells =>
  cells.map(cell => Number(cell.textContent.replaceAll(",", ""))));
assert.deepEqual(counts, counts.slice().sort((a, b) => b - a), "falling by calls");
await page.click('#operators th[data-key="self_cpu"]');
await page.$eval("#operators", one => one.scrollIntoView());
await picture("operators");

// Filtering: only what fits is left, and the flame chart dims the rest.
const before = await canvas();
const all = (await names()).length;
const part = rising[Math.floor(rising.length / 2)].slice(0, 12).toLowerCase();
await page.type("#filter", part);
await frame();
const left = await names();
assert.ok(left.length > 0 && left.length <= all && left.every(name => name.toLowerCase().includes(part)), "filtered");
assert.notEqual(await canvas(), before, "the chart shows the filter");
await page.$eval("#timeline", one => one.scrollIntoView());
await picture("filtered");
await page.$eval("#filter", one => { one.value = ""; one.dispatchEvent(new Event("input")); });
await frame();
assert.equal(await canvas(), before, "the filter leaves nothing behind");

// Zooming by button, wheel, key and double click; moving by dragging.
const box = await (await page.$("#flame")).boundingBox();
const middle = [box.x + box.width / 2, box.y + 60];
const range = () => text("#range");
const whole = await range();
await page.click("#zoom-in");
await frame();
assert.notEqual(await range(), whole, "the button zooms");
await page.mouse.move(...middle);
await page.keyboard.down("Control");
await page.mouse.wheel({ deltaY: -400 });
await page.keyboard.up("Control");
await frame();
const wheeled = await range();
assert.match(wheeled, / of /);
const still = await canvas();
await page.mouse.down();
await page.mouse.move(middle[0] - 150, middle[1], { steps: 5 });
await page.mouse.up();
await frame();
assert.notEqual(await canvas(), still, "dragging moves");
assert.equal(await range(), wheeled, "and does not zoom");
await page.focus("#flame");
await page.keyboard.press("w");
await frame();
assert.notEqual(await range(), wheeled, "the key zooms");
await picture("zoomed");
await page.click("#zoom-fit");
await frame();
assert.equal(await range(), whole, "fit shows all");

// Hovering and choosing: look for a slice along the first rows.
let found = false;
for (let y = 50; y < box.height && !found; y += 9) {
  for (let x = 20; x < box.width - 20 && !found; x += 23) {
    await page.mouse.move(box.x + x, box.y + y);
    found = await page.$eval("#tooltip", one => !one.hidden);
    if (found) {
      await picture("hover");
      await page.mouse.click(box.x + x, box.y + y);
      assert.ok((await text("#selected")).length > 0, "a click tells more");
      await page.mouse.click(box.x + x, box.y + y, { count: 2 });
    }
  }
}
assert.ok(found, "hovering shows what is there");
await page.click("#zoom-fit");
for (const section of ["memory", "phases", "kernels", "speed"]) {
  await page.$eval(`#${section}`, one => one.scrollIntoView());
  await frame();
  await picture(section);
}

// Dark where the system is dark: the page, and with it what canvases show.
const light = await canvas();
const paper = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
const white = await paper();
await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: "dark" }]);
await frame();
assert.notEqual(await paper(), white, "dark paper");
assert.notEqual(await canvas(), light, "a dark chart");
await page.evaluate(() => scrollTo(0, 0));
await frame();
await picture("dark");
await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: "light" }]);
await frame();
assert.equal(await canvas(), light, "and light again");

// A frame must stay short however many slices there are.
const slowest = await page.evaluate(async () => {
  const times = [];
  for (let i = 0; i < 30; i += 1) {
    const from = performance.now();
    document.querySelector(i % 2 ? "#zoom-out" : "#zoom-in").click();
    await new Promise(done => requestAnimationFrame(done));
    times.push(performance.now() - from);
  }
  return times.sort((a, b) => a - b)[15];
});
console.log(`${slices} slices, median frame ${slowest.toFixed(1)} ms`);
await browser.close();
assert.deepEqual(complaints, [], "the page complained");
console.log("ok");
