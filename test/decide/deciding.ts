/** A real proxy in front of a real receiver, set up as docs/decide.md says, and Sallyport that it asks. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Form } from '../../src/decision/decide/forms.js';
import { blockThatBegins, fencedBlocks } from '../docs/fenced-blocks.js';
import { startInProcessProxy, type InProcessProxy } from '../app/in-process-proxy.js';
import { runCaddy } from '../support/caddy.js';
import { runHaproxy } from '../support/haproxy.js';
import { freePort } from '../support/listening.js';
import { runApacheLua } from '../support/lua-socket.js';
import { runNginx } from '../support/nginx.js';
import type { ConfigTree } from '../support/proxy-process.js';
import { request, type RawResponse, type RequestInput } from '../support/raw-client.js';
import type { Scope } from '../support/scope.js';
import { tempDir } from '../support/temp-dir.js';
import { until } from '../support/until.js';

const page = 'docs/decide.md';

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
  if (block === undefined) throw new Error(`${page} has no ${language}`);
  return block;
}

/** All blocks of the page in this language. */
export function shownConfigs(language: string): readonly string[] {
  return fencedBlocks(page)
    .filter((block) => block.language === language)
    .map(({ text }) => text);
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

/** Starts Sallyport with one listener for decisions, and no sidecar: `listen` of the config has no place. */
export async function startDeciding(
  t: Scope,
  form: Form,
  config: ConfigTree = {},
  decide: ConfigTree = {},
): Promise<Deciding> {
  const { listen } = config;
  const judged = typeof listen === 'object' && listen !== null ? { host: undefined, port: undefined, ...listen } : null;
  const proxy = await startInProcessProxy(t, {
    config: { ...config, ...(judged === null ? {} : { listen: judged }), decide: { port: 0, form, ...decide } },
    without: judged === null ? ['listen', 'upstream'] : ['upstream'],
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
async function startFront(
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

/** A change of what the page shows. */
export type Change = readonly [from: string | RegExp, to: string];

/** Forms whose program is Debian's. */
export type RealFront = 'nginx' | 'caddy' | 'haproxy' | 'apache';

interface ShownChanges {
  /** Keys of `decide` beside the form. */
  readonly decide?: ConfigTree;
  readonly changes?: readonly Change[];
  /** Of the script in Lua, where there is one. */
  readonly script?: readonly Change[];
  /** Of Apache, beside those that the page names. */
  readonly modules?: readonly string[];
}

/** Runs the front of the page with a config of Sallyport's, and with changes of what the page shows. */
export async function startShown(
  t: Scope,
  form: RealFront,
  config: ConfigTree,
  { changes = [], script = [], modules = [], decide = {} }: ShownChanges = {},
): Promise<Fronted> {
  return startFront(await startDeciding(t, form, config, decide), (places) => {
    const shown = (language: string): string => placed(changed(shownConfig(language), changes), places);
    switch (form) {
      case 'nginx':
        runNginx(t, shown('nginx'));
        break;
      case 'caddy':
        runCaddy(t, shown('caddyfile'));
        break;
      case 'haproxy':
        runHaproxy(
          t,
          changed(shown('haproxy'), [['/etc/haproxy/sallyport.lua', writeLua(t, places, 'local address', script)]]),
        );
        break;
      case 'apache': {
        const file = writeLua(t, places, '-- As /etc/apache2', script);
        runApacheLua(t, places.front, changed(shown('apache'), [['/etc/apache2/sallyport.lua', file]]), modules);
      }
    }
  });
}

function changed(text: string, changes: readonly Change[]): string {
  return changes.reduce((before, [from, to]) => {
    const after = before.replace(from, to);
    if (after === before) throw new Error(`nothing to change: ${String(from)}`);
    return after;
  }, text);
}

/** Writes the script of the page that begins so. */
function writeLua(t: Scope, places: Parameters<typeof placed>[1], begins: string, changes: readonly Change[]): string {
  const file = join(tempDir(t), 'sallyport.lua');
  writeFileSync(file, placed(changed(blockThatBegins(page, begins).text, changes), places));
  return file;
}
