/** The messages of `Authorization/Check`, held to Envoy's schema as it is published. */
import { spawnSync } from 'node:child_process';
import type protobuf from 'protobufjs';
import light from 'protobufjs/light.js';
import t from 'tap';
import { checkMessages } from '../../../src/adapters/envoy/check-messages.js';
import { schema } from '../../../src/adapters/envoy/schema.js';
import { withRenewedSession } from '../../../src/decision/session/headers.js';
import { checkRequest, published, readResponse } from '../../decide/check-client.js';
import { projectDir } from '../../support/project-dir.js';

t.test('the schema is what the published one generates', (t) => {
  const { status, stderr } = spawnSync(process.execPath, ['test/check/envoy-schema.mjs', '--check'], {
    cwd: projectDir,
    encoding: 'utf8',
  });
  t.equal(status, 0, stderr);
  t.end();
});

t.test('each field of it is the published one', (t) => {
  const own = light.Root.fromJSON(schema).resolveAll();
  let fields = 0;
  const visit = (scope: protobuf.NamespaceBase): void => {
    for (const inner of scope.nestedArray) {
      if (inner instanceof light.Enum) {
        t.same(inner.values, published.lookupEnum(inner.fullName).values, inner.fullName);
      }
      if (inner instanceof light.Type) {
        const wanted = published.lookupType(inner.fullName);
        for (const field of inner.fieldsArray) {
          fields += 1;
          const { id, type, repeated, map, resolvedType, name } = field.resolve();
          const other = wanted.fields[name]?.resolve();
          t.same(
            { id, repeated, map, type: resolvedType?.fullName ?? type },
            {
              id: other?.id,
              repeated: other?.repeated,
              map: other?.map,
              type: other?.resolvedType?.fullName ?? other?.type,
            },
            `${inner.fullName}.${name}`,
          );
        }
      }
      if (inner instanceof light.Namespace) visit(inner);
    }
  };
  visit(own);
  t.ok(fields > 25, `${String(fields)} fields`);
  t.end();
});

t.test('a request is read whole, with what else Envoy tells of it skipped', (t) => {
  const type = published.lookupType('envoy.service.auth.v3.CheckRequest');
  const message = type.fromObject({
    attributes: {
      source: { address: { socketAddress: { address: '192.0.2.1', portValue: 1 } }, principal: 'spiffe://a/b' },
      destination: { service: 'shop' },
      request: {
        time: { seconds: 1 },
        http: {
          id: '1',
          method: 'POST',
          headers: { 'x-note': 'ä', ['__proto__']: 'a', constructor: 'b' },
          path: '/a?b',
          host: 'a.example',
          scheme: 'https',
          size: -1,
          protocol: 'HTTP/2',
          body: 'text',
        },
      },
      contextExtensions: { a: 'b' },
      metadataContext: { filterMetadata: { a: { fields: { b: { listValue: { values: [{ nullValue: 0 }] } } } } } },
      tlsSession: { sni: 'a.example' },
    },
  });
  const read = checkMessages.read(type.encode(message).finish());
  t.match(read, { method: 'POST', path: '/a?b', host: 'a.example', scheme: 'https', query: '', headerMap: null });
  const names = read?.headers.filter((_text, i) => i % 2 === 0) ?? [];
  t.same([...names].sort(), ['__proto__', 'constructor', 'x-note'], 'no name is lost');
  t.equal(read?.headers[read.headers.indexOf('x-note') + 1], Buffer.from('ä').toString('latin1'));
  t.end();
});

t.test('headers as they came keep their bytes and their order', (t) => {
  const lines = [
    { key: 'b', rawValue: Buffer.from([0xff, 0x41]) },
    { key: 'a', value: 'text' },
    { key: 'b', rawValue: Buffer.from('2') },
    { key: 'c', value: 'one', rawValue: Buffer.from('two') },
    { key: 'd' },
  ];
  const read = checkMessages.read(checkRequest({ method: 'GET', path: '/', headerMap: { headers: lines } }));
  t.same(read?.headerMap, ['b', '\xffA', 'a', 'text', 'b', '2', 'c', 'one', 'c', 'two', 'd', '']);
  t.end();
});

t.test('what is no request of HTTP is none', (t) => {
  for (const bytes of [
    Buffer.alloc(0),
    Buffer.from([0x0a, 0]),
    Buffer.from([0x0a, 5, 1]),
    Buffer.from('GET / HTTP/1.1\r\n\r\n'),
    checkRequest({ method: 'GET', path: '/' }).subarray(0, -1),
    Buffer.alloc(100_000, 0x0b),
    Buffer.alloc(100_000, 0xff),
  ]) {
    t.equal(checkMessages.read(bytes), null, bytes.subarray(0, 20).toString('hex'));
  }
  t.end();
});

t.test('answers are what the published schema reads', (t) => {
  const allowed = readResponse(checkMessages.allowed({ set: ['X-A', 'ä'], remove: ['x-b'], response: [] }));
  const latin1 = readResponse(
    checkMessages.allowed({ set: ['X-A', Buffer.from('ä').toString('latin1')], remove: [], response: [] }),
  );
  t.equal(latin1.okResponse?.headers[0]?.header.value, 'ä');
  t.match(allowed.okResponse, {
    headers: [{ header: { key: 'x-a' }, append: {}, appendAction: 'OVERWRITE_IF_EXISTS_OR_ADD' }],
    headersToRemove: ['x-b'],
  });
  t.notOk(allowed.deniedResponse);
  const refused = readResponse(
    checkMessages.refused({ status: 429, code: 8, headers: ['Retry-After', '1'], body: '{}' }),
  );
  t.match(refused, {
    status: { code: 8 },
    deniedResponse: { status: { code: 'TooManyRequests' }, headers: [{ header: { value: '1' } }], body: '{}' },
  });
  t.notOk(refused.okResponse);
  t.end();
});

t.test('a renewed session leaves the upstream its cookies and what pages may read', (t) => {
  const renewed = { accessToken: 'a.b.c', frontToken: 'f', to: 'cookie' } as const;
  const response = withRenewedSession([], renewed, { domain: null, sameSite: 'lax', secure: true }, 0);
  const { okResponse } = readResponse(
    checkMessages.allowed({
      set: [],
      remove: [],
      response: [...response, 'Set-Cookie', 'b=1', 'X-A', '1', 'x-a', '2'],
    }),
  );
  // The schema's default, which is not written.
  const action = 'APPEND_IF_EXISTS_OR_ADD';
  const said = (okResponse?.responseHeadersToAdd ?? []).map(({ header, append, appendAction = action }) =>
    [header.key, header.value.split(';')[0], Object.hasOwn(append, 'value'), appendAction].join(' '),
  );
  t.same(said, [
    'front-token f false OVERWRITE_IF_EXISTS_OR_ADD',
    `access-control-expose-headers front-token true ${action}`,
    `set-cookie sAccessToken=a.b.c true ${action}`,
    `set-cookie b=1 true ${action}`,
    'x-a 1 false OVERWRITE_IF_EXISTS_OR_ADD',
    `x-a 2 true ${action}`,
  ]);
  t.end();
});
