/**
 * Names of fields that become one variable in CGI, WSGI, PHP and kin: what the receiver's program reads there is ours,
 * or nothing.
 */
import t from 'tap';
import { believedFields, obeyedFields } from '../support/attacks/field-names.js';
import { startProxy } from '../proxy/harness.js';
import { startPython } from '../support/python.js';
import { request } from '../support/raw-client.js';
import { tempDir } from '../support/temp-dir.js';
import { readCorpus } from '../vectors/corpus.js';

const routes = [{ name: 'any', methods: ['GET'], path: '/**', subjects: ['checkout'], permissions: [] }];

/** A name as the laxest reader has it. */
const bare = (name: string): string => name.toUpperCase().replace(/[^A-Z0-9]/g, '');

/** How programs name the variable of a field. */
const variables: Readonly<Record<string, (name: string) => string>> = {
  'CGI and WSGI': (name) => name.toUpperCase().replaceAll('-', '_'),
  PHP: (name) => name.toUpperCase().replace(/[^A-Z0-9]/g, '_'),
  'one that keeps letters and digits only': bare,
};

const reserved = [
  'X-Auth-Subject',
  'X-Auth-Issuer',
  'X-Auth-Permissions',
  'X-Auth-Token-Id',
  'X-Auth-Kind',
  'X-Auth-Assertion',
  'X-Forwarded-For',
  'X-Forwarded-Host',
  'X-Forwarded-Proto',
  'Idempotency-Record',
  'Idempotency-Fence',
  'Proxy',
  'X-Real-IP',
  'Forwarded',
  'Via',
];

function aliases(name: string): readonly string[] {
  const joined = ['_', '.', '--', '-_', '', '~', '|', "'", '+', '!', '*'].map((mark) => name.replaceAll('-', mark));
  return [
    ...new Set(
      [name, ...joined, `${name}-`, `${name}_`, `-${name}`, `_${name}`].flatMap((one) => [
        one,
        one.toLowerCase(),
        one.toUpperCase(),
      ]),
    ),
  ];
}

t.test('no spelling of a name that is ours reaches the variable that a program reads', async (t) => {
  const proxy = await startProxy(t, { config: { routes, listen: { underscore_fields: 'allow' } } });
  const good = Object.entries(proxy.authorization());
  let tried = 0;
  for (const name of reserved) {
    for (const alias of aliases(name)) {
      const answer = await request(proxy.port, { path: '/a', headers: [...good, [alias, 'evil']] });
      t.equal(answer.status, 200, alias);
      tried += 1;
    }
  }
  const wrong = proxy.receiver.requests.flatMap(({ rawHeaders }) =>
    rawHeaders.flatMap((value, index) => {
      const sent = rawHeaders[index - 1] ?? '';
      return index % 2 === 1 &&
        value === 'evil' &&
        Object.values(variables).some((read) => reserved.some((name) => read(sent) === read(name)))
        ? [sent]
        : [];
    }),
  );
  t.same(wrong, []);
  t.equal(proxy.receiver.requests.length, tried);
});

t.test(
  'a real WSGI program reads the verified identity, whatever spelling of our names was sent beside it',
  async (t) => {
    const { wsgi } = await startPython(t, tempDir(t));
    const config = { routes, listen: { underscore_fields: 'allow' } };
    const proxy = await startProxy(t, { upstreamUrl: `http://127.0.0.1:${String(wsgi)}`, config });
    const good = Object.entries(proxy.authorization());
    const isOurs = (variable: string): boolean =>
      reserved.some((name) => bare(name) === bare(variable.slice('HTTP_'.length)));
    const wrong: string[] = [];
    let tried = 0;
    for (const alias of reserved.flatMap(aliases)) {
      const answer = await request(proxy.port, { path: '/a', headers: [...good, [alias, 'evil']] });
      const { fields } = JSON.parse(answer.text) as { readonly fields: Readonly<Record<string, string>> };
      const isEvil = Object.entries(fields).some(([variable, value]) => isOurs(variable) && value.includes('evil'));
      if (isEvil || fields['HTTP_X_AUTH_SUBJECT'] !== 'checkout') wrong.push(alias);
      tried += 1;
    }
    t.same(wrong, [], `of ${String(tried)}`);
  },
);

