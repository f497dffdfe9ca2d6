/** A real proxy in front of a real receiver, set up as docs/decide.md says, and Sallyport that it asks. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Form } from '../../src/decision/decide/forms.js';
import { startInProcessProxy, type InProcessProxy } from '../app/in-process-proxy.js';
import { projectDir } from '../support/project-dir.js';
import { freePort } from '../support/listening.js';
import type { ConfigTree } from '../support/proxy-process.js';
import { request, type RawResponse, type RequestInput } from '../support/raw-client.js';
import type { Scope } from '../support/scope.js';
import { tempDir } from '../support/temp-dir.js';
import { until } from '../support/until.js';

/** Identity headers of a config that names none. */
export const identityNames = [
  'X-Auth-Subject',
  'X-Auth-Issuer',
  'X-Auth-Permissions',
  'X-Auth-Token-Id',
  'X-Auth-Kind',
] as const;

/** The config of one form as the page shows it. */
export function shownConfig(language: string): string {
  const [block] = shownConfigs(language);
  if (block === undefined) throw new Error(`docs/decide.md has no ${language}`);
  return block;
}

/** All blocks of the page in this language. */
export function shownConfigs(language: string): readonly string[] {
  const page = readFileSync(join(projectDir, 'docs/decide.md'), 'utf8');
  return [...page.matchAll(new RegExp('^```' + language + '\\n(.*?)^```', 'gms'))].map(([, block = '']) => block);
}

/** Puts real places where the page has its own. */
export function placed(
  text: string,
  { front, decide, receiver }: Record<'front' | 'decide' | 'receiver', number>,
): string {
  return text
    .replaceAll('127.0.0.1:9000', `127.0.0.1:${String(decide)}`)
    .replaceAll('127.0.0.1:3000', `127.0.0.1:${String(receiver)}`)
    .replaceAll(/(listen |:)8080\b/g, `$1${String(front)}`);
}

export interface Deciding {
  readonly proxy: InProcessProxy;
  readonly decidePort: number;
}

/** Starts Sallyport with one listener for decisions, and no sidecar. */
export async function startDeciding(
  t: Scope,
  form: Form,
  config: ConfigTree = {},
  decide: ConfigTree = {},
): Promise<Deciding> {
  const proxy = await startInProcessProxy(t, {
    config: { ...config, decide: { port: 0, form, ...decide } },
    without: ['listen', 'upstream'],
  });
  return { proxy, decidePort: proxy.app.listeners.decide[0]?.port ?? 0 };
}

export interface Fronted extends Deciding {
  readonly frontPort: number;
  readonly ask: (input: RequestInput) => Promise<RawResponse>;
  /** With a good token. */
  readonly askAs: (
    input: Omit<RequestInput, 'headers'> & { readonly headers?: Record<string, string> },
  ) => Promise<RawResponse>;
}

/** Starts a front that `run` makes of the places. */
export async function startFront(
  deciding: Deciding,
  run: (places: Record<'front' | 'decide' | 'receiver', number>) => void,
): Promise<Fronted> {
  const front = await freePort();
  run({ front, decide: deciding.decidePort, receiver: deciding.proxy.receiver.port });
  await until('the front serves', async () => {
    const response = await request(front, { path: '/nobody' }).catch(() => null);
    return response !== null && response.status < 500;
  });
  const ask = async (input: RequestInput): Promise<RawResponse> => request(front, input);
  return {
    ...deciding,
    frontPort: front,
    ask,
    askAs: async (input) =>
      ask({ ...input, headers: { ...input.headers, Authorization: `Bearer ${deciding.proxy.token()}` } }),
  };
}

/** Writes the script of the page for HAProxy, or for Apache. */
export function writeLua(
  t: Scope,
  places: Parameters<typeof placed>[1],
  front: 'haproxy' | 'apache' = 'haproxy',
): string {
  const file = join(tempDir(t), 'sallyport.lua');
  const script = shownConfigs('lua')[front === 'haproxy' ? 0 : 1] ?? '';
  writeFileSync(file, placed(script, places));
  return file;
}
