/** What proxies that guard `/admin` let through to whom: each front before each receiver, asked in every spelling. */
import { hostileTargets } from '../../regression/path-targets.js';
import { lookAlikes } from '../../support/attacks/field-names.js';
import { connectRaw, request, type RawResponse } from '../../support/raw-client.js';
import { markdown } from '../markdown.js';
import { scoped } from '../scoped.js';
import { fronts, type Front } from './fronts.js';
import { receivers, type Receiver } from './receivers.js';

interface Pair {
  readonly receiver: string;
  /** Targets that were taken for one of `/admin` or below, in the order of the list. */
  readonly let: readonly string[];
  /** Names by which the receiver believed the caller's `X-Auth-Subject`. */
  readonly believed: readonly string[];
  /** Whether a caller's `Connection: X-Forwarded-For` took the address away that the front tells. */
  readonly losesNominated: boolean;
  /** Harmless targets that came to no answer of the receiver. */
  readonly refused: readonly string[];
}

export interface FrontReadings {
  readonly name: string;
  readonly version: string;
  readonly pairs: readonly Pair[];
}

export interface Readings {
  /** How many targets each pair was asked. */
  readonly targets: number;
  readonly names: number;
  /** The receivers without a front. */
  readonly direct: readonly Pair[];
  readonly fronts: readonly FrontReadings[];
  /** Fronts that are not installed. */
  readonly missing: readonly string[];
}

/** In absolute form (RFC 9112 §3.2.2), which the corpora lack. */
const absoluteTargets = [
  'http://a/admin',
  'http://a/admin/x',
  'HTTP://A/ADMIN/x',
  'http://a//admin',
  'http://a@b/admin',
];

/** What applications rightly have in their paths. */
export const harmlessTargets = [
  '/public/a%20b',
  '/public/caf%C3%A9',
  '/public/%7Ejoe',
  '/public/search?q=a%2Fb%3Bc',
  '/public/packages/%40scope%2Fname',
  '/public/matrix;v=1',
  '/public/files//a',
  '/public/docs/../a',
  '/public/100%25',
  '/public/a:b@c',
  '/public/a,b',
  '/public/%61',
];

const identityHeader = 'X-Auth-Subject';
const callers = 4;

/**
 * Asks each pair. `every` leaves out targets: 1 asks all of them, 10 each tenth.
 *
 * @param only names of fronts and receivers to take part; all unless given.
 */
export async function measureReadings(options: {
  readonly every: number;
  readonly onRun?: (text: string) => void;
  readonly only?: { readonly fronts: readonly Front[]; readonly receivers: readonly Receiver[] };
}): Promise<Readings> {
  const { every, onRun = () => undefined, only = { fronts, receivers } } = options;
  const targets = [...hostileTargets().filter((_target, index) => index % every === 0), ...absoluteTargets];
  const present = only.fronts.flatMap((front) => {
    const version = front.version();
    return version === null ? [] : [{ front, version }];
  });
  const direct: Pair[] = [];
  const pairs = new Map<Front, Pair[]>(present.map(({ front }) => [front, []]));
  for (const receiver of only.receivers) {
    await scoped(async (t) => {
      const port = await receiver.start(t);
      onRun(`${receiver.name}: alone`);
      direct.push(await ask(receiver.name, port, targets));
      for (const { front } of present) {
        onRun(`${receiver.name}: ${front.name}`);
        const pair = await scoped(async (own) => ask(receiver.name, await front.start(own, port), targets));
        pairs.get(front)?.push(pair);
      }
    });
  }
  return {
    targets: targets.length,
    names: lookAlikes(identityHeader).length + 1,
    direct,
    fronts: present.map(({ front, version }) => ({ name: front.name, version, pairs: pairs.get(front) ?? [] })),
    missing: only.fronts.filter((front) => !pairs.has(front)).map(({ name }) => name),
  };
}

