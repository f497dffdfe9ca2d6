/** Writes the pictures of docs/console.md: `npm run screenshots`. */
import { execFileSync } from 'node:child_process';
import t from 'tap';
import { openPage } from '../support/page.js';
import { startRedis } from '../support/redis-server.js';
import { sendRefused, sendTraffic, startShop } from './shop.js';

const folder = process.env['SALLYPORT_SCREENSHOTS'] ?? 'docs';
const seconds = Number(process.env['SALLYPORT_SECONDS'] ?? 60);

t.setTimeout(600_000);
t.test('pictures of the console', { timeout: 600_000 }, async (t) => {
  const redis = await startRedis(t);
  const shop = await startShop(t, { store: { redis: { url: `redis://127.0.0.1:${redis.port}` } } });
  const page = await openPage(t, `http://127.0.0.1:${shop.adminPort}/`);
  for (let second = 0; second < seconds * 4; second += 1) {
    await Promise.all(Array.from({ length: 3 + Math.round(3 * Math.sin(second / 12) ** 2) }, () => sendTraffic(shop)));
    if (second % 3 === 0) await sendRefused(shop);
    await new Promise((resolve) => setTimeout(resolve, 250));
  }
  const take = async (name: string): Promise<void> => {
    await new Promise((resolve) => setTimeout(resolve, 700));
    const file = `${folder}/${name}.png`;
    await page.screenshot(file);
    if (process.env['SALLYPORT_QUANTIZE'] !== undefined)
      execFileSync('pngquant', ['--force', '--ext', '.png', '64', file]);
  };
  for (const scheme of ['light', 'dark'] as const) {
    await page.useScheme(scheme);
    await page.resize(1280, 1000);
    await page.click('nav a[href="#now"]');
    await take(`console-now-${scheme}`);
    await page.click('nav a[href="#refusals"]');
    await page.click('.refusals button[aria-expanded="false"]');
    await page.sees('an explanation', 'document.querySelector(".steps") !== null');
    await take(`console-refusals-${scheme}`);
    await page.click('nav a[href="#access"]');
    await take(`console-access-${scheme}`);
    await page.click('nav a[href="#claims"]');
    await page.click('button[type="submit"]');
    await page.sees('rulings', 'document.querySelector(".rulings") !== null');
    await take(`console-claims-${scheme}`);
    await page.resize(390, 844, true);
    for (const view of ['now', 'refusals', 'access', 'claims']) {
      await page.click(`nav a[href="#${view}"]`);
      await take(`console-phone-${view}-${scheme}`);
    }
  }
  t.same(page.messages, []);
});
