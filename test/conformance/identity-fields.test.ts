/** docs/contract.md 3.3: the fields in which the receiver learns who calls, and what looks like them. */
import t from 'tap';
import { cases, lookAlikes } from '../support/attacks/field-names.js';
import { bare, names, startFieldsProxy } from './fields-proxy.js';
import { checkRefusal, refusals } from './refusals.js';
import { checkSilence } from './silence.js';

const { proxy, send, received } = await startFieldsProxy(t);

const identity = {
  'X-Auth-Subject': 'checkout',
  'X-Auth-Issuer': 'https://api.example.com',
  'X-Auth-Permissions': 'orders:read orders:write',
  'X-Auth-Kind': 'service',
};

t.test('the upstream learns the identity from headers that only Sallyport sets', async (t) => {
  await send([]);
  for (const [name, value] of Object.entries(identity)) t.same(received().field(name), [value], name);
  t.same(received().field('x-auth-token-id'), [], 'no token id without a jti');
  t.same(received().field('authorization'), [], 'the token stays here');
  await proxy.request({
    path: '/orders',
    headers: proxy.authorization({ jti: 'id-1', permissions: ['z', 'orders:read', 'a'] }),
  });
  t.same(received().field('x-auth-token-id'), ['id-1']);
  t.same(received().field('x-auth-permissions'), ['z orders:read a'], 'in the order of the token');
});

t.test(
  'ADR 0010: a permission that a list cannot hold grants nothing and reaches nobody; the others of its token do',
  async (t) => {
    for (const odd of [
      'orders:read admin',
      ' orders:read',
      'orders:read\n',
      '',
      'bestellungen:ändern',
      '日本',
      'a"b',
    ]) {
      t.equal(
        (await proxy.request({ path: '/orders', headers: proxy.authorization({ permissions: [odd] }) })).status,
        403,
        JSON.stringify(odd),
      );
      t.equal(
        (
          await proxy.request({
            path: '/orders',
            headers: proxy.authorization({ permissions: [odd, 'orders:read', odd, 'z'] }),
          })
        ).status,
        200,
      );
      t.same(received().field('x-auth-permissions'), ['orders:read z'], JSON.stringify(odd));
    }
    for (const wrong of [['orders:read', 1], ['orders:read', null], [['orders:read']]]) {
      t.equal(
        (await proxy.request({ path: '/orders', headers: proxy.authorization({ permissions: wrong }) })).status,
        401,
        JSON.stringify(wrong),
      );
    }
  },
);

const spellings = (name: string): string[] => [...cases(name), ...lookAlikes(name)];

t.test('who is refused is refused with an identity of its own making too', async (t) => {
  const fields = [...Object.keys(identity), 'X-Auth-Token-Id']
    .flatMap(spellings)
    .map((name) => [name, 'evil-value'] as const);
  const callers = [
    { name: 'nobody', credential: [], refusal: refusals.unauthorized },
    {
      name: 'an expired token',
      credential: Object.entries(proxy.authorization({ exp: 1, iat: undefined })),
      refusal: refusals.unauthorized,
    },
    {
      name: 'another subject',
      credential: Object.entries(proxy.authorization({ sub: 'stranger' })),
      refusal: refusals.forbidden,
    },
  ];
  for (const { name, credential, refusal } of callers) {
    const before = proxy.receiver.requests.length;
    checkRefusal(t, await proxy.request({ path: '/orders', headers: [...credential, ...fields] }), refusal, name);
    t.equal(proxy.receiver.requests.length, before, name);
  }
});

t.test('look-alikes of headers that we set or judge are dropped and counted', async (t) => {
  const reserved = [
    ...Object.keys(identity),
    'X-Auth-Token-Id',
    'X-Forwarded-For',
    'X-Forwarded-Proto',
    'X-Forwarded-Host',
  ];
  for (const name of reserved) {
    for (const spelling of new Set(spellings(name))) {
      const before = await proxy.metric('sallyport_stripped_fields_total');
      const response = await send([[spelling, 'evil-value']]);
      t.equal(response.status, 200, spelling);
      t.notMatch(received().rawHeaders.join('\n'), 'evil-value', `${spelling} does not get through`);
      t.ok(
        names(received())
          .filter((other) => bare(other) === bare(name))
          .every((other) => other === name.toLowerCase()),
        `${spelling}: our spelling only`,
      );
      t.ok((await proxy.metric('sallyport_stripped_fields_total')) > before, `${spelling} is counted`);
    }
  }
  for (const name of [
    'Idempotency_Key',
    'IDEMPOTENCY.KEY',
    'Author-ization',
    'X_Request_Id',
    'Content_Length',
    'Transfer_Encoding',
    'H-ost',
  ]) {
    await send([[name, 'evil-value']]);
    t.notMatch(received().rawHeaders.join('\n'), 'evil-value', name);
  }
});

checkSilence(t, proxy);
