/**
 * Both sides, each a process of its own: the calling side with tokens of a Core, a network with TLS of both, the
 * answering side on a Redis, and two services; and what goes wrong with them.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { accepting } from '../support/accepting.js';
import { certificates } from '../support/certificates.js';
import { startCuttingRelay, type CuttingRelay } from '../support/cutting-relay.js';
import { freePort } from '../support/listening.js';
import { projectDir } from '../support/project-dir.js';
import { baseConfig, seriesValue, type ConfigTree } from '../support/proxy-process.js';
import { runToEnd } from '../support/program.js';
import { request } from '../support/raw-client.js';
import { startRedis } from '../support/redis-server.js';
import type { Scope } from '../support/scope.js';
import { startServe, type ServeProcess } from '../support/serve-process.js';
import { tempDir } from '../support/temp-dir.js';
import { until } from '../support/until.js';
import type { WriteLedger } from './egress-ledger.js';

/** A place of a process: what runs there comes and goes, the address stays. */
interface Seat {
  /** Ends it with this signal, and starts it again after so many milliseconds. */
  readonly restart: (signal: NodeJS.Signals, downMs: number) => Promise<void>;
  readonly stop: () => Promise<void>;
}

export type FaultKind = 'processes' | 'networks' | 'tokens';

export interface EgressDeployment {
  /** Of the calling side. */
  readonly port: number;
  /**
   * What ends processes, what harms the network, and what makes tokens worthless: each does one thing, and ends when
   * that is over.
   */
  readonly faults: Readonly<Record<FaultKind, Readonly<Record<string, () => Promise<void>>>>>;
  /** Tokens that the calling side had fetched so far, since it was started last. */
  readonly fetches: () => Promise<number>;
  /** What of the network is counted. */
  readonly network: () => Readonly<Record<'cuts' | 'silences', number>>;
  /** Ends both sides in order, so that nothing is under way any more. */
  readonly stop: () => Promise<void>;
}

const main = join(projectDir, 'dist/main.js');
const issuer = 'https://api.example.com';
const claims = {
  sub: 'checkout',
  aud: 'orders',
  source: 'microservice',
  token_type: 'service',
  permissions: ['orders:write'],
};

export async function startEgressDeployment(t: Scope, ledger: WriteLedger): Promise<EgressDeployment> {
  const resets = { resets: 0.5 };
  const { ca, server, client } = certificates(t);
  const redis = await startRedis(t);
  const core = await startCore(t);
  const service = await startCuttingRelay(t, () => ledger.ordersPort, resets);
  const coreNetwork = await startCuttingRelay(t, () => core.port, resets);
  const answering = await startSidecar(t, (port) => ({
    listen: {
      port,
      tls: {
        cert_file: server.certFile,
        key_file: server.keyFile,
        client_ca_file: ca.certFile,
        client_auth: 'require',
      },
    },
    upstream: { url: urlOf(service), connect_timeout: '500ms', response_timeout: '2s' },
    issuers: { core: { issuer, jwks_url: `${urlOf(coreNetwork)}/auth/jwt/jwks.json` } },
    store: {
      redis: { url: `redis://127.0.0.1:${String(redis.port)}`, reserve_timeout: '1s', settle_timeout: '1s' },
    },
    routes: [
      {
        name: 'write',
        methods: ['POST'],
        path: '/v1/writes',
        subjects: ['checkout'],
        permissions: ['orders:write'],
        idempotency: 'required',
      },
    ],
  }));
  const network = await startCuttingRelay(t, () => answering.port, resets);
  const otherNetwork = await startCuttingRelay(t, () => ledger.ledgerPort, resets);
  const curlConfig = join(tempDir(t), 'core.curl');
  writeFileSync(curlConfig, `url = "${urlOf(coreNetwork)}"\n`, { mode: 0o600 });
  const target = (name: string, place: ConfigTree): ConfigTree => ({
    name,
    prefix: `/${name}`,
    token: 'as-checkout',
    allow: [{ methods: ['POST'], path: '/v1/**' }],
    connect_timeout: '500ms',
    response_timeout: '3s',
    idempotency: 'generate',
    retries: { attempts: 4, within: '6s', budget: '100%' },
    ...place,
  });
  const overTls = {
    url: `https://127.0.0.1:${String(network.port)}`,
    ca_file: ca.certFile,
    cert_file: client.certFile,
    key_file: client.keyFile,
  };
  const calling = await startSidecar(t, (port) => ({
    egress: {
      listen: { port },
      // As short as there are, so that they end in the midst of it.
      tokens: { 'as-checkout': { core: { curl_config: curlConfig, issuer }, claims, lifetime: '10s' } },
      targets: [target('orders', overTls), target('ledger', { url: urlOf(otherNetwork) })],
    },
  }));

  /** Every token that was signed with it. */
  const revoke = async (keyId: string): Promise<void> => {
    const words = ['revoke', '--config', answering.configFile, '--key-id', keyId, '--for', '1m', '--reason', 'a test'];
    await runToEnd(process.execPath, [main, ...words]);
  };
  const between = (least: number, most: number): number => least + Math.random() * (most - least);
  const during = async (begin: () => void, end: () => void): Promise<void> => {
    begin();
    await sleep(between(300, 1_500));
    end();
  };
  const storm = (relay: CuttingRelay, meanBytes: number) => async (): Promise<void> =>
    during(
      () => relay.storm(meanBytes),
      () => relay.storm(null),
    );
  const relays = [network, otherNetwork, service, coreNetwork];
  return {
    port: calling.port,
    faults: {
      processes: {
        'calling side killed': async () => calling.restart('SIGKILL', 0),
        'calling side ended in order': async () => calling.restart('SIGTERM', 0),
        'answering side killed': async () => answering.restart('SIGKILL', between(0, 500)),
        'answering side ended in order': async () => answering.restart('SIGTERM', between(0, 500)),
        'Core killed': async () => core.restart('SIGKILL', between(0, 3_000)),
        'Redis killed': async () => {
          await redis.kill();
          await sleep(between(0, 2_000));
          await redis.restart();
        },
      },
      networks: {
        // Of TLS, some 3,000 bytes are over before the first request.
        'the network between both cuts and resets': storm(network, 4_000),
        'the network between both is slow': async () =>
          during(
            () => network.lag(between(50, 800)),
            () => network.lag(0),
          ),
        'the network between both swallows': async () =>
          during(
            () => network.silence(0.1),
            () => network.silence(0),
          ),
        'the network to the other service cuts and resets': storm(otherNetwork, 600),
        'the network to the other service swallows': async () =>
          during(
            () => otherNetwork.silence(0.1),
            () => otherNetwork.silence(0),
          ),
        'the way to the service behind cuts and resets': storm(service, 900),
        'the way to the Core cuts and resets': storm(coreNetwork, 2_500),
      },
      tokens: {
        'the signing key rotated': async () => {
          await core.rotate();
        },
        'the signing key rotated, and the old one revoked': async () => {
          const old = await core.rotate();
          if (old !== null) await revoke(old);
        },
      },
    },
    fetches: calling.fetches,
    network: () => ({
      cuts: relays.reduce((sum, relay) => sum + relay.cuts(), 0),
      silences: relays.reduce((sum, relay) => sum + relay.silences(), 0),
    }),
    stop: async () => {
      await calling.stop();
      await answering.stop();
    },
  };
}

