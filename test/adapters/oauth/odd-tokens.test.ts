/** Tokens that an issuer, or a filter before it, takes amiss: whoever sends them keeps nobody else from being heard. */
import t from 'tap';
import { sayJson, type IntrospectionServer } from '../../support/introspection-server.js';
import { until } from '../../support/until.js';
import { asker, startIntrospector, type IntrospectorHarness } from './introspector-harness.js';

const settings = { unknownPerSecond: 1_000, unknownPerAddress: 1_000, timeoutMs: 3_000 };

/** Answers as ever, but for tokens that begin with `odd`. */
function misbehave(server: IntrospectionServer, hangsUp: boolean): void {
  server.behave(({ form }, res) => {
    const token = form.get('token') ?? '';
    if (!token.startsWith('odd')) sayJson(res, server.tokens.get(token) ?? { active: false });
    else if (hangsUp) res.destroy();
  });
}

async function started(t: Parameters<typeof startIntrospector>[0], hangsUp: boolean): Promise<IntrospectorHarness> {
  const harness = await startIntrospector(t, { settings });
  harness.server.tokens.set('good', harness.active());
  if ((await harness.ask('good', asker('192.0.2.1'))) !== 'active') throw new Error('not active');
  harness.server.tokens.set('new', harness.active());
  misbehave(harness.server, hangsUp);
  harness.time.advance(30_000);
  return harness;
}

t.test('connections that break for the tokens of strangers', async (t) => {
  const { ask } = await started(t, true);
  for (let index = 0; index < 20; index += 1) await ask(`odd${String(index)}`, asker('203.0.113.9'));
  t.equal(await ask('another', asker('192.0.2.9')), 'unavailable at once', 'strangers share what comes of it');
  t.equal(await ask('good', asker('192.0.2.1')), 'active', 'a token that was active is asked about');
  t.equal(await ask('new', asker('192.0.2.2', true)), 'active', 'and a new one of a caller that has shown a good one');
});

t.test('responses that never come for the tokens of strangers', async (t) => {
  const { ask, server, introspection } = await started(t, false);
  const flood = Array.from({ length: 400 }, (_, index) => ask(`odd${String(index)}`, asker('203.0.113.9')));
  await until('all connections are taken', () => server.questions.length >= 33);
  t.equal(introspection.state().inFlight, 128, 'half of all that may wait');
  t.equal(await ask('good', asker('192.0.2.1')), 'active');
  t.equal(await ask('new', asker('192.0.2.2', true)), 'active');
  const answers = await Promise.all(flood);
  t.same([...new Set(answers)].sort(), ['limited at once', 'unavailable']);
});

t.test('responses that never come for odd tokens of somebody who has shown a good one', async (t) => {
  const { ask, server } = await started(t, false);
  const odd = Array.from({ length: 5 }, (_, index) => ask(`odd${String(index)}`, asker('203.0.113.9', true)));
  t.same(await Promise.all(odd), Array(5).fill('unavailable'));
  t.equal(await ask('good', asker('203.0.113.9', true)), 'active', 'a token that was active is asked about');
  t.equal(await ask('new', asker('192.0.2.2', true)), 'active', 'and a new one from another address');
  t.equal(await ask('odd', asker('203.0.113.9', true)), 'unavailable at once', 'the issuer is left in peace');

  const before = server.questions.length;
  server.tokens.set('newer', { ...server.tokens.get('new') });
  const flood = Array.from({ length: 400 }, (_, index) => ask(`odd of many ${String(index)}`, asker('::1', true)));
  await until('one address has its share of the connections', () => server.questions.length >= before + 16);
  t.equal(await ask('newer', asker('192.0.2.2', true)), 'active', 'others have what is left');
  t.equal(server.questions.length, before + 17);
  const answers = await Promise.all(flood);
  t.same([...new Set(answers)].sort(), ['limited at once', 'unavailable']);
});

t.test('connections that break for odd tokens of somebody who has shown a good one', async (t) => {
  const { ask } = await started(t, true);
  for (let index = 0; index < 6; index += 1) await ask(`odd${String(index)}`, asker('203.0.113.9', true));
  t.equal(await ask('another', asker('203.0.113.9', true)), 'unavailable at once');
  t.equal(await ask('good', asker('203.0.113.9', true)), 'active');
  t.equal(await ask('new', asker('192.0.2.2', true)), 'active');
});

t.test('all connections are taken by new tokens of many callers', async (t) => {
  const { ask, server } = await started(t, false);
  const flood = Array.from({ length: 200 }, (_, index) =>
    ask(`odd${String(index)}`, asker(`203.0.113.${String(index)}`, true)),
  );
  await until('they are taken', () => server.questions.length >= 33);
  t.equal(await ask('good', asker('192.0.2.1', true)), 'active', 'tokens that were active have others');
  await Promise.all(flood);
});

t.test('an issuer that is away is left in peace', async (t) => {
  const { ask, server, active, time } = await startIntrospector(t, { settings });
  const names = Array.from({ length: 6 }, (_, index) => `good${String(index)}`);
  for (const name of names) server.tokens.set(name, active());
  for (const name of names) await ask(name, asker('192.0.2.1'));
  time.advance(30_000);
  server.behave((_question, res) => res.destroy());
  for (const name of names.slice(1)) t.equal(await ask(name, asker('192.0.2.1')), 'unavailable');
  t.equal(await ask('good0', asker('192.0.2.9', true)), 'unavailable at once');
});
