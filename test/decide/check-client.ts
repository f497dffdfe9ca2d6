/** Envoy's side of `Authorization/Check`: a client of `@grpc/grpc-js`, by the schema as it is published. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { Client, credentials, type CallOptions, type ServiceError } from '@grpc/grpc-js';
import protobuf from 'protobufjs';
import { projectDir } from '../support/project-dir.js';
import type { RawResponse, RequestInput } from '../support/raw-client.js';
import type { Scope } from '../support/scope.js';

const deps = join(projectDir, 'node_modules/@grpc/grpc-js-xds/deps');
const folders = [
  ...['envoy-api', 'googleapis', 'xds', 'protoc-gen-validate'].map((name) => join(deps, name)),
  join(projectDir, 'node_modules/protobufjs'),
];

/** Envoy's schema as the package has it: of these files. */
export function publishedSchema(files: string[]): protobuf.Root {
  const root = new protobuf.Root();
  root.resolvePath = (_from, name) =>
    folders.map((folder) => join(folder, name)).find((path) => existsSync(path)) ?? name;
  root.loadSync(files);
  root.resolveAll();
  return root;
}

/** That of the service. */
export const published = publishedSchema(['envoy/service/auth/v3/external_auth.proto']);
const requestType = published.lookupType('envoy.service.auth.v3.CheckRequest');
const responseType = published.lookupType('envoy.service.auth.v3.CheckResponse');

interface HeaderOption {
  readonly header: { readonly key: string; readonly value: string };
  readonly append: { readonly value: boolean };
  /** Left out where it is the first of the schema. */
  readonly appendAction?: string;
}

/** A `CheckResponse`, with what is not set left out. */
export interface CheckResponse {
  readonly status: { readonly code: number };
  readonly okResponse?: {
    readonly headers: readonly HeaderOption[];
    readonly headersToRemove: readonly string[];
    readonly responseHeadersToAdd: readonly HeaderOption[];
  };
  readonly deniedResponse?: {
    readonly status: { readonly code: string };
    readonly headers: readonly HeaderOption[];
    readonly body: string;
  };
}

/** What a call came to: a message, or the code and words of its failure. */
export interface Checked {
  readonly response: CheckResponse | null;
  readonly code: number;
  readonly details: string;
}

export const checkPath = '/envoy.service.auth.v3.Authorization/Check';

/** Writes a `CheckRequest` about a request of HTTP. */
export function checkRequest(http: object): Buffer {
  const message = requestType.fromObject({ attributes: { request: { http } } });
  return Buffer.from(requestType.encode(message).finish());
}

/** Opens a client that ends with the test. */
export function checkClient(
  scope: Scope,
  port: number,
): (message: Buffer, options?: CallOptions, path?: string) => Promise<Checked> {
  const client = new Client(`127.0.0.1:${String(port)}`, credentials.createInsecure());
  scope.teardown(() => client.close());
  return (message, options = {}, path = checkPath) =>
    new Promise((resolve) => {
      const take = (error: ServiceError | null, bytes?: Buffer): void => {
        const response = bytes === undefined ? null : readResponse(bytes);
        resolve({ response, code: error?.code ?? 0, details: error?.details ?? '' });
      };
      client.makeUnaryRequest(
        path,
        (bytes: Buffer) => bytes,
        (bytes: Buffer) => bytes,
        message,
        options,
        take,
      );
    });
}

export function readResponse(bytes: Uint8Array): CheckResponse {
  const read = responseType.decode(bytes);
  return responseType.toObject(read, { enums: String, arrays: true, defaults: false }) as CheckResponse;
}

/** Describes a request as Envoy does: names in lower case, and beside them what HTTP/2 has for the first line. */
export function described(input: RequestInput, host = 'shop.example'): Record<string, unknown> {
  const { method = 'GET', path, headers = {}, body } = input;
  const given = Array.isArray(headers) ? (headers as readonly (readonly [string, string])[]) : Object.entries(headers);
  const lines: readonly (readonly [string, string])[] = [
    [':authority', host],
    [':path', path],
    [':method', method],
    [':scheme', 'http'],
    ...given.map(([name, value]): readonly [string, string] => [name.toLowerCase(), value]),
    ...(body === undefined ? [] : ([['content-length', String(body.length)]] as const)),
  ];
  return {
    method,
    path,
    host,
    scheme: 'http',
    protocol: 'HTTP/1.1',
    size: body === undefined ? 0 : -1,
    headerMap: {
      headers: lines.map(([key, value]) => ({ key, rawValue: Buffer.from(value, 'latin1') })),
    },
  };
}

export const statusCodes = published.lookupEnum('envoy.type.v3.StatusCode').values;

/** What Envoy would answer its client: 200 where it may forward. */
export function answerOf(response: CheckResponse | null): Pick<RawResponse, 'status' | 'text' | 'field'> {
  const denied = response?.deniedResponse;
  const headers = (denied?.headers ?? []).map(({ header }) => header);
  return {
    status: response?.okResponse === undefined ? (statusCodes[denied?.status.code ?? ''] ?? 0) : 200,
    text: denied?.body ?? '',
    field: (name) => headers.find(({ key }) => key === name.toLowerCase())?.value ?? null,
  };
}
