/**
 * What docs/decide.md says to Envoy, held to its published schema, and a client of gRPC on its C core, on which others
 * than Envoy are built that ask in this way.
 */
import protobuf from 'protobufjs';
import t from 'tap';
import { parse } from 'yaml';
import { callOnceFromPython } from '../support/grpcio.js';
import { checkPath, checkRequest, described, publishedSchema, readResponse } from './check-client.js';
import { shownConfigs, startDeciding } from './deciding.js';

const root = publishedSchema([
  'envoy/extensions/filters/http/ext_authz/v3/ext_authz.proto',
  'envoy/config/cluster/v3/cluster.proto',
  'envoy/extensions/upstreams/http/v3/http_protocol_options.proto',
]);

/** Keys of a config that its message does not have. */
function unknownKeys(type: protobuf.Type, value: unknown, at = type.name): readonly string[] {
  if (Array.isArray(value)) return value.flatMap((each) => unknownKeys(type, each, at));
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) => {
    if (key === '@type') return [];
    const field = type.fields[protobuf.util.jsonName(key)]?.resolve();
    if (field === undefined) return [`${at}.${key}`];
    const { resolvedType } = field;
    if (resolvedType instanceof protobuf.Enum) {
      return Object.hasOwn(resolvedType.values, String(inner)) ? [] : [`${at}.${key}: ${String(inner)}`];
    }
    if (
      resolvedType === null ||
      field.type === 'google.protobuf.Duration' ||
      field.type === 'google.protobuf.BoolValue'
    ) {
      return [];
    }
    if (field instanceof protobuf.MapField) {
      return Object.values(inner as object).flatMap((each) => unknownKeys(typeOf(each), each, `${at}.${key}`));
    }
    return unknownKeys(resolvedType.name === 'Any' ? typeOf(inner) : resolvedType, inner, `${at}.${key}`);
  });
}

function typeOf(value: unknown): protobuf.Type {
  return root.lookupType(String((value as Record<string, unknown>)['@type']).replace('type.googleapis.com/', ''));
}

t.test('the configs of the page are ones that Envoy’s schema has', (t) => {
  const configs = shownConfigs('yaml').map((text) => parse(text) as Record<string, unknown>);
  const filters = configs.flatMap(({ http_filters: each = [] }) => each as { readonly typed_config: unknown }[]);
  t.equal(filters.length, 2);
  for (const { typed_config: config } of filters) t.same(unknownKeys(typeOf(config), config), []);
  const clusters = configs.flatMap(({ clusters: each = [] }) => each as unknown[]);
  t.equal(clusters.length, 1);
  t.same(unknownKeys(root.lookupType('envoy.config.cluster.v3.Cluster'), clusters), []);
  t.same(
    unknownKeys(root.lookupType('envoy.config.cluster.v3.Cluster'), { nme: '' }),
    ['Cluster.nme'],
    'a slip is seen',
  );
  t.end();
});

t.test('a client on the C core of gRPC is answered the same', async (t) => {
  const { proxy, decidePort } = await startDeciding(t, 'envoy');
  const address = `127.0.0.1:${String(decidePort)}`;
  const call = { address, path: checkPath };
  const message = checkRequest(
    described({ path: '/orders', headers: { Authorization: `Bearer ${proxy.token()}`, 'X-Auth-Subject': 'root' } }),
  );
  const allowed = await callOnceFromPython({ ...call, message });
  t.equal(allowed.code, 'OK');
  const { okResponse } = readResponse(Buffer.from(allowed.answer ?? '', 'hex'));
  t.match(okResponse?.headers.find(({ header: { key } }) => key === 'x-auth-subject')?.header.value, 'checkout');
  const nobody = await callOnceFromPython({ ...call, message: checkRequest(described({ path: '/orders' })) });
  t.match(readResponse(Buffer.from(nobody.answer ?? '', 'hex')), {
    deniedResponse: { status: { code: 'Unauthorized' } },
  });
  t.equal((await callOnceFromPython({ ...call, message, gzip: true })).code, 'UNIMPLEMENTED');
  t.equal((await callOnceFromPython({ ...call, message: Buffer.from('no message') })).code, 'INTERNAL');
});
