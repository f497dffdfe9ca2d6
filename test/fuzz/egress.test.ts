/**
 * Attempts to have the calling side call elsewhere than its targets: request targets by grammar, Host, headers that
 * name another place, pseudo-headers of HTTP/2, redirects, and answers of DNS. What is sent is held to a model.
 */
import { createServer, type IncomingMessage } from 'node:http';
import { connect as connectHttp2, type ClientHttp2Session } from 'node:http2';
import t from 'tap';
import { startCalling } from '../app/egress/calling.js';
import { startAt, startNames } from '../app/egress/changing-names.js';
import { startInProcessProxy } from '../app/in-process-proxy.js';
import { certificates } from '../support/certificates.js';
import { freePort, listen } from '../support/listening.js';
import { connectRaw, type RawConnection } from '../support/raw-client.js';
import { until } from '../support/until.js';
import { drawFrom, once, pick, runSeed, type Draw } from './draw.js';
import { destinationOf, type ModelTarget } from './model-egress.js';

t.comment(`SALLYPORT_SEED=${String(runSeed)}`);

interface Arrived {
  readonly at: string;
  readonly url: string;
  readonly host: string;
}

const arrived: Arrived[] = [];
const rest = { redirect: '' };

/** A server that notes what it is asked, and sometimes sends its callers elsewhere. */
async function startServer(name: string): Promise<number> {
  const server = createServer((req: IncomingMessage, res) => {
    arrived.push({ at: name, url: req.url ?? '', host: req.headers.host ?? '' });
    req.resume();
    if (rest.redirect === '') res.end(name);
    else res.writeHead(307, { Location: rest.redirect, Refresh: `0; url=${rest.redirect}` }).end();
  });
  return (await listen(t, server)).port;
}

const ports = { orders: await startServer('orders'), billing: await startServer('billing') };
const elsewhere = `127.0.0.1:${String(await startServer('elsewhere'))}`;
const targets: readonly (ModelTarget & { readonly name: keyof typeof ports })[] = [
  { name: 'orders', prefix: '/orders', basePath: '' },
  { name: 'billing', prefix: '/pay/bills', basePath: '/api' },
];
const proxy = await startInProcessProxy(t, {
  config: {
    egress: {
      listen: { port: 0, http2: true },
      targets: targets.map(({ name, prefix, basePath }) => ({
        name,
        prefix,
        url: `http://127.0.0.1:${String(ports[name])}${basePath}`,
        allow: [{ methods: ['*'], path: '/**' }],
        idempotency: 'pass',
      })),
    },
  },
});
const port = proxy.app.listeners.egress?.port ?? 0;

const beginnings = ['/orders', '/pay/bills', '/orders', '/pay', '/Orders', '/%6frders', '/ordersx', '', '//', '/.'];
const origins = [
  `http://${elsewhere}`,
  `//${elsewhere}`,
  `http://orders@${elsewhere}`,
  `https://${elsewhere}`,
  elsewhere,
];
const plain = ['/a', '/b-._~1', '/@:*!$&', '/%c3%a9', '/x%20y', '?q=1'];
const pieces = [
  '/a',
  '/b-._~1',
  '?q=1',
  '/',
  '/..',
  '/.',
  '/%2e%2e',
  '%2F',
  '%2f..%2f',
  '%5c',
  '\\',
  '@',
  `@${elsewhere}`,
  '/@:*!$&',
  ':80',
  ';x=1',
  '/;',
  '#f',
  '%00',
  '%0d%0aHost:%20x',
  '%25',
  '%',
  '%c3%a9',
  '%ff',
  `?url=http://${elsewhere}/`,
  `/http://${elsewhere}/`,
  '\t',
  '?',
  '/é',
];

function someTarget(draw: Draw): string {
  const begin = once(draw, 6) ? pick(draw, origins) : pick(draw, beginnings);
  const parts = Array.from({ length: draw.below(4) }, () => (once(draw, 3) ? pick(draw, pieces) : pick(draw, plain)));
  return `${begin}${parts.join('')}`;
}

const places = ['localhost', elsewhere, `orders@${elsewhere}`, '127.0.0.1', '[::1]:1', '169.254.169.254', 'a.example'];
const misleading = ['X-Forwarded-Host', 'X-Forwarded-Server', 'X-Original-URL', 'X-Rewrite-URL', 'Forwarded', 'X-Host'];

/** What is wrong with what arrived; `null` where nothing is. */
function faultOf(target: string, status: number, mayBeRefused: boolean): string | null {
  const seen = arrived.splice(0);
  const expected = destinationOf(target, targets);
  const [first, second] = seen;
  if (second !== undefined) return `sent ${String(seen.length)} times: ${JSON.stringify(seen)}`;
  if (first === undefined) {
    if (status >= 200 && status < 400) return `answered ${String(status)} by nobody`;
    return expected.kind === 'sent' && !mayBeRefused ? `was not sent, and answered ${String(status)}` : null;
  }
  if (expected.kind === 'refused') return `was sent: ${JSON.stringify(first)}`;
  const to = targets.find(({ prefix }) => prefix === expected.target.prefix);
  if (to === undefined || first.at !== to.name || first.url !== expected.url) return `went to ${JSON.stringify(first)}`;
  if (first.host !== `127.0.0.1:${String(ports[to.name])}`) return `with the Host ${first.host}`;
  if (rest.redirect !== '' && status !== 307) return `its redirect was not passed on: ${String(status)}`;
  return null;
}

interface Tally {
  readonly faults: string[];
  sent: number;
}

