/**
 * Files that a config names are replaced in turn, while writes go on. Not among them, since no write waits for them or
 * each would have to bear a proof: keys of nonces, what an issuer of the calling side is shown, certificates that
 * targets are shown, the token for fetches of keys, and the files of telemetry. These have tests of their own.
 */
import { generateKeyPairSync } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:https';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { certificates, type Certificate } from '../support/certificates.js';
import { sayJson, startIntrospection } from '../support/introspection-server.js';
import { keySet } from '../support/jwks-server.js';
import { rsaKey } from '../support/keys.js';
import { freePort, listen } from '../support/listening.js';
import { startRedis } from '../support/redis-server.js';
import { keyFor, tokenBy } from '../support/profile-tokens.js';
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
import { callOut, startCaller } from './rotation-calls.js';

const partner = 'https://partner.example';
const apiKeys = ['first-key-of-twenty-characters-or-more', 'second-key-of-twenty-characters-or-more'] as const;

const idp = 'https://idp.example.com';
const opaqueToken = 'an-opaque-token-of-a-service';
const clientSecrets = ['the first secret of a client', 'the second secret of a client'] as const;
const calledTokens = ['first.token.of-a-workload', 'second.token.of-a-workload'] as const;

/** Every such write has the service call somebody itself, through the calling side. */
const callsEvery = 10;

/** Failures with as many milliseconds without any between them are two rounds. */
const betweenRoundsMs = 1_000;

