// Draws dashboards in Chromium, and prints as JSON what they show:
// node look.mjs TOOLS CHROMIUM PICTURES DASHBOARD…
//
// TOOLS has the packages of package.json. Each DASHBOARD is JSON: name, file, and the options of
// window.draw in page.jsx. PICTURES is a directory.
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const [tools, chromium, pictures, ...dashboards] = process.argv.slice(2);
const needs = createRequire(join(tools, 'package.json'));
const esbuild = needs('esbuild');
const puppeteer = needs('puppeteer-core');

const directory = mkdtempSync(join(tmpdir(), 'dashboards.'));
esbuild.buildSync({
  entryPoints: [join(import.meta.dirname, 'page.jsx')],
  outfile: join(directory, 'page.js'),
  bundle: true,
  jsx: 'automatic',
  nodePaths: [join(tools, 'node_modules')],
  define: { 'process.env.NODE_ENV': '"production"' },
  loader: { '.svg': 'dataurl', '.ttf': 'empty' },
  logLevel: 'error',
});
// Grafana's server writes such data into its page.
const boot = {
  settings: { buildInfo: { version: '13.2.3' }, featureToggles: {} },
  user: { timezone: 'utc' },
};
writeFileSync(
  join(directory, 'page.html'),
  `<!DOCTYPE html><meta charset="utf-8"><link rel="stylesheet" href="page.css">
  <style>body { margin: 0 }</style><div id="page"></div>
  <script>window.grafanaBootData = ${JSON.stringify(boot)}</script><script src="page.js"></script>`,
);

mkdirSync(join(directory, 'public/build'), { recursive: true });
symlinkSync(
  join(tools, 'node_modules/@grafana/ui/dist/public/img'),
  join(directory, 'public/build/img'),
);

const browser = await puppeteer.launch({
  executablePath: chromium,
  args: ['--no-sandbox', '--allow-file-access-from-files'],
});
const seen = {};
try {
  for (const { name, file, ...options } of dashboards.map((text) => JSON.parse(text))) {
    const page = await browser.newPage();
    const errors = [];
    page.on('pageerror', (error) => errors.push(error.stack));
    page.on('console', async (message) => {
      // The packages do not have the font and some icons.
      if (message.type() === 'error' && !message.location().url?.includes('/public/')) {
        const texts = message
          .args()
          .map((argument) => argument.evaluate((value) => value?.stack ?? String(value)));
        errors.push(
          (await Promise.all(texts)).join(' ') || `${message.text()} ${message.location().url}`,
        );
      }
    });
    await page.setViewport({ width: 1600, height: 1000 });
    await page.goto(`file://${directory}/page.html`);
    const dashboard = JSON.parse(readFileSync(file, 'utf8'));
    await page.evaluate(
      (dashboard, options) => window.draw(dashboard, options),
      dashboard,
      options,
    );
    // If a panel never gets data, the test shows its state.
    await page
      .waitForFunction(
        () => window.seen().panels.every(({ state, errors }) => state === 'Done' || errors.length),
        { timeout: 20_000 },
      )
      .catch((error) => errors.push(error.message));
    // until the panels have drawn the data
    await page.evaluate(() => new Promise((done) => setTimeout(done, 1000)));
    const height = await page.evaluate(() => document.documentElement.scrollHeight);
    await page.setViewport({ width: 1600, height });
    await page.evaluate(() => new Promise((done) => setTimeout(done, 1000)));
    await page.screenshot({ path: join(pictures, `${name}.png`) });
    seen[name] = { ...(await page.evaluate(() => window.seen())), errors };
    await page.close();
  }
} finally {
  await browser.close();
  rmSync(directory, { recursive: true });
}
console.log(JSON.stringify(seen));
