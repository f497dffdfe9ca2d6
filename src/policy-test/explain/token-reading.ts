/** Reads a token that may be anything, to say what of it is wrong. Nothing is decided here. */
import { isCanonicalBase64Url } from '../../lib/base64url.js';
import {
  defaultMaxDepth,
  parseStrictJson,
  type JsonObject,
  type JsonProblem,
  type JsonValue,
} from '../../lib/strict-json.js';

export interface TokenReading {
  readonly bytes: number;
  /** Parts between dots. */
  readonly parts: number;
  readonly header: PartReading;
  readonly claims: PartReading;
  /** Whether the signature is spelled in the only way. What it is nobody is shown. */
  readonly isSignatureSpelled: boolean;
}

/** Header or claims: what they hold, or in words why that is not known. */
type PartReading = { readonly object: JsonObject } | { readonly object: null; readonly fault: string };

/** Texts of whoever wrote the token; longer ones are cut. */
const maxShown = 120;

const faults: Readonly<Record<JsonProblem, string>> = {
  encoding: 'is no UTF-8',
  too_deep: 'is nested too deeply',
  syntax: 'is no JSON',
  not_an_object: 'is JSON, but no object',
  duplicate_member: 'has a member twice',
  not_representable: 'has a number or a character that cannot be passed on',
};

export function readToken(token: string): TokenReading {
  const parts = token.split('.');
  const [header = '', claims = '', signature = ''] = parts;
  return {
    bytes: token.length,
    parts: parts.length,
    header: readPart(header),
    claims: readPart(claims),
    isSignatureSpelled: isCanonicalBase64Url(signature),
  };
}

/** A member of a header or a claim as it may be shown. */
export function shown(value: JsonValue | undefined): string {
  const text = value === undefined ? 'missing' : JSON.stringify(value);
  return text.length <= maxShown ? text : `${text.slice(0, maxShown)}…`;
}

function readPart(encoded: string): PartReading {
  if (encoded === '') return { object: null, fault: 'is empty' };
  if (!isCanonicalBase64Url(encoded)) return { object: null, fault: 'is no base64url without padding' };
  const read = parseStrictJson(Buffer.from(encoded, 'base64url'), { maxDepth: defaultMaxDepth });
  return read.ok ? { object: read.value } : { object: null, fault: faults[read.error] };
}
