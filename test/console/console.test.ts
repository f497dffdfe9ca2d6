/** The console in a real browser, as a person uses it. */
import t from 'tap';
import { openPage } from '../support/page.js';
import { request } from '../support/raw-client.js';
import { sendRefused, sendTraffic, shopRoutes, startShop } from './shop.js';

t.setTimeout(120_000);

t.test('it is seen, goes on by itself and explains a refusal, without asking anybody else', async (t) => {
  const shop = await startShop(t);
  const origin = `http://127.0.0.1:${String(shop.adminPort)}`;
  const page = await openPage(t, `${origin}/`);
  await page.reads('ready');
  await page.reads(shop.app.status().config.sha256.slice(0, 8));
  await page.reads('Keys: core');
  await page.reads('Writes in doubt');
  await page.reads('No request yet.');

  await sendTraffic(shop);
  await sendRefused(shop);
  await page.sees('a chart of what came since', 'document.querySelectorAll(".plot canvas").length === 3');
  await page.sees(
    'the reason in the legend',
    'document.querySelector(".charts").innerText.includes("permission missing")',
  );

  await page.click('nav a[href="#refusals"]');
  await page.reads('permission missing');
  await page.click('input[type="search"]');
  await page.type('reporting');
  await page.sees('one that is meant', 'document.querySelectorAll(".refusals tbody").length === 1');
  await page.click('.refusals button');
  await page.reads('The rules in force now refuse it for the same reason.');
  await page.reads('403 permission_missing: orders:export (Forbidden)');

  await page.click('nav a[href="#access"]');
  await page.sees(
    'who may do what',
    `[...document.querySelectorAll('.matrix tbody tr')].some((row) =>
      row.innerText.startsWith('place-order') && row.querySelectorAll('td')[1].innerText.includes('orders:write'))`,
  );

  await page.click('nav a[href="#claims"]');
  await page.click('button[type="submit"]');
  await page.reads('4 of 6 routes');
  await page.reads('permission missing: orders:write');

  shop.rewrite({ store: { memory: {} }, routes: shopRoutes.slice(0, 2) });
  await page.click('nav a[href="#access"]');
  await page.reads('2 of 2 routes');
  shop.rewrite({ store: { memory: {} }, routes: shopRoutes.slice(0, 2), listen: { max_in_flight: 7 } });
  await page.reads('Counts from the next start on');
  shop.rewrite({ store: { memory: {} }, routes: [] });
  await page.reads('The config was not reloaded');

  t.same(page.messages, [], 'nothing is written to the console of the browser');
  t.same(
    page.requests.filter((url) => !url.startsWith(`${origin}/`)),
    [],
    'nobody else is asked',
  );
});

t.test('texts of callers and of the config stay texts', async (t) => {
  const attack = "<svg/onload=document.title='pwned'>";
  const routes = [
    ...shopRoutes,
    { name: 'odd', methods: ['GET'], path: '/odd', subjects: [attack], permissions: [attack.replaceAll("'", '`')] },
  ];
  const shop = await startShop(t, { routes });
  const page = await openPage(t, `http://127.0.0.1:${String(shop.adminPort)}/#refusals`);
  await shop.request({ path: '/orders' }, { sub: attack });
  await request(shop.port, { path: `/${attack}` });
  await page.reads(`GET /${attack}`);
  await page.sees(
    'the caller',
    `document.querySelector('.refusals')?.innerText.includes(${JSON.stringify(attack)}) === true`,
  );
  for (const count of [1, 2]) {
    // What is explained moves the rows below it.
    await page.click('.refusals button[aria-expanded="false"]');
    await page.sees(`${String(count)} explained`, `document.querySelectorAll(".steps").length === ${String(count)}`);
  }
  await page.click('nav a[href="#access"]');
  await page.sees(
    'the subject',
    `document.querySelector('.matrix')?.innerText.includes(${JSON.stringify(attack)}) === true`,
  );
  await page.click('nav a[href="#claims"]');
  await page.click('textarea');
  await page.evaluate('document.querySelector("textarea").select()');
  await page.type(JSON.stringify({ sub: attack, permissions: ['<img/src=x/onerror=alert(1)>'] }));
  await page.click('button[type="submit"]');
  await page.reads('routes may be used');
  await page.evaluate('document.querySelector("textarea").select()');
  await page.type(JSON.stringify({ sub: 'x'.repeat(7_000) }));
  await page.click('button[type="submit"]');
  await page.reads('too long by');
  t.equal(await page.evaluate('document.title'), 'Sallyport');
  t.equal(await page.evaluate('document.querySelectorAll("[onload], [onerror], img").length'), 0);
  t.same(page.messages, []);
});

t.test('it is used on a phone and by keyboard', async (t) => {
  const shop = await startShop(t);
  await sendTraffic(shop);
  await sendRefused(shop);
  const page = await openPage(t, `http://127.0.0.1:${String(shop.adminPort)}/`);
  await page.resize(360, 740, true);
  await page.reads('ready');
  for (const view of ['now', 'refusals', 'access', 'claims']) {
    await page.click(`nav a[href="#${view}"]`);
    await page.sees(`the view ${view}`, `location.hash === '#${view}'`);
    t.equal(
      await page.evaluate('document.documentElement.scrollWidth <= window.innerWidth'),
      true,
      `${view}: nothing is wider than the screen`,
    );
  }
  await page.resize(1280, 900);
  await page.goTo(`http://127.0.0.1:${String(shop.adminPort)}/`);
  await page.reads('ready');
  const focused = async (): Promise<unknown> =>
    page.evaluate('document.activeElement.innerText.trim() || document.activeElement.value');
  await page.press('Tab');
  t.equal(await focused(), 'Skip to the content');
  await page.press('Tab');
  t.equal(await focused(), 'Pause');
  await page.press('Tab');
  await page.press('Tab');
  t.equal(await focused(), 'Refusals');
  t.equal(
    await page.evaluate('getComputedStyle(document.activeElement).outlineStyle'),
    'solid',
    'where the focus is can be seen',
  );
  await page.press('Enter');
  await page.reads('Last refusals');
  await page.evaluate('document.querySelector(".refusals button").focus()');
  await page.press('Enter');
  await page.sees('the explanation', 'document.querySelector(".steps") !== null');
  t.equal(await page.evaluate('document.activeElement.getAttribute("aria-expanded")'), 'true');
  t.same(page.messages, []);
});

t.test('paused it asks nothing, and says so where the proxy is gone', async (t) => {
  const shop = await startShop(t);
  const page = await openPage(t, `http://127.0.0.1:${String(shop.adminPort)}/`);
  await page.reads('ready');
  await page.click('header button');
  await page.reads('Go on');
  const asked = page.requests.length;
  await new Promise((resolve) => setTimeout(resolve, 3_000));
  t.ok(page.requests.length - asked <= 2, 'but for what was under way');
  await page.click('header button');
  await shop.app.stop();
  await page.reads('no answer since');
});
