/** The proxies of docs/behind-a-proxy.md, each started from the lines that the page shows. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { accepting } from '../support/accepting.js';
import { runApache } from '../support/apache.js';
import { runCaddy } from '../support/caddy.js';
import { certificates } from '../support/certificates.js';
import { runHaproxy } from '../support/haproxy.js';
import { freePort } from '../support/listening.js';
import { runNginx } from '../support/nginx.js';
import type { Program } from '../support/program.js';
import type { Scope } from '../support/scope.js';
import { tempDir } from '../support/temp-dir.js';
import { blockThatBegins } from './fenced-blocks.js';

export const page = 'docs/behind-a-proxy.md';

export const frontNames = ['nginx', 'HAProxy', 'Caddy', 'Apache'] as const;

export type FrontName = (typeof frontNames)[number];

/** Ports of what stands behind. */
export interface Behind {
  readonly proxy: number;
  readonly probes: number;
}

export interface Front {
  readonly port: number;
  /** PEM of the authority that signed its certificate, which is for localhost. */
  readonly ca: string;
}

/** Texts of the page and what stands for them here; each has to occur. */
type Edits = readonly (readonly [shown: string, here: string])[];

interface Place {
  readonly port: number;
  readonly behind: Behind;
  readonly certFile: string;
  readonly keyFile: string;
}

interface Kind {
  /** How its block begins. */
  readonly begins: string;
  readonly edits: (t: Scope, place: Place) => Edits;
  readonly run: (t: Scope, port: number, text: string) => Program;
}

const kinds: Readonly<Record<FrontName, Kind>> = {
  nginx: {
    begins: 'map $http_upgrade',
    edits: (_t, { port, behind, certFile, keyFile }) => [
      ['listen 443 ssl', `listen 127.0.0.1:${port} ssl`],
      ['server 127.0.0.1:8080', `server 127.0.0.1:${behind.proxy}`],
      ['/etc/ssl/orders.crt', certFile],
      ['/etc/ssl/orders.key', keyFile],
    ],
    run: (t, _port, text) => runNginx(t, text),
  },
  HAProxy: {
    begins: 'defaults',
    edits: (t, { port, behind, certFile, keyFile }) => {
      const both = join(tempDir(t), 'orders.pem');
      writeFileSync(both, readFileSync(certFile, 'utf8') + readFileSync(keyFile, 'utf8'), { mode: 0o600 });
      return [
        ['bind :443', `bind 127.0.0.1:${port}`],
        ['/etc/haproxy/orders.pem', both],
        ['127.0.0.1:8080', `127.0.0.1:${behind.proxy}`],
        ['port 9902', `port ${behind.probes}`],
      ];
    },
    run: (t, _port, text) => runHaproxy(t, text),
  },
  Caddy: {
    begins: 'orders.example.com {',
    edits: (_t, { port, behind, certFile, keyFile }) => [
      [
        'orders.example.com {',
        `https://orders.example.com:${port}, https://localhost:${port} {\n\tbind 127.0.0.1\n\ttls ${certFile} ${keyFile}`,
      ],
      ['127.0.0.1:8080', `127.0.0.1:${behind.proxy}`],
      ['health_port 9902', `health_port ${behind.probes}`],
    ],
    run: (t, _port, text) => runCaddy(t, text),
  },
  Apache: {
    begins: '<VirtualHost *:443>',
    edits: (_t, { port, behind, certFile, keyFile }) => [
      ['*:443', `127.0.0.1:${port}`],
      ['127.0.0.1:8080', `127.0.0.1:${behind.proxy}`],
      ['/etc/ssl/orders.crt', certFile],
      ['/etc/ssl/orders.key', keyFile],
    ],
    run: (t, port, text) =>
      runApache(t, port, ['mpm_event', 'authz_core', 'headers', 'ssl', 'proxy', 'proxy_http'], text),
  },
};

/** Starts one with its lines of the page and, on top, edits of a test. It accepts connections then. */
export async function startFront(t: Scope, name: FrontName, behind: Behind, further: Edits = []): Promise<Front> {
  const { begins, edits, run } = kinds[name];
  const port = await freePort();
  const {
    ca,
    server: { certFile, keyFile },
  } = certificates(t);
  const text = edited(blockThatBegins(page, begins).text, [
    ...further,
    ...edits(t, { port, behind, certFile, keyFile }),
  ]);
  await accepting(run(t, port, text), port, name);
  return { port, ca: ca.cert };
}

function edited(text: string, edits: Edits): string {
  return edits.reduce((current, [shown, here]) => {
    if (!current.includes(shown)) throw new Error(`${page} does not show ${shown}`);
    return current.replaceAll(shown, here);
  }, text);
}
