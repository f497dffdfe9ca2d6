/** The playground in a real browser, as a person uses it. */
import t, { type Test } from 'tap';
import { html } from '../../src/built/playground.js';
import { pageWith } from '../../src/cli/commands/playground/page.js';
import { exampleConfig } from '../../src/playground/example.js';
import type { OpenPage } from '../support/page.js';
import { openFile } from './page-file.js';

t.setTimeout(180_000);

/** Inside of an editor, which has a tree of its own. */
const inEditor = (which: number, selector: string): string =>
  `document.querySelectorAll('.editor')[${which}].shadowRoot.querySelector(${JSON.stringify(selector)})`;

const isIn = (which: number, selector: string): string => `${inEditor(which, selector)} !== null`;

/** Goes to the end of the first editor and writes. */
async function writeAtEnd(page: OpenPage, text: string): Promise<void> {
  await page.click('.editor');
  await page.press('End', true);
  await page.type(text);
}

/** Takes what is proposed: the editor takes no key for that which was pressed before a person could see it. */
async function take(page: OpenPage, which: number): Promise<void> {
  await page.sees('what is chosen', isIn(which, '.cm-tooltip-autocomplete li[aria-selected]'));
  await new Promise((resolve) => setTimeout(resolve, 200));
  await page.press('Enter');
}

function asksNobody(t: Test, page: OpenPage): void {
  const [own = ''] = page.requests;
  t.same(page.messages, [], 'nothing is written to the console of the browser');
  t.same(
    page.requests.filter((url) => url !== own && !url.startsWith('data:image/svg+xml')),
    [],
    'nobody is asked for anything',
  );
}

t.test('an explanation says whose answer it is, and who would answer otherwise', async (t) => {
  const listeners = '[{ port: 9000, form: envoy }, { port: 9001, form: nginx, accept: [unreserved] }]';
  const config = {
    name: 'sallyport.yaml',
    text: [
      `decide: ${listeners}`,
      'store: { memory: {} }',
      'issuers: { core: { issuer: https://api.example.com, jwks_url: https://api.example.com/k, audience: orders, source: m, token_type: s } }',
      'routes: [{ name: w, methods: [POST], path: /w, subjects: [a], permissions: [], idempotency: optional }]',
    ].join('\n'),
  };
  const request = '{ method: POST, path: /w, headers: { Idempotency-Key: k } }';
  const tests = {
    name: 'policy.test.yaml',
    text: `config: sallyport.yaml\ncases: [{ name: one, request: ${request}, claims: { sub: a }, expect: { status: 403 } }]`,
  };
  const page = await openFile(t, await pageWith({ config, tests }));
  await page.click('.rulings button[aria-expanded]');
  await page.reads('on route w, as decide[0] answers');
  await page.reads('decide[1] would answer otherwise: ✓ allowed');
});

