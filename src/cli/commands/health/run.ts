import { request, type IncomingMessage } from 'node:http';
import { placeholderReader } from '../../../app/config/config-source.js';
import {
  defaultPlaces,
  readListenerPlaces,
  type ListenerPlace,
  type ListenerPlaces,
} from '../../../config/load/listener-addresses.js';
import { codeOf } from '../../../lib/errors.js';
import { escapeControls } from '../../../lib/text.js';
import { accept, refuse, type Result } from '../../../lib/result.js';
import type { ConfigArguments } from '../../config/argument.js';
import { chooseConfig } from '../../config/choose.js';
import type { Io } from '../../io.js';
import { fail, failUsage } from '../../options.js';

/** Container runtimes wait for some seconds; a proxy that takes longer is not healthy. */
const limitMs = 3_000;

/** What `/readyz` says takes some 100 bytes per issuer, `/status` some 500 per route. */
const maxResponseBytes = 1024 * 1024;

/** Problems of a config that are told of here; the log has all of them. */
const mostProblems = 5;

export interface HealthOptions {
  readonly config?: string;
  /** Where to ask, instead of what the config says. */
  readonly url?: ListenerPlace;
  readonly json?: true;
}

/**
 * Says whether the proxy that runs is ready. The config says where to ask; what else is wrong with it is no matter of
 * the process.
 */
export async function health(options: HealthOptions & ConfigArguments, io: Io): Promise<void> {
  if (options.url !== undefined && (options.file !== undefined || options.config !== undefined)) {
    failUsage('health', 'either --url or a config says where to ask', io);
    return;
  }
  const { places, doubts } =
    options.url === undefined ? await placesOf(options, io) : { places: [options.url], doubts: [] };
  for (const doubt of doubts) warn(doubt, io);
  const known = places.filter(({ port }) => port !== 0);
  if (known.length === 0) {
    fail(
      {
        kind: 'unreadable',
        messages: ['admin.port is 0, so that nobody knows where the proxy listens'],
        hints: ['give it a port, or ask with --url'],
      },
      io,
    );
    return;
  }
  const signal = AbortSignal.timeout(limitMs);
  const outcome = await askAny(known, signal);
  if (!outcome.ok) {
    fail({ kind: 'unavailable', messages: outcome.error }, io);
    return;
  }
  const { status, readiness, place } = outcome.value;
  for (const problem of await reloadProblems(place, signal)) {
    warn(`the proxy goes on with the config it had, for the new one is wrong: ${problem}`, io);
  }
  io.stdout(`${options.json === true ? JSON.stringify(readiness) : escapeControls(inWords(readiness))}\n`);
  io.exit(status === 200 ? 0 : 1);
}

function warn(message: string, io: Io): void {
  io.stderr(`warning: ${escapeControls(message)}\n`);
}

async function placesOf(named: ConfigArguments, io: Io): Promise<ListenerPlaces> {
  const chosen = chooseConfig(named, io);
  if (!chosen.ok) return byDefault(chosen.error.messages.join('; '));
  const { source } = chosen.value;
  const text = await source.read();
  const name = `${chosen.value.name}: `;
  if (!text.ok) return byDefault(`${name}${text.error}`);
  const { places, doubts } = readListenerPlaces(text.value, { env: io.env, readFile: placeholderReader(source) });
  return { places, doubts: doubts.map((doubt) => `${name}${doubt}; asking at ${places.map(nameOf).join(' and ')}`) };
}

function byDefault(doubt: string): ListenerPlaces {
  return {
    places: defaultPlaces,
    doubts: [`${doubt}; asking at ${defaultPlaces.map(nameOf).join(' and ')}, the defaults`],
  };
}

interface ReadinessResponse {
  readonly place: ListenerPlace;
  readonly status: number;
  readonly readiness: Readiness;
}

interface Readiness {
  readonly status: string;
  readonly checks: readonly Check[];
}

interface Check {
  readonly name: string;
  readonly status: string;
}

async function askAny(
  places: readonly ListenerPlace[],
  signal: AbortSignal,
): Promise<Result<ReadinessResponse, readonly string[]>> {
  const failures: string[] = [];
  for (const place of places) {
    const outcome = await ask(place, signal);
    if (outcome.ok) return outcome;
    failures.push(outcome.error);
  }
  return refuse(failures);
}

async function ask(place: ListenerPlace, signal: AbortSignal): Promise<Result<ReadinessResponse, string>> {
  const name = nameOf(place);
  try {
    const response = await get(place, '/readyz', signal);
    const readiness = readReadiness(await bodyOf(response));
    if (readiness === null) return refuse(`${name}: something else than Sallyport answers there`);
    return accept({ place, status: response.statusCode ?? 0, readiness });
  } catch (error) {
    if (signal.aborted) return refuse(`${name}: no answer within ${String(limitMs)} ms`);
    const code = codeOf(error, '');
    return refuse(`${name}: not reached${code === '' ? '' : ` (${code})`}`);
  }
}

/**
 * Why the last reload failed, as `/status` has it. The listener for probes has no such page, and a proxy that is late
 * is healthy all the same.
 */
async function reloadProblems(place: ListenerPlace, signal: AbortSignal): Promise<readonly string[]> {
  try {
    const status = readJson(await bodyOf(await get(place, '/status', signal)));
    const error = memberOf(memberOf(status, 'config'), 'last_reload_error');
    const problems: unknown = memberOf(error, 'problems');
    return Array.isArray(problems)
      ? problems.filter((problem) => typeof problem === 'string').slice(0, mostProblems)
      : [];
  } catch {
    return [];
  }
}

function nameOf(place: ListenerPlace): string {
  const host = reachable(place.host);
  return `${host.includes(':') ? `[${host}]` : host}:${String(place.port)}`;
}

/** An address to connect to, for one to listen on. */
function reachable(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1';
  return host === '::' ? '::1' : host;
}

function get({ host, port }: ListenerPlace, path: string, signal: AbortSignal): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const headers = { host: `localhost:${String(port)}`, connection: 'close' };
    request({ host: reachable(host), port, path, agent: false, signal, headers }, resolve)
      .on('error', reject)
      .end();
  });
}

async function bodyOf(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > maxResponseBytes) break;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function inWords({ status, checks }: Readiness): string {
  const failing = checks.filter((check) => check.status !== 'ok').map((check) => `${check.name} ${check.status}`);
  return [status, ...failing].join('; ');
}

function readReadiness(text: string): Readiness | null {
  const value = readJson(text);
  const [status, checks] = [memberOf(value, 'status'), memberOf(value, 'checks')];
  if (typeof status !== 'string' || !Array.isArray(checks)) return null;
  const listed: readonly unknown[] = checks;
  return listed.every(isCheck) ? { status, checks: listed } : null;
}

function isCheck(value: unknown): value is Check {
  return typeof memberOf(value, 'name') === 'string' && typeof memberOf(value, 'status') === 'string';
}

/** `null` where it is no JSON. */
function readJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function memberOf(value: unknown, name: string): unknown {
  if (typeof value !== 'object' || value === null) return undefined;
  const member: unknown = Reflect.get(value, name);
  return member;
}
