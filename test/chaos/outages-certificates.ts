/** The same proxy, with TLS towards receiver, keys and Redis, and certificates that expire. */
import { certificates } from '../support/certificates.js';
import { expiredServer } from '../support/expired-certificate.js';
import type { Certificate } from '../support/certificates.js';
import { keySet } from '../support/jwks-server.js';
import { rsaKey } from '../support/keys.js';
import { connectRaw } from '../support/raw-client.js';
import { startUpstreamServer, type UpstreamServer } from '../support/upstream-server.js';
import { freePort } from '../support/listening.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';
import type { Scope } from '../support/scope.js';
import { startProxyProcess, type ProxyProcess } from '../support/proxy-process.js';
import { outageRoutes } from './outages-setup.js';
import type { Outage } from './outages.js';

export interface SecureSetup {
  readonly proxy: ProxyProcess;
  readonly redis: RedisServer;
  readonly good: Certificate;
  readonly expired: Certificate;
  /** Starts these again, on the same port, with this certificate. */
  readonly showAtReceiver: (certificate: Certificate) => Promise<void>;
  readonly showAtKeys: (certificate: Certificate) => Promise<void>;
}

export async function startSecureSetup(t: Scope): Promise<SecureSetup> {
  const files = certificates(t);
  const key = rsaKey();
  const tls = files.server;
  let receiver = await startUpstreamServer(t, { tls });
  const serveKeys = (server: UpstreamServer): UpstreamServer => {
    server.behave((_req, res) => res.end(keySet([key])));
    return server;
  };
  let keys = serveKeys(await startUpstreamServer(t, { tls }));
  const port = await freePort();
  const redis = await startRedis(
    t,
    [
      '--port',
      '0',
      '--tls-port',
      String(port),
      '--tls-cert-file',
      tls.certFile,
      '--tls-key-file',
      tls.keyFile,
      '--tls-ca-cert-file',
      files.ca.certFile,
      '--tls-auth-clients',
      'no',
    ],
    { port, client: { tls: { rejectUnauthorized: false } } },
  );
  await redis.client.connect().catch(() => undefined);
  const proxy = await startProxyProcess(t, {
    key,
    config: {
      upstream: { url: receiver.url, ca_file: files.ca.certFile },
      issuers: {
        core: {
          jwks_url: `${keys.url}/jwks.json`,
          ca_file: files.ca.certFile,
          jwks: { min_age: '100ms', max_age: '300ms', cooldown: '200ms', timeout: '2s' },
        },
      },
      store: {
        redis: {
          url: `rediss://127.0.0.1:${port}`,
          tls: { ca_file: files.ca.certFile },
          reserve_timeout: '2s',
          settle_timeout: '2s',
        },
      },
      routes: outageRoutes,
    },
  });
  return {
    proxy,
    redis,
    good: tls,
    expired: expiredServer(files),
    showAtReceiver: async (certificate) => {
      await receiver.close();
      receiver = await startUpstreamServer(t, { tls: certificate, port: receiver.port });
    },
    showAtKeys: async (certificate) => {
      await keys.close();
      keys = serveKeys(await startUpstreamServer(t, { tls: certificate, port: keys.port }));
    },
  };
}

async function showAtRedis({ redis }: SecureSetup, { certFile }: Certificate): Promise<void> {
  await redis.client.config('SET', 'tls-cert-file', certFile);
  await redis.client.call('CLIENT', 'KILL', 'TYPE', 'normal');
}

export const certificateOutages: readonly Outage<SecureSetup>[] = [
  {
    name: 'of the upstream',
    asks: { read: ['503 upstream-unreachable'], write: ['503 upstream-unreachable'] },
    reasons: ['upstream_unreachable'],
    error: 'tls_certificate_error',
    grow: ['sallyport_reservations_total{result="released"}'],
    remark: 'Nothing is sent without a valid certificate',
    begin: ({ showAtReceiver, expired }) => showAtReceiver(expired),
    end: ({ showAtReceiver, good }) => showAtReceiver(good),
  },
  {
    name: 'of the source of keys',
    asks: { read: ['200'], 'unknown key': ['503 keys-unavailable'] },
    reasons: ['keys_unavailable'],
    grow: ['sallyport_jwks_refreshes_total{issuer="core",result="failed"}'],
    log: 'keys could not be loaded',
    ready: 'degraded',
    remark: 'Known keys serve up to `jwks.max_stale`; `last_error` on `/status` says that the certificate has expired',
    begin: ({ showAtKeys, expired }) => showAtKeys(expired),
    end: ({ showAtKeys, good }) => showAtKeys(good),
  },
  {
    name: 'of Redis',
    asks: { write: ['503 store-unavailable'], read: ['200'] },
    reasons: ['store_unavailable'],
    become: { sallyport_store_up: 0 },
    log: 'the store takes no reservations: reserving routes answer 503',
    ready: 'degraded',
    begin: async (setup) => showAtRedis(setup, setup.expired),
    end: async (setup) => showAtRedis(setup, setup.good),
  },
];

/** What a caller that verifies is told by a listener. */
export async function handshake(port: number, ca: string): Promise<string> {
  return connectRaw(port, { tls: { ca, servername: 'localhost' } }).then(
    (connection) => {
      connection.end();
      return 'verified';
    },
    (error: unknown) => (error instanceof Error && 'code' in error ? String(error.code) : 'no code'),
  );
}
