/** A real browser without a window: `chromium-headless-shell`, or `chromium`. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { listen } from './listening.js';
import type { Scope } from './scope.js';
import { tempDir } from './temp-dir.js';
import { until } from './until.js';

const programs = ['chromium-headless-shell', 'chromium'];

export interface Browser {
  /** Base URL of the pages. */
  readonly origin: string;
  /** Shows a page with this script, and returns what the script hands to `report`. */
  readonly run: (script: string) => Promise<unknown>;
}

/** The name of the program; throws where there is none. */
export function findBrowser(): string {
  const program = programs.find((name) => spawnSync(name, ['--version']).status === 0);
  if (program === undefined) {
    throw new Error('there is no browser: npm run test:long installs one where that takes no password');
  }
  return program;
}

/** Without a window, with a profile of its own and a port for tools. */
export function browserFlags(profile: string): readonly string[] {
  return [
    '--headless',
    '--no-sandbox',
    '--disable-gpu',
    '--no-first-run',
    `--user-data-dir=${profile}`,
    '--remote-debugging-port=0',
  ];
}

/** Serves pages on a port of its own, and opens each in a browser of its own with one cookie jar. */
export async function startBrowser(t: Scope): Promise<Browser> {
  const program = findBrowser();
  const pages = new Map<string, string>();
  const reports = new Map<string, unknown>();
  const server = createServer((req, res) => {
    const path = req.url ?? '';
    if (req.method === 'POST') {
      const chunks: Buffer[] = [];
      req
        .on('data', (chunk: Buffer) => chunks.push(chunk))
        .on('end', () => {
          reports.set(path, JSON.parse(Buffer.concat(chunks).toString()));
          res.end();
        });
    } else res.writeHead(200, { 'content-type': 'text/html' }).end(pages.get(path) ?? '');
  });
  const { port } = await listen(t, server);
  const origin = `http://127.0.0.1:${port}`;
  const profile = tempDir(t);
  let shown = 0;
  return {
    origin,
    run: async (script) => {
      const path = `/${++shown}`;
      pages.set(
        path,
        `<!doctype html><script type="module">
        const report = value => fetch('${path}', { method: 'POST', body: JSON.stringify(value) });
        try { ${script} } catch (error) { report(String(error)); }
      </script>`,
      );
      const child = spawn(program, [...browserFlags(profile), `${origin}${path}`], { stdio: 'ignore', detached: true });
      try {
        await until(`the report of ${path}`, () => reports.has(path), 60_000);
      } finally {
        // What was started is a script, which does not hand the signal on.
        if (child.pid !== undefined && child.exitCode === null) process.kill(-child.pid);
        if (child.exitCode === null && child.signalCode === null) await once(child, 'close');
      }
      return reports.get(path);
    },
  };
}