t.test(
  'a real WSGI program sees none of the headers that upstreams believe or obey, and none that the operator lists',
  async (t) => {
    const { wsgi } = await startPython(t, tempDir(t));
    const config = {
      routes,
      listen: { underscore_fields: 'allow' },
      upstream: { strip_fields: ['X-User', 'SOAPAction'] },
    };
    const proxy = await startProxy(t, { upstreamUrl: `http://127.0.0.1:${String(wsgi)}`, config });
    const good = Object.entries(proxy.authorization());
    const rows = [
      ...believedFields,
      { by: 'routers and frameworks', names: obeyedFields },
      { by: 'this application', names: ['X-User', 'SOAPAction'] },
    ];
    const wrong: string[] = [];
    let tried = 0;
    for (const { by, names } of rows) {
      for (const name of names) {
        for (const spelling of [
          name,
          name.replaceAll('-', '_'),
          name.replaceAll('-', '.'),
          name.toUpperCase().replaceAll('-', '_'),
        ]) {
          const answer = await request(proxy.port, { path: '/a', headers: [...good, [spelling, 'evil']] });
          const { fields } = JSON.parse(answer.text) as { readonly fields: Readonly<Record<string, string>> };
          if (fields['HTTP_X_AUTH_SUBJECT'] !== 'checkout' || Object.values(fields).includes('evil')) {
            wrong.push(`${spelling} (${by})`);
          }
          tried += 1;
        }
      }
    }
    t.same(wrong, [], `of ${String(tried)}`);
  },
);

t.test(
  'a real WSGI program sees what it is asked to see: the headers that are to pass, and our own under names that others use',
  async (t) => {
    const { wsgi } = await startPython(t, tempDir(t));
    const config = {
      routes,
      upstream: { pass_fields: ['CF-IPCountry', 'Destination'] },
      identity: { headers: { subject: 'Remote-User', kind: 'X-Forwarded-User' } },
    };
    const proxy = await startProxy(t, { upstreamUrl: `http://127.0.0.1:${String(wsgi)}`, config });
    const headers: [string, string][] = [
      ['CF-IPCountry', 'CH'],
      ['Destination', '/b'],
      ['CF-Connecting-IP', 'evil'],
      ['Remote-User', 'evil'],
      ['remote_user', 'evil'],
      ['X-Forwarded-User', 'evil'],
    ];
    const answer = await request(proxy.port, {
      path: '/a',
      headers: [...Object.entries(proxy.authorization()), ...headers],
    });
    const { fields } = JSON.parse(answer.text) as { readonly fields: Readonly<Record<string, string>> };
    t.match(fields, {
      HTTP_CF_IPCOUNTRY: 'CH',
      HTTP_DESTINATION: '/b',
      HTTP_REMOTE_USER: 'checkout',
      HTTP_X_FORWARDED_USER: 'service',
    });
    t.notOk(Object.values(fields).includes('evil'));
  },
);

t.test('the public corpora that are at hand', (t) => {
  const files = [
    'wycheproof-jws.json',
    'wycheproof-jwk.json',
    'wycheproof-jwcrypto.json',
    'rfc7520-4.1.json',
    'whatwg-urltestdata.json',
    'traversal-140.txt',
    'traversal-887.txt',
    'sf-string.json',
    'sf-string-generated.json',
  ];
  const absent = files.filter((file) => readCorpus(file) === null);
  const note = `${String(absent.length)} of ${String(files.length)} are absent, their tests run on our own vectors: ${absent.join(', ')}`;
  t.comment(absent.length === 0 ? 'all are read' : note);
  t.end();
});
