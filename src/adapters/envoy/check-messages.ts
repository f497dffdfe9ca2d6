/** Messages of Envoy's `Authorization/Check`, by its published schema. */
import protobuf from 'protobufjs/light.js';
import type { CheckedRequest } from '../../decision/decide/envoy-check.js';
import type { AllowedCheck, CheckMessages, RefusedCheck } from '../../ports/envoy.js';
import { schema } from './schema.js';

const { Root } = protobuf;

/** As the schema has a header: text, or bytes where Envoy is told to send them as they came. */
interface WireHeader {
  readonly key: string;
  readonly value: string;
  readonly rawValue: Uint8Array;
}

/** What a `CheckRequest` holds; messages that are not set are `null`, and texts are empty. */
interface WireRequest {
  readonly attributes: {
    readonly request: {
      readonly http:
        | (Pick<CheckedRequest, 'method' | 'path' | 'host' | 'scheme' | 'query' | 'fragment'> & {
            readonly headers: Readonly<Record<string, string>>;
            readonly headerMap: { readonly headers: readonly WireHeader[] } | null;
          })
        | null;
    } | null;
  } | null;
}

const root = Root.fromJSON(schema).resolveAll();
const checkRequest = root.lookupType('envoy.service.auth.v3.CheckRequest');
const checkResponse = root.lookupType('envoy.service.auth.v3.CheckResponse');
const { APPEND_IF_EXISTS_OR_ADD: append, OVERWRITE_IF_EXISTS_OR_ADD: overwrite } = root.lookupEnum(
  'envoy.config.core.v3.HeaderValueOption.HeaderAppendAction',
).values;

export const checkMessages: CheckMessages = {
  read: (message) => {
    try {
      return checkedRequest(checkRequest.decode(message) as unknown as WireRequest);
    } catch {
      return null;
    }
  },
  allowed: ({ set, remove, response }: AllowedCheck) =>
    written({
      status: { code: 0 },
      okResponse: { headers: options(set), headersToRemove: remove, responseHeadersToAdd: options(response, shared) },
    }),
  refused: ({ status, code, headers, body }: RefusedCheck) =>
    written({ status: { code }, deniedResponse: { status: { code: status }, headers: options(headers), body } }),
};

function written(message: Record<string, unknown>): Uint8Array {
  return checkResponse.encode(message).finish();
}

function checkedRequest({ attributes }: WireRequest): CheckedRequest | null {
  const http = attributes?.request?.http ?? null;
  if (http === null) return null;
  const { method, path, host, scheme, query, fragment, headers, headerMap } = http;
  return {
    method: bytesOf(method),
    path: bytesOf(path),
    host: bytesOf(host),
    scheme,
    query,
    fragment,
    headers: Object.entries(headers).flatMap(([name, value]) => [bytesOf(name), bytesOf(value)]),
    headerMap: headerMap === null ? null : headerMap.headers.flatMap(linesOf),
  };
}

/** One character for each byte, as a head has it. */
function bytesOf(text: string): string {
  return Buffer.from(text).toString('latin1');
}

/** A value comes in one of two ways; a header with both is there twice. */
function linesOf({ key, value, rawValue }: WireHeader): readonly string[] {
  const name = bytesOf(key);
  if (rawValue.length === 0) return [name, bytesOf(value)];
  const raw = [name, Buffer.from(rawValue).toString('latin1')];
  return value === '' ? raw : [name, bytesOf(value), ...raw];
}

/** Headers of a response of which the upstream has its own: they stand beside those. */
const shared: readonly string[] = ['set-cookie', 'access-control-expose-headers'];

/**
 * The first of a name takes the place of what is there, unless it is `shared`, and others of the same name stand beside
 * it.
 */
function options(headers: readonly string[], shared: readonly string[] = []): readonly Record<string, unknown>[] {
  const seen = new Set(shared);
  const found: Record<string, unknown>[] = [];
  for (let i = 0; i + 1 < headers.length; i += 2) {
    const key = (headers[i] ?? '').toLowerCase();
    const isMore = seen.has(key);
    seen.add(key);
    // Releases before 1.27 know `append` alone.
    const value = Buffer.from(headers[i + 1] ?? '', 'latin1').toString();
    found.push({ header: { key, value }, append: { value: isMore }, appendAction: isMore ? append : overwrite });
  }
  return found;
}
