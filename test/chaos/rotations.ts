/** Every file that a config names is replaced in turn, while writes go on. */
import { spawn } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:https';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { stopAtEnd } from '../bench/child.js';
import { certificates, type Certificate } from '../support/certificates.js';
import { keySet } from '../support/jwks-server.js';
import { rsaKey } from '../support/keys.js';
import { freePort, listen } from '../support/listening.js';
import { startRedis } from '../support/redis-server.js';
import { replaceFile } from '../support/replace-file.js';
import { goodSession, startSessionCore } from '../support/session-core.js';
import { mintSession } from '../support/sessions.js';
import type { Scope } from '../support/scope.js';
import { startServe } from '../support/serve-process.js';
import { tempDir } from '../support/temp-dir.js';
import { mintToken } from '../support/tokens.js';
import { until } from '../support/until.js';
import { baseConfig } from '../support/proxy-process.js';
import { goFirst } from './load-process.js';
import type { Callee } from './rotation-caller.js';

const partner = 'https://partner.example';
const apiKeys = ['first-key-of-twenty-characters-or-more', 'second-key-of-twenty-characters-or-more'] as const;

/** Failures with as many milliseconds without any between them are two rounds. */
const betweenRoundsMs = 1_000;

/** What writes saw from one rotation until the next. */
export interface Rotation {
  readonly name: string;
  /** Those that began, and those that got an answer of whatever status. */
  readonly writes: number;
  readonly answered: number;
  /** Writes that began each second. */
  readonly perSecond: number;
  /** Outcomes that were no 200, with the milliseconds since the rotation began. */
  readonly failed: readonly Failure[];
  /** Runs of failures, with successes between them. */
  readonly rounds: number;
}

interface Failure {
  readonly outcome: string;
  readonly atMs: number;
}

/** The rows of a table, with its head. */
export function tableOf(rotations: readonly Rotation[]): readonly string[] {
  const rows = rotations.map(({ name, writes, answered, perSecond, failed, rounds }) => {
    const times = failed.map(({ atMs }) => Math.round(atMs));
    const kinds = [...new Set(failed.map(({ outcome }) => outcome))].join(', ');
    const errors = failed.length === 0 ? '–' : `${Math.min(...times)} to ${Math.max(...times)} ms: ${kinds}`;
    const answeredPerSecond = (answered / writes) * perSecond;
    const cells = [name, writes, perSecond.toFixed(0), answeredPerSecond.toFixed(0), failed.length, rounds, errors];
    return `| ${cells.join(' | ')} |`;
  });
  return [
    '| file | writes | begun a second | answered a second | errors | rounds of errors | when, and which |',
    '| --- | ---: | ---: | ---: | ---: | ---: | --- |',
    ...rows,
  ];
}

/** `atMs` in order of time. */
function roundsOf(failed: readonly Failure[]): number {
  return failed.filter(({ atMs }, i) => i === 0 || atMs - (failed[i - 1]?.atMs ?? 0) >= betweenRoundsMs).length;
}

