/** Says what of a request as such is refused: its target, its headers, its body. */
import { maxTokenBytes } from '../../decision/token/compact-jws.js';
import type { Reason } from '../../decision/denial.js';
import { maxKeyCharacters } from '../../decision/idempotency/key.js';
import { maxHeaders, readHeaders } from '../../decision/http/request-headers.js';
import { headerBytes } from '../../decision/http/request-head.js';
import { readTarget } from '../../decision/http/request-target.js';
import { unremovableIn } from '../../proxy/decide/plan-decision.js';
import type { Explained } from './explanation.js';
import { secretHeaders } from './headers.js';

/** What callers wrote; longer texts are cut. */
const maxShown = 120;

/** The least head that is sound, to try one header at a time. */
const soundHead = ['Host', 'sallyport.invalid'];

/** Longest target and segments of it, to try them one by one. */
const anyLength = Number.MAX_SAFE_INTEGER;

export function targetWords({ head: { target }, activeConfig: { config } }: Explained): readonly string[] {
  return [`it has ${target.length} bytes; listen.max_target is ${config.listen.maxTargetBytes}`];
}

/** Names the first piece of the target that is refused by itself; some are refused for what the route says. */
export function malformedTargetWords({
  head: { target },
  ruling: { route },
  activeConfig: { config },
}: Explained): readonly string[] {
  const whole = `${JSON.stringify(target)}: nothing is normalised; what has two readings is refused`;
  const read = readTarget(target, anyLength);
  if (read.ok) {
    const { encodedSlash, pathParameters } = read.value;
    const which = [
      ...(encodedSlash ? ['%2F, and encoded_slashes'] : []),
      ...(pathParameters ? ['a semicolon, and path_parameters'] : []),
    ];
    const where = route === null ? 'no route that takes it' : `route ${route.name}`;
    if (which.length > 0) return which.map((each) => `a segment has ${each} is refuse on ${where}`);
    return [
      'a segment has an escape that could have been spelled otherwise, such as %40 for @: routers that leave it as it is find another route, or none',
    ];
  }
  if (!target.startsWith('/')) return [whole, 'it has to begin with /: the path alone, without scheme and host'];
  const question = target.indexOf('?');
  const path = question < 0 ? target : target.slice(0, question);
  const segments = path.split('/').slice(1);
  const isFaulty = (segment: string, index: number): boolean =>
    segment === '' ? index < segments.length - 1 : !readTarget(`/${segment}`, config.listen.maxTargetBytes).ok;
  const faulty = segments.find(isFaulty);
  const found =
    faulty === undefined
      ? 'its query has a character that is no visible ASCII, or #'
      : faulty === ''
        ? 'it has an empty segment: two slashes in a row'
        : `its segment ${JSON.stringify(faulty)} has two readings, or is none`;
  return [
    whole,
    `${found}; allowed are RFC 3986 path characters, encoded only where they have to be, and no segment that is ., .., empty or blank`,
  ];
}

export function methodWords({ head: { method } }: Explained, allowed: string): readonly string[] {
  return [`the method is ${JSON.stringify(method)}; ${allowed}`];
}

export function headerSizeWords({ head, activeConfig: { config } }: Explained): readonly string[] {
  return [
    `it has ${headerBytes(head)} bytes and ${head.rawHeaders.length / 2} headers; listen.max_header_bytes is ${config.listen.maxHeaderBytes}, and ` +
      `${maxHeaders} headers are read at most`,
  ];
}

/** The headers that are refused for this reason when they come alone, with what is accepted. */
export function headerWords(
  reason: Reason,
  allowed: string,
  { head, activeConfig: { headerRules } }: Explained,
): readonly string[] {
  const headers = pairsOf(head.rawHeaders).filter(([name, value]) => {
    const others = name.toLowerCase() === 'host' ? [] : soundHead;
    const alone = readHeaders({ ...head, rawHeaders: [...others, name, value] }, headerRules);
    return !alone.ok && alone.error.reason === reason;
  });
  return [
    `${headers.length === 0 ? 'its headers together are refused' : headers.map(shownHeader).join(', ')}; accepted: ${allowed}`,
  ];
}

/** A header that no name may have here, or that the proxy which asks cannot be told to remove. */
export function refusedFieldWords(explained: Explained): readonly string[] {
  const {
    head: { rawHeaders },
    activeConfig,
    ruling: { listener, steps },
  } = explained;
  if (listener === null || !steps.includes('route')) {
    return headerWords('field_refused', 'names without _; listen.underscore_fields is refuse', explained);
  }
  const name = unremovableIn(rawHeaders, activeConfig) ?? 'a header';
  return [`${name}: the upstream must not get it, and ${listener.settings.form} cannot be told to remove it`];
}

