/** What is explored: receivers, requests and how often each disturbance happens. */
import type { Budgets, Preset, Receiver, Request } from './model.js';

const same: Request = { fingerprint: 'f', token: null };
const other: Request = { fingerprint: 'g', token: null };
const once: Request = { fingerprint: 'f', token: 't' };

const two = [same, same];
const three = [same, same, same];

const receivers: readonly Receiver[] = ['plain', 'reports', 'deduplicates'];

function preset(receiver: Receiver, name: string, requests: readonly Request[], budgets: Partial<Budgets>): Preset {
  return { name: `${receiver}, ${name}`, receiver, requests, budgets };
}

/** In `npm test`: two attempts at one write, or at two with one key. */
export const smallPresets: readonly Preset[] = [
  ...receivers.map((receiver) => preset(receiver, 'messages', two, { late: 1, broken: 1, refused: 1, lease: 1 })),
  preset('plain', 'doubled', two, { doubled: 1, late: 1, broken: 1 }),
  preset('plain', 'crashes', two, { crash: 1, broken: 1, gone: 1, lease: 1, resolve: 1 }),
  preset('deduplicates', 'crashes', two, { crash: 1, broken: 1, gone: 1, lease: 1, resolve: 1 }),
  preset('plain', 'clocks', two, { broken: 1, lease: 1, back: 1, forwards: 1 }),
  preset('deduplicates', 'clocks', two, { refused: 1, lease: 1, back: 1, forwards: 1 }),
  preset('plain', 'fail-over', two, { late: 1, broken: 1, failover: 1, unconfirmed: 1 }),
  preset('plain', 'another request', [same, other], { late: 1, broken: 1, refused: 1, lease: 1, resolve: 1 }),
  preset('plain', 'single use', [once, once], { late: 1, broken: 1, crash: 1, failover: 1 }),
  preset('plain', 'resolved', two, { late: 1, broken: 1, lease: 1, resolve: 1 }),
  preset('plain', 'three at once', three, { late: 1, broken: 1 }),
  preset('deduplicates', 'another request', [same, same, other], { late: 1, broken: 1 }),
  { ...preset('plain', 'forgets', two, { late: 1, broken: 1, lease: 1, failover: 1 }), forgets: true },
  { ...preset('plain', 'resolved, forgets', two, { broken: 1, lease: 1, failover: 1, resolve: 1 }), forgets: true },
  {
    ...preset('plain', 'single use, forgets', [once, once], { late: 1, broken: 1, lease: 1, failover: 1 }),
    forgets: true,
  },
  {
    ...preset('plain', 'single use without a key', [once, once, once], {
      late: 1,
      doubled: 1,
      crash: 1,
      broken: 1,
      lease: 1,
    }),
    keyless: true,
  },
  {
    ...preset('plain', 'single use, clock jumps', [once, once, once], {
      late: 1,
      doubled: 1,
      broken: 1,
      back: 1,
      jump: 1,
    }),
    keyless: true,
  },
];

/** By `npm run explore -- large` and in the long tests. */
export const largePresets: readonly Preset[] = [
  ...receivers.flatMap((receiver) => [
    preset(receiver, 'everything once', two, {
      late: 1,
      doubled: 1,
      broken: 1,
      refused: 1,
      crash: 1,
      gone: 1,
      lease: 1,
      resolve: 1,
    }),
    preset(receiver, 'clocks and fail-over', two, {
      late: 1,
      broken: 1,
      refused: 1,
      lease: 1,
      back: 1,
      forwards: 1,
      failover: 1,
      unconfirmed: 1,
    }),
    preset(receiver, 'three attempts', three, { late: 1, broken: 1, refused: 1, crash: 1, lease: 1 }),
    preset(receiver, 'three attempts, clocks', three, { broken: 1, refused: 1, lease: 1, back: 1, resolve: 1 }),
  ]),
  preset('plain', 'messages twice', two, { late: 2, doubled: 2, broken: 2, refused: 1, lease: 2 }),
  preset('reports', 'messages twice', two, { late: 2, doubled: 2, broken: 2, refused: 1, lease: 2 }),
  { ...preset('reports', 'forgets', two, { late: 1, broken: 1, refused: 1, lease: 1, failover: 2 }), forgets: true },
  {
    ...preset('deduplicates', 'forgets', two, { late: 1, broken: 1, refused: 1, lease: 1, failover: 1 }),
    forgets: true,
  },
  preset('plain', 'two attempts and another request', [same, same, other], {
    late: 1,
    broken: 1,
    refused: 1,
    lease: 1,
    resolve: 1,
  }),
  preset('plain', 'three single uses', [once, once, once], { late: 1, broken: 1, crash: 1, lease: 1, failover: 1 }),
];
