import { Registry } from 'prom-client';
import t from 'tap';
import { showRevocations } from '../../../src/adapters/metrics/revocations.js';
import type { RevocationsState } from '../../../src/ports/revocations.js';

const held = ['a', 'b'].map(
  (value) =>
    ({
      id: value,
      kind: 'subject',
      value,
      issuer: null,
      reason: 'x',
      author: 'ann',
      createdAtMs: 0,
      endsAtMs: 1,
    }) as const,
);
const state: RevocationsState = {
  isLoaded: true,
  areRequired: true,
  isStale: false,
  ageMs: 1_500,
  problem: null,
  hasNews: true,
  held,
  notInForce: 3,
  lost: ['a'],
};

t.test('revocations by kind, their age, and what is wrong with them', async (t) => {
  const registry = new Registry();
  let now: RevocationsState | null = null;
  showRevocations(registry, () => now);
  const lines = async (): Promise<readonly string[]> =>
    (await registry.metrics()).split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  t.same(await lines(), [], 'nothing where no store tells of any');
  now = state;
  t.same(await lines(), [
    'sallyport_revocations{kind="key_id"} 0',
    'sallyport_revocations{kind="subject"} 2',
    'sallyport_revocations{kind="token_id"} 0',
    'sallyport_revocations{kind="token"} 0',
    'sallyport_revocations{kind="issued_before"} 0',
    'sallyport_revocations_age_seconds 1.5',
    'sallyport_revocations_lost 1',
    'sallyport_revocations_not_in_force 3',
  ]);
  now = null;
  t.same(await lines(), []);
});