async function ask(receiver: string, port: number, targets: readonly string[]): Promise<Pair> {
  const shares = Array.from({ length: callers }, (_, own) => targets.filter((_target, at) => at % callers === own));
  const found = new Set((await Promise.all(shares.map(async (share) => reachedAdmin(port, share)))).flat());
  const believed: string[] = [];
  for (const name of [identityHeader, ...lookAlikes(identityHeader)]) {
    if (partsOf(await answerTo(port, '/public/', [[name, 'mallory']]))?.[1] === 'mallory') believed.push(name);
  }
  const usual = partsOf(await answerTo(port, '/public/', []))?.[2] ?? '';
  const nominated = partsOf(await answerTo(port, '/public/', [['Connection', 'X-Forwarded-For']]))?.[2];
  const refused: string[] = [];
  for (const target of harmlessTargets) if (partsOf(await answerTo(port, target, [])) === null) refused.push(target);
  return {
    receiver,
    let: targets.filter((target) => found.has(target)),
    believed,
    losesNominated: usual !== '' && nominated === '',
    refused,
  };
}

async function reachedAdmin(port: number, targets: readonly string[]): Promise<readonly string[]> {
  const reached: string[] = [];
  let caller = await connectRaw(port);
  for (const target of targets) {
    if (caller.isClosed()) caller = await connectRaw(port);
    caller.write(Buffer.from(`GET ${target} HTTP/1.1\r\nHost: a\r\n\r\n`, 'latin1'));
    const answer = await caller.readResponse();
    if (partsOf(answer)?.[0] === 'admin') reached.push(target);
    if (answer === null || answer.field('connection')?.toLowerCase() === 'close') {
      caller.end();
      caller = await connectRaw(port);
    }
  }
  caller.end();
  return reached;
}

async function answerTo(
  port: number,
  path: string,
  headers: readonly (readonly [string, string])[],
): Promise<RawResponse | null> {
  return request(port, { path, headers: [['Host', 'a'], ...headers] }).catch(() => null);
}

/** What the receiver said; `null` where the answer is not its own. */
function partsOf(answer: RawResponse | null): readonly string[] | null {
  if (answer?.status !== 200) return null;
  const parts = answer.text.split('|');
  return parts.length === 3 && ['admin', 'other'].includes(parts[0] ?? '') ? parts : null;
}

/** The table of docs/comparison.md, and what it does not have room for. */
export function readingsTable({ targets, names, direct, fronts: rows, missing }: Readings): string {
  const cells = (pairs: readonly Pair[]): readonly string[] => [
    ...pairs.map((pair) => String(pair.let.length)),
    pairs.map(({ believed }) => String(believed.length)).join(' / '),
    String(pairs.filter(({ losesNominated }) => losesNominated).length),
    String(harmlessTargets.length - (pairs[0]?.refused.length ?? 0)),
  ];
  const table = markdown(
    ['in front', 'version', ...direct.map(({ receiver }) => receiver), 'names believed', 'address lost', 'harmless'],
    [['nothing', '', ...cells(direct)], ...rows.map(({ name, version, pairs }) => [name, version, ...cells(pairs)])],
    2,
  );
  const refused = rows.map(({ name, pairs }) => ({ name, targets: pairs[0]?.refused ?? [] }));
  const lines = refused
    .filter((row) => row.targets.length > 0)
    .map((row) => `- ${row.name}: ${row.targets.map((target) => `\`${target}\``).join(', ')}`);
  return [
    table,
    '',
    `Of ${targets} targets each, how many came to the part for administrators; by how many of ${names} names, for each receiver in turn, a caller's own identity was believed; before how many receivers \`Connection: X-Forwarded-For\` took away what the front had set; and how many of ${harmlessTargets.length} harmless targets Express answered. Not answered:`,
    '',
    ...lines,
    ...(missing.length === 0 ? [] : ['', `Not installed, and left out: ${missing.join(', ')}.`]),
  ].join('\n');
}
