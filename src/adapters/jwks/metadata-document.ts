/**
 * Documents in which an issuer says where what is (OpenID Connect Discovery §3, RFC 8414 §2): read, and held to the
 * issuer.
 */
import type { DiscoveryPlace } from '../../config/types.js';
import { isLoopback } from '../../lib/ip-ranges.js';
import { accept, refuse, type Result } from '../../lib/result.js';
import {
  defaultMaxDepth,
  isJsonObject,
  parseStrictJson,
  type JsonObject,
  type JsonValue,
} from '../../lib/strict-json.js';
import type { MetadataProblem, MetadataState } from '../../ports/auth.js';
import { jsonProblems } from './key-set.js';

/** What a document says. */
export interface Metadata {
  readonly keysUrl: string;
  readonly introspection: MetadataState['introspection'];
}

/** Why there is no new metadata. */
export interface MetadataFailure {
  readonly why: string;
  readonly problem: MetadataProblem;
}

/** Characters of a document that a message quotes. */
const maxQuoted = 200;

/** Reads a document, which has to be this issuer's own. */
function readDocument(bytes: Uint8Array, issuer: string): Result<JsonObject, MetadataFailure> {
  const parsed = parseStrictJson(bytes, { maxDepth: defaultMaxDepth });
  if (!parsed.ok) return refused('malformed', `the metadata ${jsonProblems[parsed.error]}`);
  const { issuer: named } = parsed.value;
  return named === issuer
    ? parsed
    : refused('other_issuer', `the metadata is of another issuer: its issuer is ${quote(named)}`);
}

function refused(problem: MetadataProblem, why: string): Result<never, MetadataFailure> {
  return refuse({ why, problem });
}

/** Where an issuer is asked for tokens, and where with a certificate (RFC 8705 §5). */
export interface TokenEndpoints {
  readonly url: string;
  readonly mtlsUrl: string | null;
}

/**
 * Reads where tokens are asked for. Refuses, in words, a document of another issuer, and a place on another origin than
 * the issuer's, or over http on another machine: the client's secret would go there.
 */
export function readTokenEndpoints(bytes: Uint8Array, issuer: string): Result<TokenEndpoints, string> {
  const document = readDocument(bytes, issuer);
  if (!document.ok) return refuse(document.error.why);
  const { token_endpoint: written, mtls_endpoint_aliases: aliases } = document.value;
  const own = new Set([new URL(issuer).origin]);
  const url = placeAt(own, written);
  if (url === null) {
    return refuse(
      `the metadata’s token_endpoint is no https URL on the issuer’s origin: ${quote(written)}; token_url names another`,
    );
  }
  return accept({ url, mtlsUrl: isJsonObject(aliases) ? placeAt(own, aliases['token_endpoint']) : null });
}

/**
 * Reads where the issuer is asked about tokens (RFC 8414 §2), and where with a certificate (RFC 8705 §5). A place that
 * is not at one of the origins of keys, or is http on another machine, counts as none: tokens and the client's secret
 * would go there.
 */
function introspectionPlaces(
  { introspection_endpoint: plain, mtls_endpoint_aliases: aliases }: JsonObject,
  { keyOrigins }: Pick<DiscoveryPlace, 'keyOrigins'>,
): MetadataState['introspection'] {
  return {
    url: placeAt(keyOrigins, plain),
    mtlsUrl: isJsonObject(aliases) ? placeAt(keyOrigins, aliases['introspection_endpoint']) : null,
  };
}

/** A URL of a document that is on one of these origins, over https or on this machine; `null` where it is not. */
function placeAt(origins: ReadonlySet<string>, written: JsonValue | undefined): string | null {
  const url = typeof written === 'string' ? httpUrl(written) : null;
  if (url === null || !origins.has(url.origin)) return null;
  return url.protocol === 'https:' || isLoopback(url.hostname) ? url.href : null;
}

/** An http URL without user and password, and without what follows `#`. */
function httpUrl(written: string): URL | null {
  const url = /^https?:\/\/[\x21-\x7e]+$/.test(written) && URL.canParse(written) ? new URL(written) : null;
  if (url === null || url.username !== '' || url.password !== '') return null;
  url.hash = '';
  return url;
}

/**
 * Reads where the keys are, and where it is asked about tokens. Refuses, in words, a document of another issuer, and
 * keys at a place that was not named.
 */
export function readMetadata(
  bytes: Uint8Array,
  place: Pick<DiscoveryPlace, 'issuer' | 'keyOrigins'>,
): Result<Metadata, MetadataFailure> {
  const document = readDocument(bytes, place.issuer);
  if (!document.ok) return document;
  const { keyOrigins } = place;
  const { jwks_uri: written } = document.value;
  if (typeof written !== 'string') {
    return refused('malformed', `the metadata names no place of keys: its jwks_uri is ${quote(written)}`);
  }
  const url = httpUrl(written);
  if (url === null) {
    return refused('malformed', `the metadata’s jwks_uri is no http URL: ${quote(written)}`);
  }
  if (!keyOrigins.has(url.origin)) {
    const allowed = [...keyOrigins].join(' ');
    return refused(
      'other_origin',
      `the metadata’s jwks_uri is at another origin: ${quote(url.origin)}; allowed are ${allowed}`,
    );
  }
  return accept({ keysUrl: url.href, introspection: introspectionPlaces(document.value, place) });
}

/** What a document says, so that a log line stays one line and short. */
function quote(value: JsonValue | undefined): string {
  if (value === undefined) return 'missing';
  if (typeof value !== 'string') return 'no text';
  const printable = value.slice(0, maxQuoted).replace(/[^\x20-\x7e]/g, '?');
  return `"${printable}"${value.length > maxQuoted ? '…' : ''}`;
}
