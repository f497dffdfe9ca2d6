/** An npm registry on loopback: keeps what is published to it, hands it out, and writes down what it is asked for. */
import { execFile } from 'node:child_process';
import { createServer, type IncomingMessage } from 'node:http';
import { join } from 'node:path';
import { json } from 'node:stream/consumers';
import { listen } from './listening.js';
import type { Scope } from './scope.js';
import { tempDir } from './temp-dir.js';

export interface NpmRegistry {
  readonly url: string;
  /** What was asked for so far, `GET /name`. */
  readonly requests: () => readonly string[];
}

export interface NpmRun {
  readonly code: number;
  /** Both streams. */
  readonly output: string;
}

/** As much as counts here of what `npm publish` sends. */
interface Published {
  readonly _attachments: Readonly<Record<string, { readonly data: string }>>;
}

export async function startNpmRegistry(t: Scope): Promise<NpmRegistry> {
  const requests: string[] = [];
  const packages = new Map<string, Published>();
  const server = createServer((req, res) => {
    const path = decodeURIComponent(req.url ?? '');
    requests.push(`${req.method ?? ''} ${path}`);
    void (req.method === 'PUT' ? put(path, req) : Promise.resolve(get(path))).then(({ status, body }) => {
      res.writeHead(status, { 'Content-Type': 'application/json' }).end(body);
    });
  });
  const put = async (path: string, req: IncomingMessage): Promise<{ status: number; body: string }> => {
    packages.set(path.slice(1), (await json(req)) as Published);
    return { status: 201, body: '{}' };
  };
  const get = (path: string): { status: number; body: string | Buffer } => {
    const [, name = '', file] = /^\/(.*?)(?:\/-\/(.*))?$/.exec(path) ?? [];
    const found = packages.get(name);
    const data = file === undefined ? undefined : found?._attachments[file]?.data;
    if (data !== undefined) return { status: 200, body: Buffer.from(data, 'base64') };
    if (found !== undefined && file === undefined) {
      return { status: 200, body: JSON.stringify({ ...found, _attachments: {} }) };
    }
    return { status: 404, body: '{"error":"not found"}' };
  };
  const { port } = await listen(t, server);
  return { url: `http://127.0.0.1:${String(port)}`, requests: () => requests };
}

/**
 * Runs `npm` or `npx` in a folder, without what the machine's user or an outer npm has set, and with a cache of its own
 * unless told otherwise.
 */
export async function runNpm(
  t: Scope,
  cwd: string,
  registry: NpmRegistry | null,
  [program, ...args]: readonly ['npm' | 'npx', ...string[]],
  settings: Readonly<Record<string, string>> = {},
): Promise<NpmRun> {
  const home = tempDir(t);
  const env = {
    ...Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^npm_/i.test(name))),
    npm_config_userconfig: join(home, 'npmrc'),
    npm_config_cache: join(home, 'cache'),
    npm_config_update_notifier: 'false',
    CI: 'true',
    // Publishing asks for some token; nobody looks at it here.
    ...(registry === null
      ? {}
      : {
          npm_config_registry: registry.url,
          [`npm_config_${registry.url.slice('http:'.length)}/:_authToken`]: 'none',
        }),
    ...settings,
  };
  return new Promise((resolve) => {
    const child = execFile(program, args, { cwd, env, timeout: 240_000 }, (error, stdout, stderr) => {
      resolve({ code: child.exitCode ?? (error === null ? 0 : 1), output: `${stdout}${stderr}` });
    });
    child.stdin?.end();
  });
}