function tell(tally: Tally, number: number, target: string, fault: string | null): void {
  if (destinationOf(target, targets).kind === 'sent') tally.sent += 1;
  if (fault !== null) tally.faults.push(`case ${String(number)}: ${JSON.stringify(target)} ${fault}`);
}

t.test('HTTP/1.1: request targets in every form, Host and headers that name another place', async (t) => {
  const tally: Tally = { faults: [], sent: 0 };
  let connection: RawConnection | null = null;
  for (let number = 0; number < 3_000 && tally.faults.length < 10; number += 1) {
    const draw = drawFrom(runSeed, number);
    const target = someTarget(draw);
    const host = pick(draw, places);
    rest.redirect = once(draw, 4) ? `http://${elsewhere}/stolen` : '';
    const extra = once(draw, 2) ? `${pick(draw, misleading)}: ${pick(draw, places)}\r\n` : '';
    const second = once(draw, 10);
    const lines = `Host: ${host}\r\n${second ? `Host: ${elsewhere}\r\n` : ''}${extra}`;
    connection ??= await connectRaw(port);
    connection.write(Buffer.from(`GET ${target} HTTP/1.1\r\n${lines}\r\n`));
    const answer = await connection.readResponse();
    // What is no request head at all may end its connection without a word.
    const status = answer?.status ?? 400;
    tell(tally, number, target, faultOf(target, status, second || host.includes('@')));
    if (answer === null || status === 400 || answer.field('connection') === 'close') {
      connection.end();
      connection = null;
    }
  }
  connection?.end();
  t.same(tally.faults, []);
  t.ok(tally.sent > 200, `${String(tally.sent)} were sent`);
});

t.test('HTTP/2: :path, :authority and :scheme', async (t) => {
  const tally: Tally = { faults: [], sent: 0 };
  let session: ClientHttp2Session | null = null;
  for (let number = 0; number < 1_500 && tally.faults.length < 10; number += 1) {
    const draw = drawFrom(runSeed + 1, number);
    const target = someTarget(draw);
    const authority = pick(draw, places);
    rest.redirect = once(draw, 4) ? `http://${elsewhere}/stolen` : '';
    if (session === null || session.destroyed || session.closed) {
      session = connectHttp2(`http://127.0.0.1:${String(port)}`).on('error', () => undefined);
    }
    const headers = {
      ':method': 'GET',
      ':path': target,
      ':authority': authority,
      ':scheme': pick(draw, ['http', 'https', 'ftp']),
      ...(once(draw, 3) ? { host: pick(draw, places) } : {}),
      ...(once(draw, 2) ? { [pick(draw, misleading).toLowerCase()]: pick(draw, places) } : {}),
    };
    const status = await statusOf(session, headers);
    // What else is amiss in such a head may refuse it.
    tell(tally, number, target, faultOf(target, status, true));
  }
  session?.destroy();
  t.same(tally.faults, []);
  t.ok(tally.sent > 100, `${String(tally.sent)} might have been sent`);
});

t.test('DNS: answers that change between requests, and between connections', async (t) => {
  const { ca, server, misnamed, strangerServer } = certificates(t);
  const namedPort = await freePort();
  const addresses = { own: '127.0.0.1', misnamed: '127.0.0.2', stranger: '127.0.0.3', nobody: '127.0.0.4' };
  const own = await startAt(t, addresses.own, namedPort, server);
  const others = [
    await startAt(t, addresses.misnamed, namedPort, misnamed),
    await startAt(t, addresses.stranger, namedPort, strangerServer),
  ];
  const names = startNames(t, addresses.own);
  const { call, proxy: calling } = await startCalling(t, `https://orders.test:${String(namedPort)}`, {
    ca_file: ca.certFile,
    server_name: 'localhost',
    retries: { attempts: 1 },
    // The model knows of no rest, in which another connection would be opened.
    reuse: 'always',
  });
  const faults: string[] = [];
  // The model: a connection stays where it is; a new one goes where the name leads, and counts with its certificate.
  let isConnected = false;
  let refused = 0;
  for (let number = 0; number < 300 && faults.length < 5; number += 1) {
    const draw = drawFrom(runSeed + 2, number);
    names.address = once(draw, 2) ? addresses.own : pick(draw, Object.values(addresses));
    if (isConnected && once(draw, 2)) {
      own.breakOff();
      await until('it is noticed', () => calling.app.status().egress?.targets[0]?.connections === 0);
      isConnected = false;
    }
    const before = names.lookups;
    const { status, text } = await call('/orders/1', { method: 'GET' });
    const isServed: boolean = isConnected || names.address === addresses.own;
    const lookups = isConnected ? 0 : 1;
    const asked = others.reduce((sum, place) => sum + place.asked(), 0);
    const isRight = isServed ? status === 200 && text === addresses.own : status === 503;
    if (!isRight || asked > 0 || names.lookups - before !== lookups) {
      faults.push(`case ${String(number)}: ${names.address}, ${String(isConnected)}: ${String(status)} ${text}`);
    }
    isConnected = isServed;
    if (!isServed) refused += 1;
  }
  t.same(faults, []);
  t.ok(refused > 30, `${String(refused)} were refused`);
});

/** 0 where the stream was ended without a response, or Node itself does not send such a head. */
function statusOf(session: ClientHttp2Session, headers: Readonly<Record<string, string>>): Promise<number> {
  return new Promise((resolve) => {
    try {
      const stream = session.request(headers);
      let status = 0;
      stream
        .on('response', (fields) => {
          status = Number(fields[':status']);
        })
        .on('error', () => undefined)
        .on('close', () => {
          resolve(status);
        })
        .resume()
        .end();
    } catch {
      resolve(0);
    }
  });
}