/** So many writes a second; each rotation has so long to settle. */
export async function rotateAll(
  t: Scope,
  { perSecond, settleMs }: { readonly perSecond: number; readonly settleMs: number },
): Promise<{
  readonly rotations: readonly Rotation[];
  /** Keys that the first process said it has to be restarted for. */
  readonly restartNeeded: readonly string[];
}> {
  const c = certificates(t);
  const dir = tempDir(t);
  const place = (name: string, text: string): string => {
    const path = join(dir, name);
    replaceFile(path, text, 0o600);
    return path;
  };
  const key = rsaKey();
  const partnerKeys = [rsaKey(), rsaKey()];
  const [firstPartner, secondPartner] = [keySet(partnerKeys.slice(0, 1)), keySet(partnerKeys.slice(1))];
  const sessionKey = rsaKey();
  const core = await startSessionCore(t, { keys: [sessionKey] });
  let accepted: ReadonlySet<unknown> = new Set([apiKeys[0]]);
  core.verify((req, res) => {
    if (accepted.has(req.headers['api-key'])) {
      res.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(goodSession()));
    } else res.writeHead(401).end('Invalid API key');
  });
  const upstream = createServer({ cert: c.server.cert, key: c.server.key }, (req, res) => {
    req.resume().on('end', () => res.end('done'));
  });
  const keys = createServer({ cert: c.server.cert, key: c.server.key }, (_req, res) => res.end(keySet([key])));
  const [upstreamPort, keysPort, redisPort] = [
    (await listen(t, upstream)).port,
    (await listen(t, keys)).port,
    await freePort(),
  ];
  const redis = await startRedis(
    t,
    [
      '--port',
      '0',
      '--tls-port',
      String(redisPort),
      '--tls-cert-file',
      c.server.certFile,
      '--tls-key-file',
      c.server.keyFile,
      '--tls-ca-cert-file',
      c.ca.certFile,
      '--tls-auth-clients',
      'no',
      '--requirepass',
      'first',
    ],
    { port: redisPort, client: { tls: { rejectUnauthorized: false }, password: 'first' } },
  );
  await redis.client.connect().catch(() => undefined);
  const both = `${c.ca.cert}${c.otherCa.cert}`;
  const config = join(dir, 'sallyport.yaml');
  writeFileSync(
    config,
    baseConfig({
      listen: {
        port: 0,
        tls: {
          cert_file: place('tls.crt', c.server.cert),
          key_file: place('tls.key', c.server.key),
          client_ca_file: place('client.pem', c.ca.cert),
        },
      },
      upstream: { url: `https://127.0.0.1:${String(upstreamPort)}`, ca_file: place('upstream.pem', c.ca.cert) },
      issuers: {
        core: {
          jwks_url: `https://127.0.0.1:${String(keysPort)}/jwks.json`,
          ca_file: place('keys.pem', c.ca.cert),
          jwks: { min_age: '1s', max_age: '1s' },
        },
        partner: {
          issuer: partner,
          jwks_file: place('partner.json', firstPartner),
          audience: 'orders',
          source: 'microservice',
          token_type: 'service',
        },
      },
      sessions: {
        core_url: core.url,
        api_key: `\${file:${place('api-key', apiKeys[0])}}`,
        api_domain: 'https://api.example.com',
        check_database: true,
      },
      identity: {
        assertion: {
          key_file: place('assertion.pem', ecKey()),
          issuer: 'https://sallyport.example',
          audience: 'orders',
        },
      },
      store: {
        redis: {
          url: `rediss://127.0.0.1:${String(redisPort)}`,
          password_file: place('password', 'first'),
          tls: { ca_file: place('redis.pem', c.ca.cert) },
          reserve_timeout: '2s',
          settle_timeout: '2s',
        },
      },
      routes: [
        {
          name: 'write',
          methods: ['POST'],
          path: '/orders',
          subjects: [`\${file:${place('subject', 'checkout')}}`],
          permissions: [],
          idempotency: 'required',
          accept: ['service', 'session'],
          session: { claims: { tId: 'public' } },
        },
      ],
    }),
  );
  const first = startServe(t, config);
  const port = await first.port('proxy');
  // Servers and callers are to keep the pace, whatever else the machine does.
  for (const pid of [first.pid, process.pid]) goFirst(pid);
  await sleep(1_000);

  const exp = Math.floor(Date.now() / 1_000) + 3_600;
  const own = mintToken({ key, claims: { exp } });
  const partners = partnerKeys.map((of) => mintToken({ key: of, claims: { iss: partner, exp } }));
  const session = mintSession({ key: sessionKey });
  /** Every other one is of the issuer whose keys come from a URL, the others of the one with a file, and of a user. */
  const callee: { port: number; bearers: readonly string[] } = {
    port,
    bearers: [own, partners[0] ?? '', own, session],
  };
  const calls = await startCaller(t, perSecond, {
    ca: place('both.pem', both),
    cert: c.client.certFile,
    key: c.client.keyFile,
  });
  calls.tell(callee);

  const showAt = (server: Server, { cert, key: own }: Certificate): void => {
    server.setSecureContext({ cert, key: own });
    server.closeIdleConnections();
  };
  const showAtRedis = async ({ certFile, keyFile }: Certificate): Promise<void> => {
    await redis.client.config('SET', 'tls-key-file', keyFile, 'tls-cert-file', certFile);
    await redis.client.call('CLIENT', 'KILL', 'TYPE', 'normal');
  };
  let restartNeeded: readonly string[] = [];
  const steps: readonly (readonly [string, () => unknown])[] = [
    ['nothing', () => undefined],
    ['listener: certificate and key', () => [place('tls.crt', c.renewed.cert), place('tls.key', c.renewed.key)]],
    ['listener: client CA', () => place('client.pem', both)],
    ['upstream: both CAs', () => place('upstream.pem', both)],
    ['upstream: certificate of the new CA', () => showAt(upstream, c.strangerServer)],
    ['upstream: new CA alone', () => place('upstream.pem', c.otherCa.cert)],
    ['keys: both CAs', () => place('keys.pem', both)],
    ['keys: certificate of the new CA', () => showAt(keys, c.strangerServer)],
    ['keys: new CA alone', () => place('keys.pem', c.otherCa.cert)],
    ['assertion: key', () => place('assertion.pem', ecKey())],
    ['Redis: both CAs', () => place('redis.pem', both)],
    ['Redis: certificate of the new CA, connections killed', async () => showAtRedis(c.strangerServer)],
    ['Redis: new CA alone', () => place('redis.pem', c.otherCa.cert)],
    [
      'Redis: second password',
      async () => {
        await redis.client.call('ACL', 'SETUSER', 'default', '>second');
        place('password', 'second');
      },
    ],
    [
      'Redis: first password gone, connections killed',
      async () => {
        await redis.client.call('ACL', 'SETUSER', 'default', '<first');
        await redis.client.call('CLIENT', 'KILL', 'TYPE', 'normal');
      },
    ],
    ['jwks_file: both keys', () => place('partner.json', keySet(partnerKeys))],
    [
      'jwks_file: tokens of the new key',
      () => {
        callee.bearers = callee.bearers.with(1, partners[1] ?? '');
        calls.tell(callee);
      },
    ],
    ['jwks_file: new key alone', () => place('partner.json', secondPartner)],
    [
      'sessions.api_key: the Core takes both',
      () => {
        accepted = new Set(apiKeys);
      },
    ],
    ['sessions.api_key: new key in the file', () => place('api-key', apiKeys[1])],
    // It counts at start only, as `/status` says. The next process takes over before the first one ends.
    [
      'sessions.api_key: another process in its place',
      async () => {
        const admin = `http://127.0.0.1:${await first.port('admin')}/status`;
        restartNeeded = await until('the first process says what it has to be restarted for', async () => {
          const status = (await (await fetch(admin)).json()) as { readonly restart_needed: readonly string[] };
          return status.restart_needed.length > 0 ? status.restart_needed : null;
        });
        const next = startServe(t, config);
        callee.port = await next.port('proxy');
        goFirst(next.pid);
        await until('it is ready', () => next.logs().some(({ msg }) => msg === 'the store is in use'));
        calls.tell(callee);
        await sleep(200);
        first.signal('SIGTERM');
      },
    ],
    [
      'sessions.api_key: first key gone',
      () => {
        accepted = new Set(apiKeys.slice(1));
      },
    ],
    ['placeholder: the same subject, with a line end', () => place('subject', 'checkout\n')],
  ];
  const rotations: Rotation[] = [];
  const beganMs: number[] = [];
  for (const [, rotate] of steps) {
    beganMs.push(Date.now());
    await rotate();
    await sleep(settleMs);
  }
  beganMs.push(Date.now());
  const writes = await calls.end();
  for (const [index, [name]] of steps.entries()) {
    const [fromMs = 0, toMs = 0] = beganMs.slice(index);
    const these = writes.filter(({ beganAtMs }) => beganAtMs >= fromMs && beganAtMs < toMs);
    const failed = these
      .filter(({ outcome }) => outcome !== '200')
      .map(({ outcome, place: from, beganAtMs }) => ({
        outcome: `${outcome} ${callers[from] ?? ''}`,
        atMs: beganAtMs - fromMs,
      }))
      .sort((one, other) => one.atMs - other.atMs);
    rotations.push({
      name,
      writes: these.length,
      perSecond: (these.length * 1000) / (toMs - fromMs),
      answered: these.filter(({ outcome }) => /^\d/.test(outcome)).length,
      failed,
      rounds: roundsOf(failed),
    });
  }
  return { rotations, restartNeeded };
}

