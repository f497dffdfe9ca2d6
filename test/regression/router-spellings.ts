/**
 * Spellings of `/orders/desk`, and of a script, before real routers: those that run it are refused by the target gate,
 * or told of by a setting of `receiver`.
 */
import type { Test } from 'tap';
import { problemsOf } from '../config/inspection.js';
import { startProxy } from '../proxy/harness.js';
import { sendRaw } from '../support/raw-client.js';
import { baseConfig } from '../support/proxy-process.js';
import type { Fold, Router } from './routers.js';
import type { ScriptServer } from './scripts.js';

interface Spelling {
  readonly target: string;
  readonly method?: string;
  /** The setting that tells whether a router takes it for `/orders/desk`; `null` where none may have to. */
  readonly fold: Fold | null;
}

const folded: Readonly<Record<Exclude<Fold, 'head_as_get' | 'path_info'>, readonly string[]>> = {
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
  '/orders/desk/x',
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

/** The same of a script: what it is given of the path stands behind its name. */
const spellingsOf = (script: string): readonly Spelling[] => [
  ...['/x', '/', '/x/y', '/x.json', '/x.php', '/x%20', '/%2E%2E%2E', '/;', '/x?y'].map((end) => ({
    target: `${script}${end}`,
    fold: 'path_info' as const,
  })),
  { target: script, method: 'HEAD', fold: 'head_as_get' },
  { target: script.toUpperCase(), fold: 'case_sensitive' },
  { target: `${script}.json`, fold: 'format_suffix' },
  ...['.', '%20'].map((end) => ({ target: `${script}${end}`, fold: 'trailing_dots' as const })),
  ...[`/x${script}`, `/x.php${script}`, `${script}%2Fx`, `${script}%5Cx`, `${script};x`, `${script}%3Bx`].map(unfolded),
  ...[`${script}%00`, `${script}%00x`, `${script}%0A`, `${script}//x`, `/${script}`, `${script}/../x`].map(unfolded),
  ...[`${script}%252Fx`, `${script}:x`, `${script}~`, `${script}::$DATA`].map(unfolded),
];

function unfolded(target: string): Spelling {
  return { target, fold: null };
}

const lax = {
  name: 'order',
  methods: ['GET', 'HEAD'],
  path: '/**',
  subjects: ['checkout'],
  permissions: [],
};

/** What a receiver is declared to be where it folds nothing. */
const foldless = {
  case_sensitive: true,
  strict_slash: true,
  format_suffix: false,
  trailing_dots: false,
  head_as_get: false,
  path_info: false,
};
const byDefault = {
  case_sensitive: false,
  strict_slash: false,
  format_suffix: true,
  trailing_dots: true,
  head_as_get: true,
  path_info: true,
};

/**
 * Declares that it folds nothing, sends every spelling as the laxer caller, and compares what got through with the
 * router's row.
 */
export async function holdRouter(t: Test, router: Router): Promise<void> {
  await hold(t, router, '/orders/desk', spellings);
}

/** The same for a server of scripts. */
export async function holdScript(t: Test, server: ScriptServer): Promise<void> {
  await hold(t, server, server.path, spellingsOf(server.path));
}

async function hold(
  t: Test,
  { name, folds, start }: Router,
  path: string,
  spellings: readonly Spelling[],
): Promise<void> {
  const strict = { name: 'desk', methods: ['GET'], path, subjects: ['root'], permissions: [] };
  const routes = [strict, lax];
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
