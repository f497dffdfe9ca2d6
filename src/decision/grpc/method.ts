import type { RoutePath } from '../route/policy.js';
import { accept, refuse, type Result } from '../../lib/result.js';

/** A service, or one of its methods. */
interface GrpcMethod {
  /** With its package: `shop.v1.Orders`. */
  readonly service: string;
  /** `null` is all of them. */
  readonly method: string | null;
}

/** Names of protobuf: `ident` and `fullIdent` (https://protobuf.dev/reference/protobuf/proto3-spec/#identifiers). */
const named = /^([A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*)(?:\/([A-Za-z_][A-Za-z0-9_]*))?$/;

/** What a service or a method is written like, for problems. */
export const grpcMethodAllowed = 'a service with its package, such as shop.v1.Orders, or a method: shop.v1.Orders/List';

/** Reads `shop.v1.Orders` or `shop.v1.Orders/List`; a refusal says what is wrong. */
export function readGrpcMethod(text: string): Result<GrpcMethod, string> {
  const [, service, method] = named.exec(text) ?? [];
  if (service !== undefined) return accept({ service, method: method ?? null });
  if (text.startsWith('/')) return refuse('begins with /');
  if (text.includes('*')) return refuse('has an asterisk: a service alone is all of its methods');
  return refuse('is no name of a service or method');
}

/**
 * The path of its calls: `/SERVICE/METHOD`, to the letter. Names have nothing that would have to be encoded.
 */
export function grpcPathOf({ service, method }: GrpcMethod): RoutePath {
  const name = method ?? '{method}';
  return {
    text: `/${service}/${name}`,
    segments: [
      { kind: 'literal', text: service },
      method === null ? { kind: 'parameter', name: 'method' } : { kind: 'literal', text: method },
    ],
  };
}
