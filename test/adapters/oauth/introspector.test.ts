import { renameSync, writeFileSync } from 'node:fs';
import t from 'tap';
import { localFiles } from '../../../src/adapters/files/files.js';
import { circuitPauseMs, circuitThreshold } from '../../../src/decision/limits/circuit-breaker.js';
import { accept } from '../../../src/lib/result.js';
import { sayJson, startIntrospection } from '../../support/introspection-server.js';
import { until } from '../../support/until.js';
import { asker, startIntrospector } from './introspector-harness.js';

t.test('what the issuer said is believed for 30 s and for 5 s, and no longer than exp', async (t) => {
  const { ask, server, time, active, introspection } = await startIntrospector(t);
  server.tokens.set('good', active());
  server.tokens.set('short', active({}, 10));
  t.equal(await ask('good'), 'active');
  t.equal(await ask('good'), 'active at once');
  t.equal(await ask('bad'), 'inactive');
  t.equal(await ask('bad'), 'inactive at once');
  t.equal(await ask('short'), 'active');
  t.equal(server.questions.length, 3);
  t.match(introspection.state(), { active: 2, inactive: 1, up: true });

  time.advance(4_999);
  t.equal(await ask('bad'), 'inactive at once');
  time.advance(1);
  server.tokens.set('bad', active());
  t.equal(await ask('bad'), 'active', 'a token that is issued later passes 5 s later');
  time.advance(5_000);
  server.tokens.delete('short');
  t.equal(await ask('short'), 'inactive', 'the answer did not outlive the token');
  time.advance(19_999);
  server.tokens.delete('good');
  t.equal(await ask('good'), 'active at once');
  time.advance(1);
  t.equal(await ask('good'), 'inactive', 'a token that was revoked is refused after 30 s');
  t.equal(introspection.lastClaims('good'), null);
});

t.test('no token is kept, and what asks it says nothing but what RFC 7662 has', async (t) => {
  const { ask, server, active } = await startIntrospector(t);
  server.tokens.set('good', active());
  await ask('good');
  const [question] = server.questions;
  t.same([...(question?.form ?? [])].sort(), [
    ['token', 'good'],
    ['token_type_hint', 'access_token'],
  ]);
  t.match(question?.headers, { accept: 'application/json', 'content-type': 'application/x-www-form-urlencoded' });
});

t.test('everybody who brings a token waits for one question', async (t) => {
  const { ask, server, active, lookedUp, introspection } = await startIntrospector(t);
  server.tokens.set('good', active());
  const answers = Array.from({ length: 50 }, async () => ask('good'));
  t.equal(introspection.state().inFlight, 1);
  t.same(await Promise.all(answers), Array(50).fill('active'));
  t.equal(server.questions.length, 1);
  t.same(lookedUp, ['asked', ...Array<string>(49).fill('joined')]);
  t.equal(introspection.state().inFlight, 0);
});

t.test('made-up tokens are asked about no more often than the budget says', async (t) => {
  const { ask, server, time, active, lookedUp } = await startIntrospector(t, {
    settings: { unknownPerSecond: 4, unknownPerAddress: 2 },
  });
  server.tokens.set('good', active());
  t.equal(await ask('good', asker('192.0.2.1')), 'active');
  const flood = async (
    from: string,
    count: number,
    address: string,
    hasAuthenticated = false,
  ): Promise<readonly string[]> =>
    Promise.all(
      Array.from({ length: count }, async (_, index) =>
        ask(`${from}${String(index)}`, asker(address, hasAuthenticated)),
      ),
    );
  const one = await flood('a', 1_000, '192.0.2.1');
  t.equal(one.filter((answer) => answer === 'inactive').length, 10, 'five times what one address may in a second');
  t.equal(one.filter((answer) => answer === 'limited at once').length, 990, 'the others are answered at once');
  for (let index = 2; index < 50; index += 1) await flood(`b${String(index)}-`, 20, `192.0.2.${String(index)}`);
  t.equal(server.questions.length, 1 + 20, 'five times what all may');
  t.equal(await ask('new', asker('192.0.2.99')), 'limited at once');

  // Honest callers go on: what was active is asked about again, and who has shown a good token before has a share.
  time.advance(30_000);
  await flood('c', 100, '192.0.2.1');
  await flood('d', 100, '192.0.2.2');
  t.equal(await ask('good', asker('192.0.2.1')), 'active');
  server.tokens.set('next', active());
  t.equal(await ask('next', asker('192.0.2.77')), 'limited at once');
  t.equal(await ask('next', asker('192.0.2.77', true)), 'active');
  t.ok(lookedUp.includes('limited'));
});

t.test('tokens that are good do not count against the budget', async (t) => {
  const { ask, server, active } = await startIntrospector(t, {
    settings: { unknownPerSecond: 2, unknownPerAddress: 1 },
  });
  for (let index = 0; index < 100; index += 1) {
    server.tokens.set(`good${String(index)}`, active());
    t.equal(await ask(`good${String(index)}`, asker('192.0.2.1')), 'active');
  }
});

