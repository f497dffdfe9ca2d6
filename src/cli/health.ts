import { request, type IncomingMessage } from 'node:http';
import { Command } from 'commander';
import { loadConfig } from '../app/config-source.js';
import type { HostPort } from '../config/compiled.js';
import { escapeControls } from '../config/problems.js';
import { accept, refuse, type Result } from '../decision/result.js';
import type { Io } from './io.js';
import { configOption, fail, jsonOption, sourceOf } from './options.js';

/** Container runtimes wait for some seconds; a proxy that takes longer is not healthy. */
const limitMs = 3_000;

/** What `/readyz` says takes some 100 bytes per issuer. */
const maxAnswerBytes = 64 * 1024;

interface Options {
  readonly config: string;
  readonly json?: true;
}

/** `sallyport health --config FILE`: whether the proxy that runs with this config is ready. */
export function createHealthCommand(io: Io): Command {
  return new Command('health')
    .description('Ask the admin or the probes listener of the running proxy whether it is ready: for container health checks.')
    .addOption(configOption())
    .addOption(jsonOption())
    .addHelpText('after', '\nExit code: 0 ready, 1 not ready, 2 the config cannot be used, 3 no proxy was reached.')
    .action((options: Options) => health(options, io));
}

async function health(options: Options, io: Io): Promise<void> {
  const loaded = await loadConfig(sourceOf(options.config, io), io.env);
  if (!loaded.ok) {
    fail({ kind: 'unreadable', messages: loaded.error.messages }, io);
    return;
  }
  const { admin, probes } = loaded.value;
  const places = [admin, probes].filter((place) => place !== null).filter(({ port }) => port !== 0);
  if (places.length === 0) {
    fail({ kind: 'unreadable', messages: ['admin.port is 0, so that nobody knows where the proxy listens; give it a port'] }, io);
    return;
  }
  const answer = await askAny(places, AbortSignal.timeout(limitMs));
  if (!answer.ok) {
    fail({ kind: 'unavailable', messages: answer.error }, io);
    return;
  }
  const { status, readiness } = answer.value;
  io.stdout(`${options.json === true ? JSON.stringify(readiness) : escapeControls(inWords(readiness))}\n`);
  io.exit(status === 200 ? 0 : 1);
}

interface Answer {
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

async function askAny(places: readonly HostPort[], signal: AbortSignal): Promise<Result<Answer, readonly string[]>> {
  const failures: string[] = [];
  for (const place of places) {
    const answer = await ask(place, signal);
    if (answer.ok) return answer;
    failures.push(answer.error);
  }
  return refuse(failures);
}

async function ask(place: HostPort, signal: AbortSignal): Promise<Result<Answer, string>> {
  const host = reachable(place.host);
  const name = `${host.includes(':') ? `[${host}]` : host}:${String(place.port)}`;
  try {
    const response = await get(host, place.port, signal);
    const readiness = readReadiness(await bodyOf(response));
    if (readiness === null) return refuse(`${name}: something else than Sallyport answers there`);
    return accept({ status: response.statusCode ?? 0, readiness });
  } catch (error) {
    if (signal.aborted) return refuse(`${name}: no answer within ${String(limitMs)} ms`);
    const code = error instanceof Error && 'code' in error ? ` (${String(error.code)})` : '';
    return refuse(`${name}: not reached${code}`);
  }
}

/** An address to connect to, for one to listen on. */
function reachable(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1';
  return host === '::' ? '::1' : host;
}

function get(host: string, port: number, signal: AbortSignal): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const options = { host, port, path: '/readyz', agent: false, signal, headers: { host: `localhost:${String(port)}`, connection: 'close' } };
    request(options, resolve).on('error', reject).end();
  });
}

async function bodyOf(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > maxAnswerBytes) break;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function inWords({ status, checks }: Readiness): string {
  const failing = checks.filter((check) => check.status !== 'ok').map((check) => `${check.name} ${check.status}`);
  return [status, ...failing].join('; ');
}

function readReadiness(text: string): Readiness | null {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value !== 'object' || value === null || !('status' in value) || !('checks' in value)) return null;
    if (typeof value.status !== 'string' || !Array.isArray(value.checks)) return null;
    const checks: readonly unknown[] = value.checks;
    return checks.every(isCheck) ? { status: value.status, checks } : null;
  } catch {
    return null;
  }
}

function isCheck(value: unknown): value is Check {
  return typeof value === 'object' && value !== null && 'name' in value && 'status' in value
    && typeof value.name === 'string' && typeof value.status === 'string';
}
