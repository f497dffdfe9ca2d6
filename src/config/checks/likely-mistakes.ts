/**
 * What is legal, and hardly ever what was meant. Only what is as good as certain: a warning too many is one that nobody
 * reads.
 */
import type { ParsedConfig } from '../load/parse-sections.js';
import { isSecretVariable, nameOf, type Report } from '../load/report.js';
import type { Path, SourceNode } from '../load/source-tree.js';
import { readMethod } from '../../decision/http/request-head.js';
import type { KeyIdRules } from '../../decision/route/policy.js';
import { nearestName } from '../../lib/did-you-mean.js';
import { holdEveryAddress } from '../../lib/ip-ranges.js';

interface Check {
  readonly parts: ParsedConfig;
  readonly report: Report;
}

/** A parameter as Express, Rails and others write it. */
const colonParameter = /^:([A-Za-z_][A-Za-z0-9_-]*)$/;

const shellVariable = /^\$([A-Za-z_][A-Za-z0-9_]*)$/;
const kubernetesVariable = /\$\(([A-Za-z_][A-Za-z0-9_]*)\)/;

/** The ids of the Core's static keys begin so. */
const staticKeys = 's-';

const usualMethods = 'GET, HEAD, POST, PUT, PATCH, DELETE and others of the IANA registry';

/** Warns of what newcomers write who know another tool. */
export function checkLikelyMistakes(root: SourceNode, parts: ParsedConfig, report: Report): void {
  const check: Check = { parts, report };
  for (const { path } of parts.routes) checkRoute(path, check);
  for (const { path } of parts.issuers.values()) checkIssuer(path, check);
  for (const key of ['key_ids', 'subjects', 'token_ids']) checkNames(['revoked', key], check);
  checkTrust(check);
  checkTexts(root, [], report);
}

function checkRoute(path: Path, check: Check): void {
  for (const { at, value } of textsAt([...path, 'path'], check)) checkSegments(at, value, check);
  for (const { at, value } of textsAt([...path, 'methods'], check)) checkMethod(at, value, check);
  const pairs = check.parts.rawValue([...path, 'any_of']);
  const holders = Array.isArray(pairs) ? pairs.map((_, index) => [...path, 'any_of', index]) : [path];
  for (const holder of holders) for (const key of ['subjects', 'permissions']) checkNames([...holder, key], check);
}

function checkSegments(at: Path, text: string, { report }: Check): void {
  for (const segment of text.split('/')) {
    const name = colonParameter.exec(segment)?.[1];
    if (name === undefined) continue;
    const [what, instead] = report.mayShow(at)
      ? [JSON.stringify(segment), name]
      : ['a segment with a colon in front', 'name'];
    report.warning(
      at,
      `${nameOf(at)} has ${what}, which is a literal here`,
      `{${instead}}, which takes a segment; %3A${instead} for the literal`,
    );
  }
}

function checkMethod(at: Path, method: string, { report }: Check): void {
  if (method === '*' || registeredMethods.has(method) || readMethod(method) !== null) return;
  const near = report.mayShow(at) ? nearestName(method, [...registeredMethods]) : null;
  const hint = near === null ? '' : `, did you mean ${JSON.stringify(near)}?`;
  report.warning(at, `${nameOf(at)} is ${report.show(at)}, which is no registered method${hint}`, usualMethods);
}

/** Names that are compared to the letter. */
function checkNames(path: Path, check: Check): void {
  for (const { at, value } of textsAt(path, check)) {
    if (warnOfWildcard(at, value, check) || !value.includes(',')) continue;
    check.report.warning(
      at,
      `${nameOf(at)} is ${check.report.show(at)}, one name with a comma in it`,
      'an item for each name',
    );
  }
}

function warnOfWildcard(at: Path, value: string, { report }: Check): boolean {
  if (!value.includes('*')) return false;
  report.warning(
    at,
    `${nameOf(at)} is ${report.show(at)}, compared to the letter: there are no wildcards here`,
    'the names themselves',
  );
  return true;
}

function checkIssuer(path: Path, check: Check): void {
  checkIssuerAddress(path, check);
  for (const key of ['source', 'token_type']) checkNames([...path, key], check);
  const { report } = check;
  for (const { at, value } of textsAt([...path, 'audience'], check)) {
    if (warnOfWildcard(at, value, check) || !/[,;]|\shttps?:/.test(value)) continue;
    report.warning(
      at,
      `${nameOf(at)} is ${report.show(at)}, compared as one text`,
      'the one name that the tokens have in aud',
    );
  }
  const accepted = isCore(path, check) ? textsAt([...path, 'key_ids', 'accept'], check) : [];
  const reject = textsAt([...path, 'key_ids', 'reject'], check).map(({ value }) => value);
  for (const { at, value } of accepted) {
    if (!letsStaticKeysIn(value, reject)) continue;
    report.warning(
      at,
      `${nameOf(at)} is ${report.show(at)}, which lets the Core’s static keys in: they are never replaced, so that whoever ` +
        'has one signs tokens for ever',
      '["d-*"], or reject: ["s-*"] beside it',
    );
  }
}

/** Only of a Core it is known how it writes its address, and what it calls its keys. */
function isCore(path: Path, { parts }: Check): boolean {
  return (parts.rawValue([...path, 'profile']) ?? 'core') === 'core';
}

