/**
 * Proxies that keep `/admin` from everybody and pass the rest on, each as its own documentation has a path guarded, a
 * header removed and the caller's address told. What they are not told of, they do as they come.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { publicAndAdmin } from '../../regression/path-targets.js';
import { apacheProgram, runApache } from '../../support/apache.js';
import { runCaddy } from '../../support/caddy.js';
import { runHaproxy } from '../../support/haproxy.js';
import { freePort } from '../../support/listening.js';
import { runNginx } from '../../support/nginx.js';
import { startProgram, type Program } from '../../support/program.js';
import { request } from '../../support/raw-client.js';
import type { Scope } from '../../support/scope.js';
import { tempDir } from '../../support/temp-dir.js';
import { until } from '../../support/until.js';
import { versionOf } from '../child.js';
import { startSallyport } from '../sallyport.js';

export interface Front {
  readonly name: string;
  /** First line that it says of its version; `null` where it is not installed. */
  readonly version: () => string | null;
  /** Runs it in front of this port, and returns its own. */
  readonly start: (t: Scope, upstreamPort: number) => Promise<number>;
}

/** Everybody may ask for it, and each receiver answers it. */
const readyPath = '/public/ready';

/** Runs it on a port of its own, until it answers. */
async function started(run: (port: number) => Program): Promise<number> {
  const port = await freePort();
  const program = run(port);
  await until('the front answers', async () => {
    if (!program.isRunning()) throw new Error(`the front ended:\n${program.complaints()}`);
    return (await request(port, { path: readyPath }).catch(() => null))?.status === 200;
  });
  return port;
}

const haproxyConfig = (port: number, upstream: number, rules: readonly string[]): string => `
global
  expose-experimental-directives
defaults
  mode http
  timeout client 20s
  timeout server 20s
  timeout connect 5s
frontend all
  bind 127.0.0.1:${String(port)}
${rules.map((rule) => `  ${rule}\n`).join('')}  acl restricted path_beg /admin
  http-request deny if restricted
  http-request del-header X-Auth-Subject
  option forwardfor
  default_backend service
backend service
  server one 127.0.0.1:${String(upstream)}
`;

const haproxyVersion = (): string | null => versionOf('haproxy', '-v')?.split(' ')[2] ?? null;

export const fronts: readonly Front[] = [
  {
    name: '**Sallyport**',
    version: () => process.version.replace('v', 'this commit, Node.js '),
    start: async (t: Scope, port: number): Promise<number> => {
      const upstream = { url: `http://127.0.0.1:${String(port)}` };
      return (await startSallyport(t, { upstream, routes: publicAndAdmin }, { path: readyPath })).port;
    },
  },
  {
    name: 'nginx, `location`',
    version: () => versionOf('nginx', '-v')?.split('/')[1] ?? null,
    start: async (t, upstream) =>
      started((port) =>
        runNginx(
          t,
          `server {
            listen 127.0.0.1:${String(port)};
            location /admin { deny all; }
            location / {
              proxy_pass http://127.0.0.1:${String(upstream)};
              proxy_set_header X-Auth-Subject "";
              proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
            }
          }`,
        ),
      ),
  },
  {
    name: 'HAProxy, `path_beg`',
    version: haproxyVersion,
    start: async (t, upstream) => started((port) => runHaproxy(t, haproxyConfig(port, upstream, []))),
  },
  {
    name: 'HAProxy, `normalize-uri` before that',
    version: haproxyVersion,
    start: async (t: Scope, upstream: number): Promise<number> => {
      const all = [
        'fragment-strip',
        'percent-decode-unreserved',
        'path-merge-slashes',
        'path-strip-dotdot',
        'path-strip-dot',
      ];
      const rules = all.map((name) => `http-request normalize-uri ${name}`);
      return started((port) => runHaproxy(t, haproxyConfig(port, upstream, rules)));
    },
  },
  {
    name: 'Apache, `<Location>`',
    version: () => versionOf(apacheProgram, '-v')?.split('/')[1]?.split(' ')[0] ?? null,
    start: async (t, upstream) =>
      started((port) =>
        runApache(
          t,
          port,
          ['mpm_event', 'authz_core', 'headers', 'proxy', 'proxy_http'],
          [
            `ProxyPass "/" "http://127.0.0.1:${String(upstream)}/"`,
            'RequestHeader unset X-Auth-Subject',
            '<Location "/admin">',
            '  Require all denied',
            '</Location>',
          ].join('\n'),
        ),
      ),
  },
  {
    name: 'Caddy, `path`',
    version: () => versionOf('caddy', 'version')?.split(' ')[0] ?? null,
    start: async (t, upstream) =>
      started((port) =>
        runCaddy(
          t,
          `http://:${String(port)} {
            bind 127.0.0.1
            @admin path /admin /admin/*
            respond @admin 403
            reverse_proxy 127.0.0.1:${String(upstream)} {
              header_up -X-Auth-Subject
            }
          }`,
        ),
      ),
  },
  {
    name: 'Varnish, `req.url`',
    version: () => /varnish-([\d.]+)/.exec(versionOf('varnishd', '-V') ?? '')?.[1] ?? null,
    start: async (t: Scope, upstream: number): Promise<number> => {
      const file = join(tempDir(t), 'default.vcl');
      writeFileSync(
        file,
        `vcl 4.1;
        backend default { .host = "127.0.0.1"; .port = "${String(upstream)}"; }
        sub vcl_recv {
          if (req.url ~ "^/admin") { return (synth(403)); }
          unset req.http.X-Auth-Subject;
          return (pass);
        }`,
      );
      return started((port) =>
        startProgram(
          t,
          'varnishd',
          ['-j', 'none', '-F', '-n', tempDir(t), '-a', `127.0.0.1:${String(port)}`, '-f', file],
          {
            signal: 'SIGTERM',
          },
        ),
      );
    },
  },
  {
    name: 'lighttpd, `$HTTP["url"]`',
    version: () => /lighttpd\/([\d.]+)/.exec(versionOf('lighttpd', '-v') ?? '')?.[1] ?? null,
    start: async (t: Scope, upstream: number): Promise<number> => {
      const file = join(tempDir(t), 'lighttpd.conf');
      const config = (port: number): string => `
        server.modules = ("mod_access", "mod_setenv", "mod_proxy")
        server.document-root = "/nonexistent"
        server.bind = "127.0.0.1"
        server.port = ${String(port)}
        setenv.set-request-header = ("X-Auth-Subject" => "")
        $HTTP["url"] =~ "^/admin" { url.access-deny = ("") }
        else $HTTP["url"] =~ "" { proxy.server = ("" => (("host" => "127.0.0.1", "port" => ${String(upstream)}))) }`;
      return started((port) => {
        writeFileSync(file, config(port));
        return startProgram(t, 'lighttpd', ['-D', '-f', file]);
      });
    },
  },
];