t.test(
  'a key is completed, an error is seen in its place and put right, and cases are run and explained',
  async (t) => {
    const page = await openFile(t, html);
    await page.reads('8 cases, 0 failed');
    await page.reads('config holds');

    await writeAtEnd(page, '  - name: cancel\n    me');
    await page.sees('what may come', isIn(0, '.cm-tooltip-autocomplete li'));
    await page.sees(
      'its words',
      `${inEditor(0, '.cm-completionInfo')}?.innerText.includes('GET is not HEAD') === true`,
    );
    await take(page, 0);
    await page.sees('the key', `${inEditor(0, '.cm-activeLine')}?.innerText === '    methods: []'`);
    await page.type('DELETE');
    await page.press('End');
    await page.type('\n    path: /orders/{id}\n    subjects: [checkout]\n    permissions: [orders:cancel]\n    mode: ');
    await page.sees(
      'the words of a closed list',
      `[...${inEditor(0, '.cm-tooltip-autocomplete')}?.querySelectorAll('li') ?? []].map((li) => li.innerText).join() === 'enforce,shadow'`,
    );
    await page.type('sharp');
    await page.sees('the mark beside the line', isIn(0, '.cm-lint-marker-error'));
    await page.sees('the word that is wrong', `${inEditor(0, '.cm-lintRange-error')}?.textContent === 'sharp'`);
    await page.reads('routes[4].mode is "sharp"');
    await page.reads('allowed: enforce, shadow');
    await page.reads('The config has errors: nothing is decided by it.');
    for (const _ of 'sharp') await page.press('Backspace');
    await page.type('enforce');
    await page.reads('8 cases, 0 failed');
    await page.sees('no error', `!(${isIn(0, '.cm-lint-marker-error')})`);

    await page.click('.rulings tbody:nth-of-type(3) button[aria-expanded]');
    await page.reads('orders:read');
    await page.reads('403 permission_missing: orders:read');

    await page.click('nav a[href="#access"]');
    await page.sees(
      'who may do what',
      `[...document.querySelectorAll('.matrix tbody tr')].some((row) =>
      row.innerText.startsWith('cancel') && row.querySelectorAll('td')[0].innerText.includes('orders:cancel'))`,
    );
    await page.click('nav a[href="#coverage"]');
    await page.sees(
      'what no case shows',
      `[...document.querySelectorAll('.rulings tbody tr')].some((row) =>
      row.innerText.startsWith('cancel') && row.innerText.includes('0 of 3') && row.innerText.includes('no case'))`,
    );
    await page.click('nav a[href="#diff"]');
    await page.reads('access widens');
    await page.reads('!   gains: checkout with orders:cancel');
    await page.click('.texts section .actions button');
    await page.sees('buttons', 'document.querySelectorAll(".actions").length === 3');
    await page.click('section[aria-labelledby="before"] .actions button');
    await page.reads('no change in effect');

    await page.click('section[aria-labelledby="requests-and-claims"] .actions button');
    await page.reads('100 %');
    await page.click('nav a[href="#results"]');
    await page.reads('cancel: checkout without orders:cancel');
    await page.click('.rulings button.line');
    await page.sees('the line of the case', "document.querySelectorAll('.editor')[1] === document.activeElement");
    asksNobody(t, page);
  },
);

t.test('texts of configs, claims and paths stay texts, and end no element of the page', async (t) => {
  const attack = "</script><svg/onload=document.title='pwned'>";
  const config = {
    name: `${attack}.yaml`,
    text: exampleConfig
      .replace('subjects: [checkout, reporting]', `subjects: [checkout, ${JSON.stringify(attack)}]`)
      .concat(`# <!-- ${attack} $& $\` \u2028\n`),
  };
  const tests = {
    name: 'policy.test.yaml',
    text: JSON.stringify({
      config: 'sallyport.yaml',
      cases: [
        {
          name: `${attack} in a name`,
          request: { method: 'GET', path: `/orders/${attack}`, headers: { [attack]: attack } },
          claims: { sub: attack, permissions: [attack], [attack]: attack },
          expect: { status: 599, headers: { [attack]: attack } },
        },
      ],
    }),
  };
  const page = await openFile(t, await pageWith({ config, tests }));
  t.equal(await page.evaluate('JSON.parse(document.getElementById("files").textContent).config.text'), config.text);
  await page.reads(`${attack} in a name`);
  await page.click('.rulings button[aria-expanded]');
  await page.sees('its explanation', 'document.querySelector(".steps") !== null');
  for (const view of ['access', 'coverage', 'diff', 'about']) {
    await page.click(`nav a[href="#${view}"]`);
    await page.sees(`the view ${view}`, `location.hash === '#${view}'`);
    if (view === 'access') await page.reads(attack);
  }
  await writeAtEnd(page, `\n${attack}: ${attack}\n`);
  await page.sees('a problem', 'document.querySelector(".problems li .badge.bad") !== null');
  t.equal(await page.evaluate('document.title'), 'Sallyport playground');
  t.equal(await page.evaluate('document.querySelectorAll("[onload], [onerror], img, body svg").length'), 0);
  asksNobody(t, page);
});

