/** Writes the pictures of docs/console.md: `npm run screenshots`. */
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
    // Charts are drawn with the next look.
    await new Promise((resolve) => setTimeout(resolve, 2_500));
    await page.screenshot(`${folder}/console-${name}.png`);
  };
  const view = (name: string): Promise<void> => page.click(`nav a[href="#${name}"]`);
  await page.resize(1200, 1060);
  await take('now');
  await page.useScheme('dark');
  await view('refusals');
  await page.click('.refusals button[aria-expanded="false"]');
  await page.sees('an explanation', 'document.querySelector(".steps") !== null');
  await page.evaluate('window.scrollTo(0, 0)');
  await page.resize(1200, 800);
  await take('refusals');
  await page.useScheme('light');
  await view('access');
  await page.resize(1200, 740);
  await take('access');
  await page.resize(390, 844, true);
  await view('now');
  await take('phone');
  t.same(page.messages, []);
});
