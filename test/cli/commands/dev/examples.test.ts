import { execFileSync } from 'node:child_process';
import t from 'tap';
import { chooseSamples, curl, curlTwice, strangerTo, type Sample } from '../../../../src/cli/commands/dev/examples.js';
import type { ReservationRules, Route, Segment } from '../../../../src/decision/route/policy.js';
import { createRouteTable } from '../../../../src/decision/route/route-table.js';
import { sh } from '../../../support/sh.js';

function route(name: string, paths: readonly string[], over: Partial<Route> = {}): Route {
  return {
    name,
    methods: new Set(['GET']),
    paths: paths.map((text) => ({ text, segments: text.slice(1).split('/').map(segment) })),
    access: 'protected',
    mode: 'enforce',
    acceptsService: true,
    session: null,
    approvals: [{ subjects: new Set(['checkout']), prefixes: [], permissions: ['read'] }],
    issuers: null,
    isGrpc: false,
    allowsWebSocket: false,
    origins: null,
    allowsBody: false,
    encodedSlashes: false,
    pathParameters: false,
    forwardsAuthorization: false,
    maxBodyBytes: 1024,
    responseTimeoutMs: 1000,
    reservation: null,
    clientCertificates: null,
    unreservedBecause: null,
    limits: null,
    ...over,
  };
}

function segment(text: string): Segment {
  if (text === '**') return { kind: 'rest' };
  return text.startsWith('{') ? { kind: 'parameter', name: text.slice(1, -1) } : { kind: 'literal', text };
}

const open: Partial<Route> = { access: 'public', approvals: [] };

function samplesOf(...routes: readonly Route[]): { allowed: string | null; refused: string | null } {
  const line = (sample: Sample | null): string | null => (sample === null ? null : `${sample.method} ${sample.target}`);
  const { allowed, refused } = chooseSamples({ routes, table: createRouteTable(routes) });
  return { allowed: line(allowed), refused: line(refused) };
}

const unknown = 'GET /sallyport-dev-no-such-route';

t.test('which request of a route is shown as its example', async (t) => {
  const cases = [
    {
      name: 'the first protected one',
      routes: [route('health', ['/healthz'], open), route('a', ['/a']), route('b', ['/b'])],
      allowed: 'GET /a',
    },
    {
      name: 'reading before writing',
      routes: [route('w', ['/w'], { methods: new Set(['POST']) }), route('r', ['/r'])],
      allowed: 'GET /r',
    },
    {
      name: 'writing where nothing reads',
      routes: [route('w', ['/w'], { methods: new Set(['POST']) })],
      allowed: 'POST /w',
    },
    { name: 'HEAD last', routes: [route('w', ['/w'], { methods: new Set(['HEAD', 'PUT']) })], allowed: 'PUT /w' },
    {
      name: 'HEAD where there is no other',
      routes: [route('h', ['/h'], { methods: new Set(['HEAD']) })],
      allowed: 'HEAD /h',
    },
    { name: 'any method is GET', routes: [route('any', ['/any'], { methods: null })], allowed: 'GET /any' },
    { name: 'parameters get a value', routes: [route('p', ['/o/{id}/x/{other}'])], allowed: 'GET /o/1/x/1' },
    { name: 'below a prefix', routes: [route('f', ['/files/**'])], allowed: 'GET /files/1' },
    {
      name: 'a value that is no literal of another route',
      routes: [route('p', ['/o/{id}']), route('l', ['/o/1'])],
      allowed: 'GET /o/example',
    },
    { name: 'the root', routes: [route('root', ['/'])], allowed: 'GET /' },
    { name: 'a trailing slash stays', routes: [route('s', ['/a/'])], allowed: 'GET /a/' },
    {
      name: 'what needs no escape keeps its form',
      routes: [route('q', ["/a:b@c$d&e+f,g=h!i'j(k)l*m~n"])],
      allowed: "GET /a:b@c$d&e+f,g=h!i'j(k)l*m~n",
    },
    { name: 'others are escaped once', routes: [route('u', ['/größe 1/{id}'])], allowed: 'GET /gr%C3%B6%C3%9Fe%201/1' },
  ];
  for (const { name, routes, allowed } of cases) {
    const samples = samplesOf(...routes);
    t.equal(samples.allowed, allowed, name);
    t.equal(samples.refused, allowed, name);
  }
});

t.test('a route that no request can be shown for is passed over', async (t) => {
  const shadowed = [
    route('p', ['/o/{id}']),
    ...['1', 'example', 'some-value', 'zzz-sample'].map((value) => route(value, [`/o/${value}`], open)),
  ];
  t.same(samplesOf(...shadowed), { allowed: 'GET /o/1', refused: unknown }, 'every value belongs to another route');
  t.same(samplesOf(route('odd', ['/a\u0001']), route('b', ['/b'])).allowed, 'GET /b', 'no target spells its path');
  t.same(samplesOf(route('odd', ['/a\u0001', '/c'])).allowed, 'GET /c', 'the second of its paths does');
  t.same(
    samplesOf(route('nobody', ['/n'], { approvals: [] }), route('b', ['/b'])).allowed,
    'GET /b',
    'nobody may use it',
  );
});