t.test('its policy lets nothing in and nothing out', async (t) => {
  const page = await openFile(t, html);
  await page.reads('8 cases, 0 failed');
  const refused = async (what: string): Promise<unknown> =>
    page.evaluate(`(async () => { try { ${what}; return 'done'; } catch (error) { return error.name; } })()`);
  t.equal(await refused('await fetch("http://127.0.0.1:9/")'), 'TypeError');
  t.equal(await refused('document.body.innerHTML = "<p>"'), 'TypeError');
  t.equal(await refused('document.createElement("script").text = "1"'), 'TypeError');
  t.equal(await page.evaluate('localStorage.length + sessionStorage.length'), 0, 'nothing is kept');
  t.ok(page.messages.length >= 3, 'the browser says that it refused');
});

t.test('what a page has not, it asks for or says', async (t) => {
  const text = exampleConfig
    .replace('port: 8080', 'port: "${env:PORT}"')
    .replace('audience: orders', 'audience: ${file:aud}');
  const tests = {
    name: 'policy.test.yaml',
    text: 'config: x\ncases:\n  - name: one\n    request: { method: GET, path: /healthz, client_certificate: a.pem }\n    expect: { status: 200 }\n',
  };
  const page = await openFile(t, await pageWith({ config: { name: 'a.yaml', text }, tests }));
  await page.reads('${env:PORT} is not set in the environment');
  await page.reads('${file:aud} cannot be read: files are not read here');
  await page.click('.placeholders label:nth-of-type(1) input');
  await page.type('8080');
  await page.click('.placeholders label:nth-of-type(2) input');
  await page.type('orders');
  await page.reads('config holds');
  await page.reads('client_certificate a.pem: is not read here');
  await page.click('nav a[href="#about"]');
  await page.reads('Verify signatures');
  asksNobody(t, page);
});

t.test('cases are written where none were given, and problems of cases stand where they are', async (t) => {
  const page = await openFile(t, await pageWith({ config: { name: 'orders.yaml', text: exampleConfig }, tests: null }));
  await page.reads('coverage 100 %');
  await page.sees('the name of the config', `${inEditor(1, '.cm-line')}.innerText === 'config: orders.yaml'`);
  await page.click('.text:nth-child(2) .editor');
  await page.press('End', true);
  await page.type('  - name: wrong\n    request: { method: GET, path: / }\n    expect: { reason: permission_mis');
  await page.sees(
    'the reasons',
    `${inEditor(1, '.cm-tooltip-autocomplete')}?.innerText.includes('permission_missing') === true`,
  );
  await take(page, 1);
  await page.type(' }');
  await page.reads('1 failed');
  await page.reads('reason: expected "permission_missing", got "credential_missing"');
  asksNobody(t, page);
});

t.test('it is used on a phone, by keyboard, in the dark', async (t) => {
  const page = await openFile(t, html);
  await page.resize(360, 740, true);
  await page.reads('8 cases, 0 failed');
  for (const view of ['results', 'access', 'coverage', 'diff', 'about']) {
    await page.click(`nav a[href="#${view}"]`);
    await page.sees(`the view ${view}`, `location.hash === '#${view}'`);
    t.equal(
      await page.evaluate('document.documentElement.scrollWidth <= window.innerWidth'),
      true,
      `${view}: nothing is wider than the screen`,
    );
  }
  await page.resize(1280, 900);
  await page.useScheme('dark');
  await page.sees(
    'it is dark',
    "getComputedStyle(document.querySelector('.card')).backgroundColor === 'rgb(24, 32, 36)'",
  );
  t.equal(await page.evaluate(`getComputedStyle(${inEditor(0, '.cm-editor')}).backgroundColor`), 'rgb(24, 32, 36)');
  await page.evaluate('document.activeElement.blur(); window.getSelection().removeAllRanges(); scrollTo(0, 0)');
  await page.click('h1');
  const focused = async (): Promise<unknown> =>
    page.evaluate(
      'document.activeElement.shadowRoot?.activeElement?.getAttribute("aria-label") ?? document.activeElement.innerText.trim()',
    );
  const seen: unknown[] = [];
  for (let step = 0; step < 12 && seen.at(-1) !== 'Results'; step += 1) {
    await page.press('Tab');
    seen.push(await focused());
  }
  t.match(seen.join('|'), /\|Config\|[^]*\|Requests and claims\|[^]*Results$/, 'Tab leaves the editors again');
  asksNobody(t, page);
});