t.test('an issuer that does not answer is left in peace, and asked again by one', async (t) => {
  const server = await startIntrospection(t);
  const { ask, time, lines, introspection, asked } = await startIntrospector(t, {
    server,
    settings: { unknownPerSecond: 100, unknownPerAddress: 100 },
  });
  server.behave((_question, res) => res.destroy());
  for (let index = 0; index < circuitThreshold; index += 1) t.equal(await ask(`x${String(index)}`), 'unavailable');
  t.equal(await ask('next'), 'unavailable at once');
  t.equal(server.questions.length, circuitThreshold);
  t.same(
    lines.map(({ msg }) => msg),
    ['opaque tokens cannot be verified with their issuer'],
    'one line for an outage',
  );
  t.match(introspection.state(), { up: false, problem: /ECONNRESET|other side closed|connection/i });
  time.advance(circuitPauseMs);
  server.behave(null);
  const [trial, other] = [ask('trial'), ask('other')];
  t.same(await Promise.all([trial, other]), ['inactive', 'unavailable at once']);
  t.equal(await ask('other'), 'inactive');
  t.match(introspection.state(), { up: true, problem: null });
  t.equal(lines.at(-1)?.msg, 'opaque tokens are verified with their issuer again');
  t.same(asked, [...Array<string>(circuitThreshold).fill('failed'), 'inactive', 'inactive']);
});

t.test('a token that the issuer chokes on keeps nobody else from being asked about', async (t) => {
  const replies: readonly (readonly [number, string, string])[] = [
    [400, 'application/json', '{"error":"invalid_request"}'],
    [403, 'text/html', 'a filter before the issuer'],
    [500, 'text/plain', ''],
    [200, 'text/html', '<html>'],
    [200, 'application/json', `{"active":false,"x":"${'x'.repeat(70_000)}"}`],
  ];
  for (const [status, type, body] of replies) {
    const { ask, server, active } = await startIntrospector(t);
    server.behave((_question, res) => res.writeHead(status, { 'content-type': type }).end(body));
    for (let index = 0; index < 2 * circuitThreshold; index += 1) t.equal(await ask('odd'), 'unavailable');
    server.behave(null);
    server.tokens.set('good', active());
    t.equal(await ask('good'), 'active', String(status));
  }
});

t.test('an issuer that fails for tokens that it knew is left in peace', async (t) => {
  const { ask, server, active, time } = await startIntrospector(t);
  for (let index = 0; index < circuitThreshold; index += 1) server.tokens.set(`good${String(index)}`, active());
  for (let index = 0; index < circuitThreshold; index += 1) t.equal(await ask(`good${String(index)}`), 'active');
  time.advance(31_000);
  server.behave((_question, res) => res.writeHead(500).end());
  for (let index = 0; index < circuitThreshold; index += 1) t.equal(await ask(`good${String(index)}`), 'unavailable');
  t.equal(await ask('good0'), 'unavailable at once');
});

t.test('a token that is active and says no end is not asked about again and again', async (t) => {
  const { ask, server, time } = await startIntrospector(t);
  for (const exp of [undefined, 'soon', 900]) {
    const token = `t-${String(exp)}`;
    server.tokens.set(token, { active: true, sub: 'x', ...(exp === undefined ? {} : { exp }) });
    const before = server.questions.length;
    for (let index = 0; index < 5; index += 1) await ask(token);
    t.equal(server.questions.length, before + 1, token);
    time.advance(5_001);
    await ask(token);
    t.equal(server.questions.length, before + 2, 'as often as one that is refused');
  }
});

t.test('what is said of a token is not kept beyond exp, where it still counts by the skew', async (t) => {
  const { ask, server, time } = await startIntrospector(t, { rules: { clockSkewS: 5 } });
  server.tokens.set('late', { active: true, sub: 'x', exp: 1_000 });
  t.equal(await ask('late'), 'active');
  server.tokens.delete('late');
  t.equal(await ask('late'), 'inactive', 'RFC 7662 §4');
  server.tokens.set('over', { active: true, sub: 'x', exp: 995 });
  t.equal(await ask('over'), 'active');
  t.equal(await ask('over'), 'active at once', 'which is refused, and asked about no more often than others that are');
  time.advance(5_000);
  t.equal(await ask('over'), 'active');
});

t.test('where the client is refused, the log says so once', async (t) => {
  for (const { status, body } of [
    { status: 401, body: '' },
    { status: 403, body: '' },
    { status: 400, body: '{"error":"invalid_client"}' },
  ]) {
    const { ask, server, lines, asked } = await startIntrospector(t);
    server.behave((_question, res) => res.writeHead(status).end(body));
    t.equal(await ask('one'), 'unavailable');
    t.equal(await ask('two'), 'unavailable');
    t.same(asked, ['refused', 'refused']);
    t.match(lines, [
      {
        level: 'error',
        msg: /does not let this proxy ask/,
        issuer: 'idp',
        error: `the issuer refuses this client (status ${String(status)})`,
      },
    ]);
    t.equal(lines.length, 1);
  }
});