t.test('where everything is public, refusals are shown on a path without a route, if there is one', async (t) => {
  t.same(samplesOf(route('health', ['/healthz'], open)), { allowed: 'GET /healthz', refused: unknown });
  t.same(samplesOf(route('all', ['/**'], open)), { allowed: 'GET /1', refused: null });
});

const reservation: ReservationRules = {
  key: 'required',
  singleUse: false,
  operation: 'o',
  retentionMs: 1,
  fields: [],
  storeHeaders: new Set(),
  releaseOn: new Set(),
  receiver: 'plain',
  maxBodyBytes: 1,
  maxStoredResponseBytes: 1,
};

t.test('the write that is sent twice is one that a key reserves', async (t) => {
  const post = { methods: new Set(['POST']) };
  const cases: readonly { name: string; routes: readonly Route[]; repeated: string | null }[] = [
    { name: 'nothing is reserved', routes: [route('a', ['/a'], post)], repeated: null },
    {
      name: 'the first that is',
      routes: [
        route('a', ['/a'], post),
        route('b', ['/b'], { ...post, reservation }),
        route('c', ['/c'], { ...post, reservation }),
      ],
      repeated: 'POST /b',
    },
    {
      name: 'an optional key',
      routes: [route('a', ['/a'], { ...post, reservation: { ...reservation, key: 'optional' } })],
      repeated: 'POST /a',
    },
    {
      name: 'only the token',
      routes: [route('a', ['/a'], { ...post, reservation: { ...reservation, key: null, singleUse: true } })],
      repeated: null,
    },
    {
      name: 'the token too',
      routes: [route('a', ['/a'], { ...post, reservation: { ...reservation, singleUse: true } })],
      repeated: null,
    },
    {
      name: 'the method that writes',
      routes: [route('a', ['/a'], { methods: new Set(['GET', 'HEAD', 'PATCH']), reservation })],
      repeated: 'PATCH /a',
    },
    { name: 'any method', routes: [route('a', ['/a'], { methods: null, reservation })], repeated: 'POST /a' },
  ];
  for (const { name, routes, repeated } of cases) {
    const sample = chooseSamples({ routes, table: createRouteTable(routes) }).repeated;
    t.equal(sample === null ? null : `${sample.method} ${sample.target}`, repeated, name);
  }
  const command = curlTwice(
    'http://127.0.0.1:1',
    { method: 'POST', target: "/a'b", approval: null, issuers: null },
    '/tmp/x/caller',
    'try-1',
  );
  t.match(
    command,
    /^curl -sS -i -w '\\n' -X POST -H @\/tmp\/x\/caller -H 'Idempotency-Key: try-1' -H 'Content-Type: application\/json' -d '\{"item":"book"\}' /,
  );
  t.ok(command.endsWith(String.raw` 'http://127.0.0.1:1/a'\''b' 'http://127.0.0.1:1/a'\''b'`), 'the same target twice');
});

t.test('the example that is refused has a subject that no route names', async (t) => {
  t.equal(strangerTo([route('a', ['/a'])]), 'stranger');
  const named = route('a', ['/a'], {
    approvals: [{ subjects: new Set(['stranger', 'stranger-x']), prefixes: [], permissions: [] }],
  });
  t.equal(strangerTo([named]), 'stranger-x-x');
});

t.test('a command survives the shell, whatever is in it', async (t) => {
  const sample = (target: string, method = 'GET'): Sample => ({ method, target, approval: null, issuers: null });
  const words = (command: string): readonly string[] =>
    execFileSync(sh, ['-c', `set -- ${command}; for word do printf '%s\\n' "$word"; done`], { encoding: 'utf8' })
      .split('\n')
      .slice(0, -1);
  const proxy = 'http://127.0.0.1:8080';
  const cases = [
    { name: 'plain', sample: sample('/orders'), file: null, words: ['-sS', '-i', `${proxy}/orders`] },
    {
      name: 'a credential',
      sample: sample('/a'),
      file: "/tmp/a 'b/caller",
      words: ['-sS', '-i', '-H', "@/tmp/a 'b/caller", `${proxy}/a`],
    },
    { name: 'method', sample: sample('/a', 'POST'), file: null, words: ['-sS', '-i', '-X', 'POST', `${proxy}/a`] },
    { name: 'HEAD', sample: sample('/a', 'HEAD'), file: null, words: ['-sS', '-i', '--head', `${proxy}/a`] },
    {
      name: 'quotes, dollars, parentheses',
      sample: sample("/a'b$(c)&d;*~!"),
      file: null,
      words: ['-sS', '-i', `${proxy}/a'b$(c)&d;*~!`],
    },
    {
      name: 'an odd method',
      sample: sample('/a', "A'`$B"),
      file: null,
      words: ['-sS', '-i', '-X', "A'`$B", `${proxy}/a`],
    },
  ];
  for (const { name, sample: shown, file, words: expected } of cases) {
    const command = curl(proxy, shown, file);
    t.same(words(command), ['curl', ...expected], name);
    t.ok(command.startsWith('curl ') && !command.includes('\n'), name);
  }
});