export function repeatedWords({ head }: Explained): readonly string[] {
  const names = pairsOf(head.rawHeaders).map(([name]) => name.toLowerCase());
  const repeated = new Set(names.filter((name, index) => names.indexOf(name) !== index));
  return [
    `these come more than once: ${[...repeated].join(', ')}; accepted: Authorization, Content-Length, Content-Type, Host, Idempotency-Key and ` +
      'Transfer-Encoding once',
  ];
}

/** Headers by name as they came, or that there are none. */
export function sentWords({ head }: Explained, names: readonly string[], allowed: string): readonly string[] {
  const sent = pairsOf(head.rawHeaders).filter(([name]) => names.includes(name.toLowerCase()));
  return [
    `${sent.length === 0 ? `there is no ${names.join(', ')}` : sent.map(shownHeader).join(', ')}; accepted: ${allowed}`,
  ];
}

export function bodyWords({ head, ruling: { route } }: Explained): readonly string[] {
  const sent = pairsOf(head.rawHeaders)
    .filter(([name]) => ['content-length', 'transfer-encoding'].includes(name.toLowerCase()))
    .map(shownHeader)
    .join(', ');
  return [
    `${head.method} comes with a body (${sent}); ${route === null ? 'no route has' : `route ${route.name} has not`} body: allow`,
  ];
}

export function bodySizeWords({ head, ruling: { route } }: Explained): readonly string[] {
  const length = pairsOf(head.rawHeaders).find(([name]) => name.toLowerCase() === 'content-length')?.[1] ?? 'the body';
  const reserved =
    route === null || route.reservation === null ? '' : `, and idempotency.max_body ${route.reservation.maxBodyBytes}`;
  return [`${length} bytes; max_body of the route is ${route?.maxBodyBytes ?? 0}${reserved}`];
}

export function keyWords({ head, ruling: { route } }: Explained): readonly string[] {
  const sent = pairsOf(head.rawHeaders).find(([name]) => name.toLowerCase() === 'idempotency-key')?.[1];
  const operation = route?.reservation?.operation ?? '';
  return [
    sent === undefined
      ? `there is no Idempotency-Key; operation ${operation} needs one, another for each write and the same for its retries, such as a UUID`
      : `Idempotency-Key is ${shownText(sent)}; accepted: 1 to ${maxKeyCharacters} letters, digits and ._:/+=~@-, or more of ASCII as a quoted string`,
  ];
}

export function originWords({ head, ruling: { route, principal } }: Explained): readonly string[] {
  const origin = pairsOf(head.rawHeaders).find(([name]) => name.toLowerCase() === 'origin')?.[1];
  const accepted =
    route === null || route.origins === null
      ? `with a ${principal?.kind ?? 'session'}, pages of the Host that is called`
      : `${[...route.origins].join(' ')}, as the route says`;
  return [`Origin is ${origin === undefined ? 'missing' : shownText(origin)}; accepted: ${accepted}`];
}

/** How a credential was sent, without a piece of it. */
export function credentialWords({ head, ruling: { route }, activeConfig: { sessions } }: Explained): readonly string[] {
  const value = pairsOf(head.rawHeaders).find(([name]) => name.toLowerCase() === 'authorization')?.[1];
  const takesSession = sessions !== null && (route === null || route.session !== null);
  const accepted = `Authorization: Bearer TOKEN${takesSession ? ', or the cookie of a session' : ''}`;
  if (value === undefined) return [`there is no Authorization; accepted: ${accepted}`];
  return [
    `Authorization: ${malformedWords(value)}; accepted: ${accepted}, one blank, at most ${maxTokenBytes} letters, digits and -._~+/=`,
  ];
}

/** A word is shown where it can be nothing but a scheme: a short one with something behind it. */
function malformedWords(value: string): string {
  const [scheme = '', ...rest] = value.split(' ');
  if (rest.length === 0) return 'it is one word, and no scheme with a token';
  if (!/^[A-Za-z][A-Za-z0-9-]{0,15}$/.test(scheme)) return 'it begins with no scheme';
  if (scheme.toLowerCase() !== 'bearer') return `its scheme is ${scheme}`;
  if (rest.length > 1) return 'it has more than one blank';
  return `its token has ${rest.join('').length} characters, or some that no token has`;
}

function pairsOf(rawHeaders: readonly string[]): readonly (readonly [string, string])[] {
  return rawHeaders.flatMap((name, index) => (index % 2 === 0 ? [[name, rawHeaders[index + 1] ?? ''] as const] : []));
}

function shownHeader([name, value]: readonly [string, string]): string {
  return secretHeaders.has(name.toLowerCase()) ? name : `${name}: ${shownText(value)}`;
}

function shownText(text: string): string {
  const quoted = JSON.stringify(text);
  return quoted.length <= maxShown ? quoted : `${quoted.slice(0, maxShown)}…`;
}
