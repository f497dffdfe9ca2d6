import t from 'tap';
import { sendRaw } from '../../support/raw-client.js';
import { startProxy, type Harness } from '../harness.js';

const routes = [
  {
    name: 'protected',
    methods: ['GET', 'POST'],
    path: '/protected/{id}',
    subjects: ['checkout'],
    permissions: ['orders:read'],
    max_body: '10B',
    idempotency: 'none',
  },
  {
    name: 'lax',
    methods: ['GET', 'HEAD'],
    path: '/lax/{id}',
    subjects: ['checkout'],
    permissions: ['orders:read'],
    body: 'allow',
    encoded_slashes: 'allow',
    path_parameters: 'allow',
  },
  {
    name: 'open',
    methods: ['GET', 'POST'],
    path: '/open/{id}',
    access: 'public',
    max_body: '10B',
    idempotency: 'none',
  },
  {
    name: 'open-lax',
    methods: ['GET'],
    path: '/open-lax/{id}',
    access: 'public',
    body: 'allow',
    encoded_slashes: 'allow',
    path_parameters: 'allow',
  },
];

/** Requests to four kinds of places: a route, a laxer one, none at all, and public ones. */
const asks = [
  { name: 'plain', method: 'GET', tail: 'a', rest: '\r\n' },
  { name: 'another method', method: 'DELETE', tail: 'a', rest: '\r\n' },
  { name: 'a method of some protocol', method: 'PROPFIND', tail: 'a', rest: '\r\n' },
  { name: 'a body with GET', method: 'GET', tail: 'a', rest: 'Content-Length: 2\r\n\r\nhi' },
  { name: 'a body with HEAD', method: 'HEAD', tail: 'a', rest: 'Content-Length: 2\r\n\r\nhi' },
  { name: 'an encoded slash', method: 'GET', tail: 'a%2Fb', rest: '\r\n' },
  { name: 'a path parameter', method: 'GET', tail: 'a;b=c', rest: '\r\n' },
  { name: 'a body that is too large', method: 'POST', tail: 'a', rest: 'Content-Length: 50\r\n\r\n' },
  { name: 'a trailing slash', method: 'GET', tail: 'a/', rest: '\r\n' },
] as const;

/** An answer without what differs from one to the next. */
async function answer(
  proxy: Harness,
  place: string,
  { method, tail, rest }: (typeof asks)[number],
  credential: string,
): Promise<string> {
  const [response] = await sendRaw(proxy.port, `${method} ${place}${tail} HTTP/1.1\r\nHost: a\r\n${credential}${rest}`);
  const fields =
    response?.fields.filter(([name]) => !['Date', 'X-Request-Id', 'Connection', 'Keep-Alive'].includes(name)) ?? [];
  return [String(response?.status), ...fields.map(([name, value]) => `${name}: ${value}`), response?.text ?? ''].join(
    '\n',
  );
}

t.test('without a valid credential nobody learns which routes exist and what they allow', async (t) => {
  const proxy = await startProxy(t, { config: { routes } });
  const credentials = [
    '',
    'Authorization: Basic eDp5\r\n',
    'Authorization: Bearer x.y.z\r\n',
    proxy.bearer({ exp: 1 }),
    proxy.bearer({ aud: 'other' }),
  ];
  for (const ask of asks) {
    const answers = new Set<string>();
    for (const place of ['/protected/', '/lax/', '/nowhere/', '/protected/x/']) {
      for (const credential of credentials) answers.add(await answer(proxy, place, ask, credential));
    }
    t.equal(answers.size, 1, `${ask.name}: one answer for all`);
    t.match([...answers][0], /^401\n/, ask.name);
  }
  t.equal(proxy.receiver.requests.length, 0);
});

t.test('with one, the response says what is wrong', async (t) => {
  const proxy = await startProxy(t, { config: { routes } });
  const statuses = async (place: string, credential: string): Promise<readonly string[]> => {
    const all: string[] = [];
    for (const ask of asks) all.push((await answer(proxy, place, ask, credential)).slice(0, 3));
    return all;
  };
  const good = proxy.bearer();
  //                                        plain  DELETE PROPFIND GET+b  HEAD+b  %2F    ;      large  /
  t.same(await statuses('/protected/', good), ['200', '403', '403', '400', '403', '400', '400', '413', '403']);
  t.same(await statuses('/lax/', good), ['200', '403', '403', '200', '200', '200', '200', '403', '403']);
  t.same(await statuses('/nowhere/', good), ['403', '403', '403', '403', '403', '400', '400', '403', '403']);
  t.same(await statuses('/protected/', proxy.bearer({ permissions: [] })), [
    '403',
    '403',
    '403',
    '403',
    '403',
    '400',
    '400',
    '403',
    '403',
  ]);
});

t.test('public routes answer anybody at once', async (t) => {
  const proxy = await startProxy(t, { config: { routes } });
  const statuses = async (place: string): Promise<readonly string[]> => {
    const all: string[] = [];
    for (const ask of asks) all.push((await answer(proxy, place, ask, '')).slice(0, 3));
    return all;
  };
  t.same(await statuses('/open/'), ['200', '401', '401', '400', '401', '400', '400', '413', '401']);
  t.same(await statuses('/open-lax/'), ['200', '401', '401', '200', '401', '200', '200', '401', '401']);
});

t.test('what no route allows is refused at once', async (t) => {
  const strict = routes.filter(({ name }) => !name.includes('lax'));
  const proxy = await startProxy(t, { config: { routes: strict } });
  for (const ask of asks.filter(({ name }) => /GET|HEAD|slash$|parameter/.test(name) && !name.includes('trailing'))) {
    for (const place of ['/protected/', '/nowhere/', '/open/']) {
      t.match(await answer(proxy, place, ask, ''), /^400\n/, `${ask.name}, ${place}`);
    }
  }
});

t.test('on public routes there is no identity, and Authorization passes only where the route says so', async (t) => {
  for (const forward of [false, true]) {
    const proxy = await startProxy(t, {
      config: {
        routes: [{ name: 'open', methods: ['GET'], path: '/open', access: 'public', forward_authorization: forward }],
      },
    });
    await sendRaw(proxy.port, `GET /open HTTP/1.1\r\nHost: a\r\nX-Auth-Subject: evil\r\n${proxy.bearer()}\r\n`);
    const received = proxy.receiver.requests[0];
    t.equal(received?.field('authorization').length, forward ? 1 : 0);
    t.same(
      received?.rawHeaders.filter((name) => /^x-auth/i.test(name)),
      [],
    );
    t.equal(proxy.counted.stripped, 1);
    t.match(proxy.records, [{ kind: null, subject: null, issuer: null, key_id: null }]);
  }
});