function urlOf({ port }: { readonly port: number }): string {
  return `http://127.0.0.1:${String(port)}`;
}

interface Sidecar extends Seat {
  readonly port: number;
  readonly configFile: string;
  readonly fetches: () => Promise<number>;
}

async function startSidecar(t: Scope, configOf: (port: number) => ConfigTree): Promise<Sidecar> {
  const configFile = join(tempDir(t), 'sallyport.yaml');
  const port = await freePort();
  const config = configOf(port);
  // A config has a listener for each direction; where only one is called, the other has any port.
  // What the network swallowed is never over: nobody waits for that, while nothing else is served.
  writeFileSync(configFile, baseConfig({ ...config, shutdown: { delay: '0s', grace: '2s' } }));
  const start = async (): Promise<ServeProcess> => {
    const serve = startServe(t, configFile);
    await accepting({ isRunning: serve.isRunning, complaints: serve.output }, port, 'serve');
    return serve;
  };
  let serve = await start();
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    serve.signal(signal);
    await serve.exited;
  };
  return {
    port,
    configFile,
    fetches: async () => {
      const { text } = await request(await serve.port('admin'), { path: '/metrics' });
      return seriesValue(text, 'sallyport_egress_token_fetches_total{token="as-checkout"}');
    },
    restart: async (signal, downMs) => {
      await end(signal);
      await sleep(downMs);
      serve = await start();
    },
    stop: async () => end('SIGTERM'),
  };
}

interface Core extends Seat {
  readonly port: number;
  /** A new key signs from now on; returns the id of the one before, `null` where it is away or this is the first. */
  readonly rotate: () => Promise<string | null>;
}

/** The emulator as a process of its own, with a file that keeps its keys. */
async function startCore(t: Scope): Promise<Core> {
  const port = await freePort();
  const args = ['core', '--port', String(port), '--data', join(tempDir(t), 'core.json')];
  const start = async (): Promise<ChildProcess> => {
    const child = spawn(process.execPath, [main, ...args], { stdio: 'ignore' });
    await until('the Core', async () => {
      if (child.exitCode !== null) throw new Error(`the Core ended with ${String(child.exitCode)}`);
      return request(port, { path: '/.well-known/jwks.json' }).catch(() => null);
    });
    return child;
  };
  let child = await start();
  let keyId: string | null = null;
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    const exited = once(child, 'exit');
    child.kill(signal);
    await exited;
  };
  t.teardown(async () => end('SIGKILL'));
  return {
    port,
    rotate: async () => {
      const rotated = await request(port, { method: 'POST', path: '/emulator/rotate' }).catch(() => null);
      if (rotated?.status !== 200) return null;
      const old = keyId;
      keyId = (JSON.parse(rotated.text) as { readonly kid: string }).kid;
      return old;
    },
    restart: async (signal, downMs) => {
      await end(signal);
      await sleep(downMs);
      child = await start();
    },
    stop: async () => end('SIGTERM'),
  };
}
