/** Real nginx, HAProxy and Apache as proxies that speak HTTP/2 on both sides, and HTTP/1.1 where they are told to. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { accepting } from '../support/accepting.js';
import { runApache } from '../support/apache.js';
import type { Certificate } from '../support/certificates.js';
import { runHaproxy } from '../support/haproxy.js';
import { freePort } from '../support/listening.js';
import { runNginx } from '../support/nginx.js';
import type { Program } from '../support/program.js';
import type { Scope } from '../support/scope.js';
import { tempDir } from '../support/temp-dir.js';

export const relayNames = ['nginx', 'HAProxy', 'Apache'] as const;

export type RelayName = (typeof relayNames)[number];

export interface RelayTarget {
  readonly port: number;
  /** TLS towards it: it has to have a certificate of this authority, and is shown one. */
  readonly tls?: { readonly ca: Certificate; readonly client: Certificate };
}

export interface RelayOptions {
  /** Spoken to in HTTP/2. */
  readonly http2: RelayTarget;
  /** Spoken to in HTTP/1.1: whatever is not of `shop.v1`. All goes to `http2` unless it is given. */
  readonly http1?: RelayTarget;
  /** Speaks TLS to its callers with this certificate, and HTTP/2 by ALPN. */
  readonly tls?: Certificate;
}

/** Starts one, which takes connections then, and returns its port. */
export async function startRelay(t: Scope, name: RelayName, options: RelayOptions): Promise<number> {
  const port = await freePort();
  await accepting(programs[name](t, port, options), port, name);
  return port;
}

const programs: Readonly<Record<RelayName, (t: Scope, port: number, options: RelayOptions) => Program>> = {
  nginx: (t, port, { http2, http1, tls }) => {
    const scheme = http2.tls === undefined ? 'grpc' : 'grpcs';
    const shown =
      http2.tls === undefined
        ? []
        : [
            `grpc_ssl_trusted_certificate ${http2.tls.ca.certFile};`,
            'grpc_ssl_verify on;',
            'grpc_ssl_name localhost;',
            `grpc_ssl_certificate ${http2.tls.client.certFile};`,
            `grpc_ssl_certificate_key ${http2.tls.client.keyFile};`,
          ];
    return runNginx(
      t,
      [
        'server {',
        `listen 127.0.0.1:${String(port)} ${tls === undefined ? '' : 'ssl '}http2;`,
        ...(tls === undefined ? [] : [`ssl_certificate ${tls.certFile};`, `ssl_certificate_key ${tls.keyFile};`]),
        'client_max_body_size 0;',
        // Before callers that do not connect anew; without it a connection ends by GOAWAY after 1,000 requests.
        ...(http1 === undefined ? ['keepalive_requests 1000000;'] : []),
        ...shown,
        `location ${http1 === undefined ? '/' : '/shop.v1.'} { grpc_pass ${scheme}://127.0.0.1:${String(http2.port)}; }`,
        ...(http1 === undefined
          ? []
          : [`location / { proxy_pass http://127.0.0.1:${String(http1.port)}; proxy_http_version 1.1; }`]),
        '}',
      ].join('\n'),
    );
  },
  HAProxy: (t, port, { http2, http1, tls }) => {
    const both = ({ certFile, keyFile }: Certificate): string => {
      const file = join(tempDir(t), 'both.pem');
      writeFileSync(file, readFileSync(certFile, 'utf8') + readFileSync(keyFile, 'utf8'), { mode: 0o600 });
      return file;
    };
    const shown =
      http2.tls === undefined
        ? 'proto h2'
        : `ssl alpn h2 verify required ca-file ${http2.tls.ca.certFile} crt ${both(http2.tls.client)} sni str(localhost)`;
    return runHaproxy(
      t,
      [
        'defaults',
        '  mode http',
        '  timeout connect 5s',
        '  timeout client 60s',
        '  timeout server 60s',
        'frontend callers',
        `  bind 127.0.0.1:${String(port)} ${tls === undefined ? 'proto h2' : `ssl crt ${both(tls)} alpn h2`}`,
        ...(http1 === undefined ? [] : ['  use_backend http1 unless { path_beg /shop.v1. }']),
        '  default_backend http2',
        'backend http2',
        `  server one 127.0.0.1:${String(http2.port)} ${shown}`,
        ...(http1 === undefined ? [] : ['backend http1', `  server one 127.0.0.1:${String(http1.port)}`]),
        '',
      ].join('\n'),
    );
  },
  Apache: (t, port, { http2, http1, tls }) => {
    const scheme = http2.tls === undefined ? 'h2c' : 'h2';
    const shown =
      http2.tls === undefined
        ? []
        : [
            'SSLProxyEngine on',
            `SSLProxyCACertificateFile ${http2.tls.ca.certFile}`,
            'SSLProxyVerify require',
            'SSLProxyCheckPeerName off',
          ];
    return runApache(
      t,
      port,
      ['mpm_event', 'authz_core', 'ssl', 'http2', 'proxy', 'proxy_http', 'proxy_http2'],
      [
        `Protocols ${tls === undefined ? 'h2c' : 'h2'} http/1.1`,
        ...(tls === undefined
          ? []
          : ['SSLEngine on', `SSLCertificateFile ${tls.certFile}`, `SSLCertificateKeyFile ${tls.keyFile}`]),
        ...shown,
        'AllowEncodedSlashes NoDecode',
        ...(http1 === undefined
          ? [`ProxyPass / ${scheme}://127.0.0.1:${String(http2.port)}/ nocanon`]
          : [
              `ProxyPassMatch ^(/shop\\.v1\\..*)$ ${scheme}://127.0.0.1:${String(http2.port)}$1`,
              `ProxyPass / http://127.0.0.1:${String(http1.port)}/ nocanon`,
            ]),
      ].join('\n'),
    );
  },
};