function checkIssuerAddress(path: Path, check: Check): void {
  const { parts, report } = check;
  const [issuer] = textsAt([...path, 'issuer'], check);
  const saysWhere = ['jwks_url', 'jwks_file'].some((key) => (parts.rawValue([...path, key]) ?? null) !== null);
  if (issuer !== undefined && /\/(?:jwks(?:\.json)?$|\.well-known\/)/.test(issuer.value)) {
    report.warning(
      issuer.at,
      `${nameOf(issuer.at)} is ${report.show(issuer.at)}, which looks like the address of keys or metadata`,
      'the iss of the tokens; the address in jwks_url',
    );
  } else if (issuer !== undefined && issuer.value.endsWith('/') && !saysWhere && isCore(path, check)) {
    report.warning(
      issuer.at,
      `${nameOf(issuer.at)} ends in a slash, and iss is compared to the letter: the Core writes none`,
      'the iss of the tokens; jwks_url beside it where theirs ends so',
    );
  }
  const [keys] = textsAt([...path, 'jwks_url'], check);
  if (keys !== undefined && /\/\.well-known\/(?:openid-configuration|oauth-authorization-server)\b/.test(keys.value)) {
    report.warning(
      keys.at,
      `${nameOf(keys.at)} is the address of metadata, which holds no keys`,
      'what it names as jwks_uri',
    );
  }
}

/**
 * Whether some id that begins like those of static keys matches the pattern, and none of what is rejected covers all of
 * these.
 */
function letsStaticKeysIn(pattern: string, reject: KeyIdRules['reject']): boolean {
  const start = pattern.endsWith('*') ? pattern.slice(0, -1) : pattern;
  if (!start.startsWith(staticKeys) && !(pattern.endsWith('*') && staticKeys.startsWith(start))) return false;
  const least = start.length > staticKeys.length ? start : staticKeys;
  return !reject.some((rejected) =>
    rejected.endsWith('*') ? least.startsWith(rejected.slice(0, -1)) : rejected === pattern,
  );
}

function checkTrust(check: Check): void {
  const path = ['listen', 'trust_forwarded'];
  const blocks = textsAt(path, check);
  const whole = blocks.filter(({ value }) => holdEveryAddress([value])).map(({ at }) => at);
  const together = whole.length === 0 && holdEveryAddress(blocks.map(({ value }) => value)) ? [path] : [];
  for (const at of [...whole, ...together]) {
    check.report.warning(
      at,
      `${nameOf(at)} is every address: whoever connects writes X-Forwarded-For`,
      'the proxies in front',
    );
  }
}

/** Variables as other tools write them: here they are texts like any other. */
function checkTexts(node: SourceNode, path: Path, report: Report): void {
  if (node.kind === 'map') for (const [key, entry] of node.entries) checkTexts(entry.node, [...path, key], report);
  if (node.kind === 'list') {
    for (const [index, item] of node.items.entries()) checkTexts(item, [...path, index], report);
  }
  if (node.kind !== 'scalar' || typeof node.value !== 'string' || node.written !== null || report.hasError(path)) {
    return;
  }
  const [, variable] = shellVariable.exec(node.value) ?? kubernetesVariable.exec(node.value) ?? [];
  if (variable !== undefined) {
    const isSecret = isSecretVariable(path.findLast((step) => typeof step === 'string') ?? '', variable);
    report.warning(
      path,
      `${nameOf(path)} is ${report.show(path)}, taken to the letter`,
      isSecret
        ? '"${file:PATH}" for a secret, with a file that others may not read'
        : `"\${env:${variable}}" for a variable of the environment`,
    );
  } else if (node.value.includes('{{') && node.value.includes('}}')) {
    report.warning(
      path,
      `${nameOf(path)} is ${report.show(path)}, a template that nobody filled in`,
      'what stands in its place',
    );
  }
}

/** The texts at a place that holds one, or a list of them; without those that are wrong anyway. */
function textsAt(path: Path, { parts, report }: Check): readonly { readonly at: Path; readonly value: string }[] {
  const written = parts.rawValue(path);
  const items = Array.isArray(written)
    ? written.map((value: unknown, index) => ({ at: [...path, index], value }))
    : [{ at: path, value: written }];
  return items.flatMap(({ at, value }) => (typeof value === 'string' && !report.hasError(at) ? [{ at, value }] : []));
}

/** The IANA registry of HTTP methods, and those without an entry that servers and clients in use know. */
export const registeredMethods: ReadonlySet<string> = new Set([
  'ACL',
  'BASELINE-CONTROL',
  'BIND',
  'CHECKIN',
  'CHECKOUT',
  'CONNECT',
  'COPY',
  'DELETE',
  'GET',
  'HEAD',
  'LABEL',
  'LINK',
  'LOCK',
  'MERGE',
  'MKACTIVITY',
  'MKCALENDAR',
  'MKCOL',
  'MKREDIRECTREF',
  'MKWORKSPACE',
  'MOVE',
  'OPTIONS',
  'ORDERPATCH',
  'PATCH',
  'POST',
  'PRI',
  'PROPFIND',
  'PROPPATCH',
  'PUT',
  'REBIND',
  'REPORT',
  'SEARCH',
  'TRACE',
  'UNBIND',
  'UNCHECKOUT',
  'UNLINK',
  'UNLOCK',
  'UPDATE',
  'UPDATEREDIRECTREF',
  'VERSION-CONTROL',
  // Caches, UPnP and Icecast; and QUERY, which is on its way into the registry.
  'M-SEARCH',
  'NOTIFY',
  'PURGE',
  'QUERY',
  'SOURCE',
  'SUBSCRIBE',
  'UNSUBSCRIBE',
]);