const callers = ['of the issuer with a URL', 'of the issuer with a file', 'of the issuer with a URL', 'of a user'];

interface WriteSeen {
  /** Milliseconds since the epoch. */
  readonly beganAtMs: number;
  /** Of its bearer. */
  readonly place: number;
  /** A status, or why there is none. */
  readonly outcome: string;
}

/** Starts the process that writes; it keeps the rate whatever this one does. */
async function startCaller(
  t: Scope,
  perSecond: number,
  files: { readonly ca: string; readonly cert: string; readonly key: string },
): Promise<{
  readonly tell: (callee: Callee) => void;
  readonly end: () => Promise<readonly WriteSeen[]>;
}> {
  const args = [join(import.meta.dirname, 'rotation-caller.js'), String(perSecond), files.ca, files.cert, files.key];
  const child = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  stopAtEnd(t, child);
  await once(child, 'spawn');
  goFirst(child.pid ?? 0);
  let text = '';
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
  return {
    tell: (callee) => void child.stdin.write(`${JSON.stringify(callee)}\n`),
    end: async () => {
      // What is under way is over soon, or has failed.
      await sleep(3_000);
      child.kill('SIGKILL');
      return text
        .split('\n')
        .slice(0, -1)
        .map((line): WriteSeen => {
          const [beganAtMs, place, ...outcome] = line.split(' ');
          return { beganAtMs: Number(beganAtMs), place: Number(place), outcome: outcome.join(' ') };
        });
    },
  };
}

function ecKey(): string {
  return generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({
    type: 'pkcs8',
    format: 'pem',
  }) as string;
}
