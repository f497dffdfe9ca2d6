import t from 'tap';
import {
  createSignatureQueue,
  type SignatureQueue,
  type SignatureVerdict,
} from '../../../src/proxy/auth/signature-queue.js';
import type { KeyAsker } from '../../../src/ports/auth.js';
import { keyFor, signatureBy } from '../../support/profile-tokens.js';

const { privateKey, publicKey } = keyFor('ES384');
const signingInput = Buffer.from('header.payload');
const good = { signingInput, signature: signatureBy('ES384', privateKey, signingInput) };
const bad = { signingInput: Buffer.from('header.other'), signature: good.signature };

function from(address: string, more: { hasAuthenticated?: boolean; isGone?: () => boolean } = {}): KeyAsker {
  const { hasAuthenticated = false, isGone = () => false } = more;
  return { address: () => address, hasAuthenticated: () => hasAuthenticated, isGone, now: () => 0 };
}

interface Told {
  readonly queue: SignatureQueue;
  /** Who was answered, and how, in that order. */
  readonly answers: string[];
  readonly ask: (name: string, asker: KeyAsker | null, signed?: typeof good) => void;
  readonly over: () => Promise<unknown>;
}

function open(maxWaiting: number, atOnce = 1): Told {
  const queue = createSignatureQueue({ maxWaiting, atOnce });
  const answers: string[] = [];
  const asked: Promise<SignatureVerdict>[] = [];
  return {
    queue,
    answers,
    ask: (name, asker, signed = bad) => {
      const checked = queue.check(signed, publicKey, 'ES384', asker);
      asked.push(checked);
      void checked.then((verdict) => answers.push(verdict === 'does not hold' ? name : `${name} ${verdict}`));
    },
    over: () => Promise.all(asked),
  };
}

t.test('a signature that holds, one that does not, and one that cannot', async (t) => {
  const { queue } = open(8);
  t.equal(await queue.check(good, publicKey, 'ES384', null), 'holds');
  t.equal(await queue.check(bad, publicKey, 'ES384', null), 'does not hold');
  t.equal(await queue.check(good, privateKey, 'ES384', null), 'does not hold');
  t.equal(await queue.check({ ...good, signature: Buffer.alloc(95) }, publicKey, 'ES384', null), 'does not hold');
  t.same(queue.counts(), { waiting: 0, underWay: 0 });
});

t.test('no more than so many at a time, and no more wait than there are places', async (t) => {
  const { queue, ask, answers, over } = open(8, 2);
  for (const name of ['1', '2', '3', '4', '5', '6', '7']) ask(name, from('203.0.113.9'));
  t.same(queue.counts(), { waiting: 4, underWay: 2 });
  await over();
  t.equal(answers[0], '7 busy', 'one network has no more than all places, and is told at once');
  t.equal(answers.length, 7);
  t.same(queue.counts(), { waiting: 0, underWay: 0 });
});

t.test('who sends many waits behind everybody else for all but the first', async (t) => {
  const { ask, answers, over } = open(100);
  for (let index = 0; index < 40; index += 1) ask(`flood ${String(index)}`, from('203.0.113.9'));
  for (let index = 0; index < 8; index += 1) ask('a /48', from(`2001:db8:1:${String(index)}::1`));
  ask('honest', from('192.0.2.1'), good);
  ask('caller', from('203.0.113.9', { hasAuthenticated: true }), good);
  await over();
  const places = ['honest holds', 'caller holds'].map((name) => answers.indexOf(name));
  t.ok(
    places.every((place) => place < 6),
    `they were answered after ${places.join(' and ')} others`,
  );
});

t.test('callers with a good credential and strangers take turns, whoever sends many', async (t) => {
  for (const hasAuthenticated of [true, false]) {
    const { ask, answers, over } = open(100);
    for (let index = 0; index < 40; index += 1) ask('flood', from('203.0.113.9', { hasAuthenticated }));
    ask('honest', from('192.0.2.1', { hasAuthenticated: !hasAuthenticated }), good);
    await over();
    t.ok(answers.indexOf('honest holds') < 4, `after ${String(answers.indexOf('honest holds'))} others`);
  }
});

t.test('a newcomer takes the place of whoever has most, who is told', async (t) => {
  const { ask, answers, over } = open(8);
  for (const name of ['1', '2', '3', '4', '5']) ask(name, from('203.0.113.9'));
  ask('honest', from('192.0.2.1'), good);
  await over();
  t.equal(answers[0], '5 busy');
  t.ok(answers.includes('honest holds'));
});

t.test('nothing is checked for who has left', async (t) => {
  const { ask, answers, over } = open(8);
  let hasLeft = false;
  ask('1', from('192.0.2.1'));
  ask('gone', from('192.0.2.2', { isGone: () => hasLeft }), good);
  ask('3', from('192.0.2.3'));
  hasLeft = true;
  await over();
  t.same([...answers].sort(), ['1', '3', 'gone busy']);
});

t.test('what the proxy authorizes again by itself is never turned away', async (t) => {
  const { ask, answers, over } = open(4);
  for (let index = 0; index < 30; index += 1) ask('again', null, good);
  await over();
  t.same([...new Set(answers)], ['again holds']);
});
