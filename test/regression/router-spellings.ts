/**
 * Spellings of `/orders/desk` before real routers: those that run it are refused by the target gate, or told of by a
 * setting of `receiver`.
 */
import type { Test } from 'tap';
import { problemsOf } from '../config/inspection.js';
import { startProxy } from '../proxy/harness.js';
import { sendRaw } from '../support/raw-client.js';
import { baseConfig } from '../support/proxy-process.js';
import type { Fold, Router } from './routers.js';

interface Spelling {
  readonly target: string;
  readonly method?: string;
  /** The setting that tells whether a router takes it for `/orders/desk`; `null` where none may have to. */
  readonly fold: Fold | null;
}

const folded: Readonly<Record<Exclude<Fold, 'head_as_get'>, readonly string[]>> = {
  // Letters beyond ASCII fold too: the long s, the sign for kelvin.
  case_sensitive: ['/orders/DESK', '/Orders/desk', '/orders/%44esk', '/orders/de%C5%BFk', '/orders/des%E2%84%AA'],
  strict_slash: ['/orders/desk/'],
  format_suffix: ['/orders/desk.json', '/orders/desk.x', '/orders/desk.tar.gz'],
  trailing_dots: [
    '/orders/desk.',
    '/orders/desk..',
    '/orders/desk%20',
    '/orders/desk%2E',
    '/orders/%20desk',
    '/%20orders/desk',
    '/orders./desk',
    '/orders%20/desk',
  ],
};

/** Slashes and dots in other ways, parameters, what is decoded twice, cut off, or made one with something else. */
const neverFolded = [
  '/orders//desk',
  '//orders/desk',
  '/orders/./desk',
  '/orders/x/../desk',
  '/orders/desk/.',
  '/orders%2Fdesk',
  '/orders%2fdesk',
  '/orders%5Cdesk',
  '/orders\\desk',
  '/orders/desk;a=b',
  '/orders/desk%3Ba=b',
  '/orders;a/desk',
  '/orders/%2564esk',
  '/orders/desk%2500',
  '/orders/desk%00',
  '/orders/desk%00.txt',
  '/orders/desk%0A',
  '/orders/desk%0D%0A',
  '/orders/desk%09',
  '/orders/desk%23',
  '/orders/desk%3F',
  '/orders/desk%3Fa=b',
  '/orders/desk%2F',
  '/orders/desk%2F.',
  '/orders/%EF%BD%84%EF%BD%85%EF%BD%93%EF%BD%8B',
  '/orders/desk%CC%81',
  '/orders/desk%EF%BB%BF',
  '/orders/desk%C2%A0',
  '/orders/desk%E2%80%8B',
  '/orders/de%C2%ADsk',
  '/orders/d%65%73k%',
  '/orders/%u0064esk',
  // Where ASP.NET keeps a session's id for callers without cookies.
  '/(S(abcdefghijklmnopqrstuvwx))/orders/desk',
  '/orders/(S(abcdefghijklmnopqrstuvwx))/desk',
  '/orders.json/desk',
  // Nothing is left of it where blanks are cut off.
  '/orders/%20/desk',
  '/%20/orders/desk',
  '/orders/desk/%20',
  '/orders/x/..%20/desk',
  '/orders/%20../orders/desk',
  '/orders/.%20/desk',
  '/orders/desk/.%20',
  '/orders/%c0%afdesk',
  '/orders/+desk',
  '/orders/desk+',
  '/orders/desk,',
  '/orders/desk:',
  '/orders/desk~',
];

const spellings: readonly Spelling[] = [
  ...Object.entries(folded).flatMap(([fold, targets]) => targets.map((target) => ({ target, fold: fold as Fold }))),
  { target: '/orders/desk', method: 'HEAD', fold: 'head_as_get' },
  ...neverFolded.map((target) => ({ target, fold: null })),
];

const strict = { name: 'desk', methods: ['GET'], path: '/orders/desk', subjects: ['root'], permissions: [] };
const lax = {
  name: 'order',
  methods: ['GET', 'HEAD'],
  path: '/**',
  subjects: ['checkout'],
  permissions: [],
};
const routes = [strict, lax];

/** What a receiver is declared to be where it folds nothing. */
const foldless = {
  case_sensitive: true,
  strict_slash: true,
  format_suffix: false,
  trailing_dots: false,
  head_as_get: false,
};
const byDefault = {
  case_sensitive: false,
  strict_slash: false,
  format_suffix: true,
  trailing_dots: true,
  head_as_get: true,
};

/**
 * Declares that it folds nothing, sends every spelling as the laxer caller, and compares what got through with the
 * router's row.
 */
export async function holdRouter(t: Test, { name, folds, start }: Router): Promise<void> {
  const port = await start(t);
  const proxy = await startProxy(t, {
    upstreamUrl: `http://127.0.0.1:${String(port)}`,
    config: { routes, receiver: foldless },
  });
  const ran: Spelling[] = [];
  for (const spelling of spellings) {
    const { target, method = 'GET' } = spelling;
    const [answer] = await sendRaw(proxy.port, `${method} ${target} HTTP/1.1\r\nHost: a\r\n${proxy.bearer()}\r\n`);
    if (answer?.field('x-ran') === 'desk') ran.push(spelling);
  }
  t.same(
    ran.filter(({ fold }) => fold === null).map(({ target }) => target),
    [],
    `${name}: what no setting tells of`,
  );
  t.same(
    [...new Set(ran.map(({ fold }) => fold))].sort(),
    [...folds].sort(),
    `${name}: ${ran.map(({ target }) => target).join(' ')}`,
  );
  for (const fold of folds) {
    const problems = problemsOf(baseConfig({ routes, receiver: { ...foldless, [fold]: byDefault[fold] } }));
    t.ok(
      problems.some((problem) => problem.includes(': error: ')),
      `${name}: with ${fold} as it is by default, such routes are refused`,
    );
  }
}
