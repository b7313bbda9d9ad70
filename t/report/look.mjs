// Examines pages in a browser: in desktop and phone widths, in light and dark mode, in print, and
// without the style sheet, like some mail programs.
//
//   node look.mjs TOOLS CHROMIUM OUT PAGE…
//
// TOOLS has node_modules. Writes pictures to OUT, and prints the results as JSON, one object per
// page.
import { createRequire } from 'node:module';
import { mkdtemp, readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';

const [tools, chromium, out, ...files] = process.argv.slice(2);
const require = createRequire(path.join(tools, 'package.json'));
const puppeteer = (await import(require.resolve('puppeteer-core'))).default;
const axeSource = await readFile(require.resolve('axe-core/axe.min.js'), 'utf8');
const { HtmlValidate } = await import(require.resolve('html-validate'));

const VIEWS = [
  { name: 'desk', width: 1280, scheme: 'light' },
  { name: 'desk-dark', width: 1280, scheme: 'dark' },
  { name: 'phone', width: 390, scheme: 'light' },
];

const PAPER = { format: 'A4', preferCSSPageSize: true, printBackground: true };

// The page has one line on purpose.
const validator = new HtmlValidate({
  extends: ['html-validate:recommended'],
  rules: { 'long-title': 'off', 'no-trailing-whitespace': 'off' },
});

// Runs in the page: finds elements that overflow it, or the box that clips them.
function misplaced() {
  const found = [];
  const width = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth > width) found.push(`the page is ${document.documentElement.scrollWidth} wide, not ${width}`);
  for (const element of document.querySelectorAll('body *')) {
    const text = [...element.childNodes].filter((node) => node.nodeType === 3).map((node) => node.data.trim()).join('');
    const box = element.getBoundingClientRect();
    if (!text || !box.width || element.closest('thead')) continue;
    if (box.left < -1 || box.right > width + 1) found.push(`${element.tagName} "${text.slice(0, 40)}" sticks out`);
    if (getComputedStyle(element).overflowX === 'hidden' && element.scrollWidth > element.clientWidth + 1) found.push(`"${text.slice(0, 40)}" is cut off`);
  }
  return found;
}

// Runs in the page: finds labels that overlap.
function overlapping() {
  const boxes = [...document.querySelectorAll('svg text, td, th, h1, h2, h3, p, pre, caption')]
    .filter((element) => element.textContent.trim() && !element.closest('thead') && element.checkVisibility())
    .map((element) => ({ element, box: element.getBoundingClientRect() }));
  const found = [];
  for (const [i, a] of boxes.entries()) {
    for (const b of boxes.slice(i + 1)) {
      if (a.element.contains(b.element) || b.element.contains(a.element)) continue;
      const x = Math.min(a.box.right, b.box.right) - Math.max(a.box.left, b.box.left);
      const y = Math.min(a.box.bottom, b.box.bottom) - Math.max(a.box.top, b.box.top);
      if (x > 1 && y > 1) found.push(`"${a.element.textContent.slice(0, 30)}" and "${b.element.textContent.slice(0, 30)}"`);
    }
  }
  return found;
}

async function opened(browser, file, { width, scheme }, { forAxe = false } = {}) {
  const page = await browser.newPage();
  const messages = [];
  page.on('console', (message) => messages.push(message.text()));
  page.on('pageerror', (error) => messages.push(String(error)));
  page.on('request', (request) => { if (!/^(file|data):/.test(request.url())) messages.push(`requests ${request.url()}`); });
  page.on('dialog', (dialog) => { messages.push(`a dialog: ${dialog.message()}`); dialog.dismiss(); });
  // The content security policy of the page would also block the test's scripts.
  if (forAxe) await page.setBypassCSP(true);
  await page.setViewport({ width, height: 900 });
  await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: scheme }]);
  await page.goto(`file://${file}`);
  return { page, messages };
}

// Opens the parts of the page that are closed at first.
async function open(page) {
  await page.evaluate(() => document.querySelectorAll('details').forEach((element) => { element.open = true; }));
}

// Returns the number of printed pages before the checks.
async function printedSummary(page) {
  await page.evaluate(() => document.querySelector('#checks')?.remove());
  const pdf = Buffer.from(await page.pdf(PAPER)).toString('latin1');
  return pdf.match(/\/Type \/Page\b/g).length;
}

async function look(browser, file) {
  const name = path.basename(file, '.html');
  const result = { messages: [], misplaced: [], overlapping: [], accessibility: [], valid: [] };
  for (const view of VIEWS) {
    const { page, messages } = await opened(browser, file, view);
    await page.screenshot({ path: path.join(out, `${name}-${view.name}.png`), fullPage: true });
    if (view.name === 'desk') await page.pdf({ path: path.join(out, `${name}.pdf`), ...PAPER });
    await open(page);
    const where = (finding) => `${view.name}: ${finding}`;
    result.messages.push(...messages.map(where));
    result.misplaced.push(...(await page.evaluate(misplaced)).map(where));
    result.overlapping.push(...(await page.evaluate(overlapping)).map(where));
    if (view.name === 'desk') {
      result.text = await page.evaluate(() => document.body.innerText);
      result.names = await page.evaluate(() => [...document.querySelectorAll('bdi')].map((element) => element.textContent));
      result.scripts = await page.evaluate(() => document.querySelectorAll('script, img, iframe, object, link').length);
    }
    await page.close();
  }
  for (const view of VIEWS) {
    const { page } = await opened(browser, file, view, { forAxe: true });
    await open(page);
    await page.evaluate(axeSource);
    const { violations } = await page.evaluate(() => axe.run());
    for (const { id, nodes } of violations) result.accessibility.push(`${view.name}: ${id}: ${nodes[0].html.slice(0, 120)}`);
    if (view.name === 'desk') {
      await page.evaluate(() => document.querySelectorAll('style, svg').forEach((element) => element.remove()));
      await page.screenshot({ path: path.join(out, `${name}-bare.png`), fullPage: true });
      result.bare = await page.evaluate(() => document.body.innerText);
    }
    await page.close();
  }
  const { page } = await opened(browser, file, VIEWS[0]);
  result.summary = await printedSummary(page);
  await page.close();
  const report = await validator.validateFile(file);
  for (const { messages } of report.results) result.valid.push(...messages.map(({ ruleId, message, line, column }) => `${ruleId} at ${line}:${column}: ${message}`));
  return [name, result];
}

const browser = await puppeteer.launch({
  executablePath: chromium,
  args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'],
  userDataDir: await mkdtemp(path.join(tmpdir(), 'chromium-')),
});
const results = [];
for (const file of files) results.push(await look(browser, file));
await browser.close();
console.log(JSON.stringify(Object.fromEntries(results)));
