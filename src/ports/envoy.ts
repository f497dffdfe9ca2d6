import type { CheckedRequest } from '../decision/decide/envoy-check.js';

/** What Envoy is to do with a request: names and values in turn. */
export interface AllowedCheck {
  /** Set in the request, in the place of what it has. */
  readonly set: readonly string[];
  readonly remove: readonly string[];
  /** Added to the response. */
  readonly response: readonly string[];
}

/** With what Envoy is to answer its client. */
export interface RefusedCheck {
  /** HTTP status. */
  readonly status: number;
  /** Of gRPC, 1 to 16. */
  readonly code: number;
  /** Names and values in turn. */
  readonly headers: readonly string[];
  readonly body: string;
}

/** The messages of `envoy.service.auth.v3.Authorization/Check`, without their prefix. */
export interface CheckMessages {
  /** Reads a `CheckRequest`; `null` where the bytes are none, or describe no request of HTTP. */
  readonly read: (message: Uint8Array) => CheckedRequest | null;
  /** Writes a `CheckResponse` with an `OkHttpResponse`. */
  readonly allowed: (allowed: AllowedCheck) => Uint8Array;
  /** Writes one with a `DeniedHttpResponse`. */
  readonly refused: (refused: RefusedCheck) => Uint8Array;
}
