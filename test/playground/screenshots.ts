/** Writes the pictures of docs/playground.md: `npm run screenshots`. */
import t from 'tap';
import { html } from '../../src/built/playground.js';
import type { OpenPage } from '../support/page.js';
import { openFile } from './page-file.js';

const folder = process.env['SALLYPORT_SCREENSHOTS'] ?? 'docs';

/** Colours that change, and what is proposed, are there a moment later. */
async function take(page: OpenPage, name: string): Promise<void> {
  await page.evaluate('scrollTo(0, 0)');
  await new Promise((resolve) => setTimeout(resolve, 1_000));
  await page.screenshot(`${folder}/playground-${name}.png`);
}

t.setTimeout(120_000);
t.test('pictures of the playground', { timeout: 120_000 }, async (t) => {
  const page = await openFile(t, html);
  await page.reads('8 cases, 0 failed');
  await page.resize(1300, 1130);
  await page.click('.rulings tbody:nth-of-type(3) button[aria-expanded]');
  await take(page, 'results');
  await page.click('.editor');
  await page.press('End', true);
  await page.type(
    '  - name: cancel\n    methods: [DELETE]\n    path: /orders/{id}\n    subjects: [checkout]\n    permissions: [orders:cancel]\n',
  );
  await page.click('nav a[href="#diff"]');
  await page.reads('access widens');
  await page.resize(1300, 1130);
  await take(page, 'diff');
  await page.useScheme('dark');
  await page.click('nav a[href="#access"]');
  await page.click('.editor');
  await page.press('End', true);
  await page.type('    max_body: lots\n    mode: ');
  await page.reads('max_body');
  await page.resize(1300, 640);
  await take(page, 'error');
  t.same(page.messages, []);

  const phone = await openFile(t, html);
  await phone.reads('8 cases, 0 failed');
  await phone.resize(390, 844, true);
  await take(phone, 'phone');
  t.same(phone.messages, []);
});
