/** The console where there is something to see in each card: certificates, writes in doubt, revocations. */
import { randomUUID } from 'node:crypto';
import t from 'tap';
import { run } from '../../src/cli/program.js';
import { startInProcessProxy, type InProcessProxy } from '../app/in-process-proxy.js';
import { captureIo } from '../cli/captured-io.js';
import { certificates } from '../support/certificates.js';
import { openPage } from '../support/page.js';
import { startUpstreamServer } from '../support/upstream-server.js';
import { startRedis } from '../support/redis-server.js';
import type { Scope } from '../support/scope.js';
import { shopRoutes } from './shop.js';

t.setTimeout(120_000);

const attack = "<svg/onload=document.title='pwned'>";

async function start(t: Scope): Promise<InProcessProxy> {
  const { ca, server } = certificates(t);
  const redis = await startRedis(t);
  const receiver = await startUpstreamServer(t, { tls: { cert: server.cert, key: server.key } });
  return startInProcessProxy(t, {
    receiver,
    config: {
      upstream: { ca_file: ca.certFile },
      store: { redis: { url: `redis://127.0.0.1:${String(redis.port)}` } },
      routes: shopRoutes,
    },
  });
}

/** A write whose answer never comes: nobody knows what became of it. */
async function leaveInDoubt(shop: InProcessProxy): Promise<string> {
  shop.receiver.behave((req) => req.socket.destroy());
  const headers = { 'Idempotency-Key': randomUUID() };
  const claims = { permissions: ['orders:write'] };
  const answer = await shop.request({ method: 'POST', path: '/orders', headers, body: '{}' }, claims);
  shop.receiver.behave(null);
  const { record } = JSON.parse(answer.text) as { readonly record?: string };
  if (record === undefined) throw new Error(`no write in doubt: ${answer.text}`);
  return record;
}

async function revoke(shop: InProcessProxy, subject: string): Promise<void> {
  const io = captureIo();
  await run(['revoke', '--config', shop.configFile, '--subject', subject, '--reason', attack, '--for', '1h'], io);
  if (io.code() !== 0) throw new Error(io.err());
}

t.test('each entry is seen, in light and dark, on a phone and by keyboard, and stays a text', async (t) => {
  const shop = await start(t);
  const record = await leaveInDoubt(shop);
  await revoke(shop, attack);
  const origin = `http://127.0.0.1:${String(shop.adminPort)}`;
  const page = await openPage(t, `${origin}/`);
  const card = (title: string): string =>
    `[...document.querySelectorAll('.cards > *')].find((card) => card.querySelector('h2, h3')?.innerText.startsWith(${JSON.stringify(title)}))`;
  const says = (title: string, text: string): string =>
    `${card(title)}?.innerText.includes(${JSON.stringify(text)}) === true`;
  const rows: readonly (readonly [title: string, text: string])[] = [
    ['Certificates', 'upstream ca'],
    ['Certificates', '1 day left'],
    ['Writes in doubt', record],
    ['Writes in doubt', 'sallyport record resolve'],
    ['Revocations', attack],
    ['Revocations', '1 revocation'],
    ['Redis', 'primary'],
  ];
  const colours: unknown[] = [];
  for (const scheme of ['light', 'dark'] as const) {
    await page.useScheme(scheme);
    for (const [width, isPhone] of [
      [1280, false],
      [360, true],
    ] as const) {
      await page.resize(width, 800, isPhone);
      for (const [title, text] of rows) await page.sees(`${text} in ${title}, ${scheme}`, says(title, text));
      t.equal(
        await page.evaluate('document.documentElement.scrollWidth <= window.innerWidth'),
        true,
        `nothing is wider than ${String(width)} pixels`,
      );
    }
    colours.push(await page.evaluate('getComputedStyle(document.documentElement).backgroundColor'));
  }
  t.not(colours[0], colours[1], 'colours follow the system');

  await page.resize(1280, 800);
  await page.goTo(`${origin}/`);
  await page.sees('the doubt', says('Writes in doubt', record));
  const focused = 'document.activeElement.innerText.trim()';
  for (let presses = 0; presses < 30 && (await page.evaluate(focused)) !== 'The last of them'; presses += 1) {
    await page.press('Tab');
  }
  await page.press('Enter');
  await page.reads('Last refusals');
  t.equal(await page.evaluate('location.hash'), '#refusals', 'a link in a card is reached by the keyboard alone');
  t.equal(await page.evaluate('document.title'), 'Sallyport');
  t.equal(await page.evaluate('document.querySelectorAll("[onload], [onerror], img").length'), 0);
  t.same(page.messages, [], 'nothing is written to the console of the browser');
  t.same(
    page.requests.filter((url) => !url.startsWith(`${origin}/`)),
    [],
    'nobody else is asked',
  );
});