t.test('an issuer that is away is told from one that is slow', async (t) => {
  const server = await startIntrospection(t);
  const { ask, lines } = await startIntrospector(t, { server, settings: { timeoutMs: 200 } });
  server.behave(() => undefined);
  t.equal(await ask('one'), 'unavailable');
  t.equal(lines.at(-1)?.['error'], 'no complete response within 200 ms');
  await server.close();
  t.equal(await ask('two'), 'unavailable');
  t.equal(lines.at(-1)?.['error'], 'the connection was refused (ECONNREFUSED)');
});

t.test('a secret that is replaced is taken up, and one that is none is not', async (t) => {
  const { ask, server, secretFile, lines } = await startIntrospector(t);
  const { writeFileSync } = await import('node:fs');
  await ask('one');
  writeFileSync(secretFile, '');
  await until('the bad one was seen', () => lines.some(({ msg }) => msg.includes('the old ones stay in use')));
  await ask('two');
  t.equal(server.questions[1]?.headers.authorization, server.questions[0]?.headers.authorization);
  writeFileSync(secretFile, 'another');
  await until('the new one was seen', () => lines.some(({ msg }) => msg.includes('were taken up')));
  await ask('three');
  t.not(server.questions[2]?.headers.authorization, server.questions[0]?.headers.authorization);
  t.notOk(JSON.stringify(lines).includes('another'));
});

t.test('questions that wait for a connection while a secret is replaced are asked with the new one', async (t) => {
  const { introspection, server, secretFile, lines, asked, active } = await startIntrospector(t, {
    settings: { unknownPerSecond: 1_000, unknownPerAddress: 1_000 },
  });
  const held: (() => void)[] = [];
  const tokens = Array.from({ length: 40 }, (_, index) => `token${String(index)}`);
  for (const token of tokens) server.tokens.set(token, active());
  server.behave(({ form }, res) => {
    held.push(() => {
      sayJson(res, server.tokens.get(form.get('token') ?? '') ?? {});
    });
  });
  const caller = asker('192.0.2.1', true);
  const answers = tokens.map(async (token) => (await introspection.ask(token, null, caller)).kind);
  await until('those that have a turn are asked', () => held.length === 16);
  // At once: one that is read half written is warned of.
  writeFileSync(`${secretFile}.new`, 'another', { mode: 0o600 });
  renameSync(`${secretFile}.new`, secretFile);
  await until('the new one was seen', () => lines.some(({ msg }) => msg.includes('were taken up')));
  server.behave(null);
  for (const answer of held) answer();
  t.same(new Set(await Promise.all(answers)), new Set(['active']), introspection.failure()?.why ?? '');
  t.same(new Set(asked), new Set(['active']));
  const shown = server.questions.map(({ headers }) => headers.authorization);
  t.equal(new Set(shown.slice(0, 16)).size, 1);
  t.equal(new Set(shown.slice(16)).size, 1);
  t.not(shown[16], shown[0]);
  t.same(
    lines.filter(({ level }) => level === 'warn'),
    [],
  );
});

t.test('files that change again while they are read are read once more behind that, never beside it', async (t) => {
  const reads: ((text: string) => void)[] = [];
  let isSlow = false;
  let changed = (): void => undefined;
  const { ask, server, lines } = await startIntrospector(t, {
    files: {
      ...localFiles,
      read: (path, limits) =>
        isSlow ? new Promise((resolve) => reads.push((text) => resolve(accept(text)))) : localFiles.read(path, limits),
      watch: (_path, onChange) => {
        changed = () => onChange(accept(''));
        return { loaded: () => undefined, close: () => undefined };
      },
    },
  });
  isSlow = true;
  changed();
  await until('it is read', () => reads.length === 1);
  changed();
  await new Promise((resolve) => setImmediate(resolve));
  t.equal(reads.length, 1);
  reads[0]?.('older');
  await until('it is read again', () => reads.length === 2);
  reads[1]?.('newer');
  await until('both were taken up', () => lines.filter(({ msg }) => msg.includes('were taken up')).length === 2);
  await ask('one');
  const [, sent = ''] = server.questions[0]?.headers.authorization?.split(' ') ?? [];
  t.match(Buffer.from(sent, 'base64').toString(), /:newer$/);
});

t.test('where no place is known nobody is asked', async (t) => {
  const { ask, lines, server } = await startIntrospector(t, { settings: { url: null } });
  t.equal(await ask('one'), 'unavailable');
  t.match(lines, [{ error: /has no introspection_endpoint/ }]);
  t.equal(server.questions.length, 0);
  const found = await startIntrospector(t, {
    settings: { url: null },
    server,
    places: { url: server.url, mtlsUrl: 'https://127.0.0.1:1/' },
  });
  t.equal(await found.ask('one'), 'inactive');
});

t.test('once it is closed nobody is asked', async (t) => {
  const { ask, introspection, server } = await startIntrospector(t);
  await introspection.close();
  t.equal(await ask('one'), 'unavailable at once');
  t.equal(server.questions.length, 0);
});