/** What writes saw from one rotation until the next. */
export interface Rotation {
  readonly name: string;
  /** Those that began, and those of them that got an answer of whatever status. */
  readonly writes: number;
  readonly answered: number;
  /** Writes that began each second. */
  readonly perSecond: number;
  /** Outcomes that were no 200, with the milliseconds from the begin of the rotation to the end of the write. */
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
  const issuer = await startIntrospection(t);
  let secrets: readonly string[] = [clientSecrets[0]];
  issuer.behave(({ headers: { authorization = '' }, form }, res) => {
    const written = Buffer.from(authorization.replace('Basic ', ''), 'base64').toString();
    const isClient = secrets.some((secret) =>
      written.endsWith(`:${new URLSearchParams({ _: secret }).toString().slice(2)}`),
    );
    if (!isClient) res.writeHead(401).end();
    else if (form.get('token') !== opaqueToken) sayJson(res, { active: false });
    else sayJson(res, { active: true, iss: idp, aud: 'orders', client_id: 'checkout', token_type: 'Bearer', exp });
  });
  const exp = Math.floor(Date.now() / 1_000) + 3_600;
  let taken: readonly string[] = [calledTokens[0]];
  const called = createServer({ cert: c.server.cert, key: c.server.key }, (req, res) => {
    const isTaken = taken.some((token) => req.headers.authorization === `Bearer ${token}`);
    req.resume().on('end', () => res.writeHead(isTaken ? 200 : 403).end());
  });
  const calledPort = (await listen(t, called)).port;
  let callingPort = 0;
  let served = 0;
  const upstream = createServer({ cert: c.server.cert, key: c.server.key }, (req, res) => {
    req.resume().on('end', () => {
      served += 1;
      if (served % callsEvery !== 0) res.end('done');
      else void callOut(callingPort).then((status) => res.writeHead(status === 200 ? 200 : 500).end('done'));
    });
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
  const svidKeys = [keyFor('ES256', 'svid-1'), keyFor('ES256', 'svid-2')];
  const bundleOf = (of: typeof svidKeys): string =>
    keySet(of.map(({ jwk }) => ({ ...jwk, use: 'jwt-svid', alg: undefined })));
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
        idp: {
          issuer: idp,
          profile: 'oauth',
          audience: 'orders',
          jwks_file: place('idp.json', keySet([rsaKey()])),
          claims: { subject: 'client_id' },
          introspection: {
            url: issuer.url,
            client_id: 'sallyport',
            client_secret_file: place('client-secret', clientSecrets[0]),
            max_age: '500ms',
          },
        },
        spire: {
          profile: 'spiffe',
          trust_domain: 'shop.example',
          audience: 'spiffe://shop.example/orders',
          bundle_file: place('bundle.json', bundleOf(svidKeys.slice(0, 1))),
        },
      },
      egress: {
        listen: { port: 0 },
        tokens: { own: { file: place('called-token', calledTokens[0]) } },
        targets: [
          {
            name: 'called',
            prefix: '/called',
            url: `https://127.0.0.1:${String(calledPort)}`,
            ca_file: place('called.pem', c.ca.cert),
            token: 'own',
            allow: [{ methods: ['GET'], path: '/**' }],
          },
        ],
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
          subjects: [`\${file:${place('subject', 'checkout')}}`, { prefix: 'spiffe://shop.example/ns/shop/' }],
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
  callingPort = await first.port('egress');
  // Servers and callers are to keep the pace, whatever else the machine does.
  for (const pid of [first.pid, process.pid]) goFirst(pid);
  await sleep(1_000);

  const own = mintToken({ key, claims: { exp } });
  const partners = partnerKeys.map((of) => mintToken({ key: of, claims: { iss: partner, exp } }));
  const session = mintSession({ key: sessionKey });
  const svids = svidKeys.map((of) =>
    tokenBy(of, { sub: 'spiffe://shop.example/ns/shop/sa/checkout', aud: ['spiffe://shop.example/orders'], exp }),
  );
  /** In turn, as `callers` names them. */
  const callee: { port: number; bearers: readonly string[] } = {
    port,
    bearers: [own, partners[0] ?? '', own, session, opaqueToken, svids[0] ?? ''],
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
    ['bundle_file: both keys', () => place('bundle.json', bundleOf(svidKeys))],
    [
      'bundle_file: tokens of the new key',
      () => {
        callee.bearers = callee.bearers.with(5, svids[1] ?? '');
        calls.tell(callee);
      },
    ],
    ['bundle_file: new key alone', () => place('bundle.json', bundleOf(svidKeys.slice(1)))],
    [
      'introspection: the issuer takes both secrets, the second is in the file',
      () => {
        secrets = clientSecrets;
        place('client-secret', clientSecrets[1]);
      },
    ],
    [
      'introspection: first secret gone',
      () => {
        secrets = clientSecrets.slice(1);
      },
    ],
    ['egress target: both CAs', () => place('called.pem', both)],
    ['egress target: certificate of the new CA', () => showAt(called, c.strangerServer)],
    ['egress target: new CA alone', () => place('called.pem', c.otherCa.cert)],
    [
      'egress token: both are taken, the second is in the file',
      () => {
        taken = calledTokens;
        place('called-token', calledTokens[1]);
      },
    ],
    [
      'egress token: first one gone',
      () => {
        taken = calledTokens.slice(1);
      },
    ],
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
        const nextCallingPort = await next.port('egress');
        await until('it is ready', () => next.logs().some(({ msg }) => msg === 'the store is in use'));
        calls.tell(callee);
        callingPort = nextCallingPort;
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
    // What fails is counted where it failed: a write may have begun a moment before the rotation that cost it.
    const isLast = index === steps.length - 1;
    const failed = writes
      .filter(({ outcome }) => outcome !== '200')
      .filter(({ endedAtMs }) => endedAtMs >= fromMs && (endedAtMs < toMs || isLast))
      .map(({ outcome, place: from, endedAtMs }) => ({
        outcome: `${outcome} ${callers[from] ?? ''}`,
        atMs: endedAtMs - fromMs,
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

const callers = [
  'of the issuer with a URL',
  'of the issuer with a file',
  'of the issuer with a URL',
  'of a user',
  'of the issuer that is asked',
  'of the trust domain',
];

function ecKey(): string {
  return generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({
    type: 'pkcs8',
    format: 'pem',
  }) as string;
}
