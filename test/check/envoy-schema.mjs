/**
 * Writes src/adapters/envoy/schema.ts: of Envoy's published schema the messages of `Authorization/Check`, with the
 * fields that are read and written here. All else that Envoy sends is skipped, as protobuf has it. `npm run generate`
 * runs it.
 *
 *   node test/check/envoy-schema.mjs [--check]     with --check, only compares
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import prettier from 'prettier';
import protobuf from 'protobufjs';

const file = 'src/adapters/envoy/schema.ts';
const published = 'node_modules/@grpc/grpc-js-xds';
const folders = [
  ...['envoy-api', 'googleapis', 'xds', 'protoc-gen-validate'].map((name) => `${published}/deps/${name}`),
  'node_modules/protobufjs',
];

/** Messages, with the fields that are kept; enums are kept whole. */
const kept = {
  'envoy.service.auth.v3.CheckRequest': ['attributes'],
  'envoy.service.auth.v3.AttributeContext': ['request'],
  'envoy.service.auth.v3.AttributeContext.Request': ['http'],
  'envoy.service.auth.v3.AttributeContext.HttpRequest': [
    'method',
    'headers',
    'headerMap',
    'path',
    'host',
    'scheme',
    'query',
    'fragment',
  ],
  'envoy.service.auth.v3.CheckResponse': ['status', 'deniedResponse', 'okResponse'],
  'envoy.service.auth.v3.DeniedHttpResponse': ['status', 'headers', 'body'],
  'envoy.service.auth.v3.OkHttpResponse': ['headers', 'headersToRemove', 'responseHeadersToAdd'],
  'envoy.config.core.v3.HeaderMap': ['headers'],
  'envoy.config.core.v3.HeaderValue': ['key', 'value', 'rawValue'],
  'envoy.config.core.v3.HeaderValueOption': ['header', 'append', 'appendAction'],
  'envoy.config.core.v3.HeaderValueOption.HeaderAppendAction': null,
  'envoy.type.v3.HttpStatus': ['code'],
  'envoy.type.v3.StatusCode': null,
  'google.rpc.Status': ['code', 'message'],
  'google.protobuf.BoolValue': ['value'],
};

const written = await text();
if (!process.argv.includes('--check')) writeFileSync(file, written);
else if (readFileSync(file, 'utf8') !== written) {
  console.error(`${file} is not what ${published} says: run npm run generate`);
  process.exitCode = 1;
}

async function text() {
  const root = new protobuf.Root();
  root.resolvePath = (_from, name) =>
    folders.map((folder) => `${folder}/${name}`).find((path) => existsSync(path)) ?? name;
  await root.load('envoy/service/auth/v3/external_auth.proto');
  root.resolveAll();
  const schema = { edition: 'proto3', nested: {} };
  for (const [name, fields] of Object.entries(kept)) put(schema, name.split('.'), trimmed(root.lookup(name), fields));
  const { version } = JSON.parse(readFileSync(`${published}/package.json`, 'utf8'));
  const source = `/**
 * Of \`envoy.service.auth.v3\` what \`Authorization/Check\` takes and gives: https://github.com/envoyproxy/envoy/tree/main/api,
 * Apache-2.0, as @grpc/grpc-js-xds ${version} publishes it. Written by test/check/envoy-schema.mjs.
 */
export const schema = ${JSON.stringify(schema)};
`;
  return prettier.format(source, { ...(await prettier.resolveConfig(file)), parser: 'typescript' });
}

/** The description of a message with these fields alone, or of an enum. */
function trimmed(type, fields) {
  if (fields === null) return { values: type.values };
  const named = fields.map((name) => {
    const field = type.fields[name];
    if (field === undefined) throw new Error(`${type.fullName} has no ${name}`);
    const { rule, keyType, id } = field.toJSON();
    const of = field.resolvedType === null ? field.type : field.resolvedType.fullName;
    return [
      name,
      { ...(rule === undefined ? {} : { rule }), ...(keyType === undefined ? {} : { keyType }), type: of, id },
    ];
  });
  return { fields: Object.fromEntries(named) };
}

/** Puts it at its place among the packages, and beside what stands there. */
function put(scope, [first, ...rest], value) {
  scope.nested ??= {};
  scope.nested[first] = rest.length === 0 ? { ...scope.nested[first], ...value } : (scope.nested[first] ?? {});
  if (rest.length > 0) put(scope.nested[first], rest, value);
}
