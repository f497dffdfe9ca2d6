/** What a listener for decisions cannot do of what the rest of the config asks for. */
import type { Entry, ParsedConfig } from '../../load/parse-sections.js';
import { nameOf, type Report } from '../../load/report.js';
import type { Path } from '../../load/source-tree.js';
import { removesNames } from '../../../decision/decide/allow.js';
import type { Form } from '../../../decision/decide/forms.js';
import { limitsOf, type Acceptance } from '../../../decision/decide/limits.js';
import { compileReservation } from '../routes/idempotency.js';
import type { RouteFile } from '../routes/routes.js';

/** One listener for a proxy that asks, as the file has it. */
interface Asked {
  readonly form: Form;
  readonly accept: readonly Acceptance[];
  readonly prefix: string | null;
}

/** Says what the listener at `base` cannot see to: such requests are refused there, or something is left out. */
export function checkDecideLimits(asked: Asked, base: Path, parts: ParsedConfig, report: Report): void {
  const { form, accept } = asked;
  const accepts = new Set(accept);
  for (const { path, parsed } of parts.routes) {
    if (parsed === null) continue;
    const { name, websocket, grpc, mode = parts.rawValue(['mode']) } = parsed.value;
    const once = mode === 'shadow' ? ' once it is enforced' : '';
    const route = { reservation: compileReservation(parsed.value), opensConnections: websocket || grpc !== undefined };
    for (const limit of limitsOf(route)) {
      if (accepts.has(limit.acceptance)) continue;
      report.warning(
        path,
        `route ${JSON.stringify(name)} ${limit.what}, which ${nameOf([...base, 'form'])} cannot see to: its requests are refused there${once}`,
        `${limit.acceptance} in ${nameOf([...base, 'accept'])}, or the sidecar in front of it`,
      );
    }
    checkRouteCredentials({ path, parsed }, { form, base }, parts, report);
  }
  checkRenewals(asked, base, parts, report);
  checkInFlight(base, parts, report);
  checkBindings(base, parts, report);
  const hasAssertion = (parts.rawValue(['identity', 'assertion']) ?? null) !== null;
  if (hasAssertion && !accepts.has('assertion')) {
    const at = ['identity', 'assertion'];
    report.warning(
      at,
      `an assertion holds for the bytes that were judged, and the proxy may change them: ${nameOf(base)} gives none`,
      `assertion in ${nameOf([...base, 'accept'])}, where it forwards method and target as they came`,
    );
  }
}

function checkRouteCredentials(
  { path, parsed }: Entry<RouteFile>,
  { form, base }: { readonly form: Form; readonly base: Path },
  { servesCallers }: ParsedConfig,
  report: Report,
): void {
  if (parsed === null) return;
  const { client_certificates: certificates, session, name } = parsed.value;
  // Without the sidecar it is an error of the route.
  if (certificates !== undefined && servesCallers) {
    report.warning(
      [...path, 'client_certificates'],
      `route ${JSON.stringify(name)} asks for certificates of callers, which nobody shows to ${nameOf(base)}: its requests are refused there`,
      'the sidecar in front of it',
    );
  }
  if (session !== null && !session.forward_tokens && !removesNames(form)) {
    report.warning(
      [...path, 'session'],
      `route ${JSON.stringify(name)} accepts sessions, whose cookies ${form} cannot be told to remove: the upstream gets them`,
      'session.forward_tokens: true where it may have them, or the sidecar in front of it',
    );
  }
}

/** Envoy's gRPC alone takes headers for the caller from an allow. With a prefix it is its HTTP service that asks. */
function checkRenewals({ form, prefix }: Asked, base: Path, { routes }: ParsedConfig, report: Report): void {
  const acceptsSessions = routes.some(({ parsed }) => (parsed?.value.session ?? null) !== null);
  if (!acceptsSessions || (form === 'envoy' && prefix === null)) return;
  report.warning(
    [...base, 'form'],
    `routes accept sessions, and ${form === 'envoy' ? 'the HTTP service of envoy' : form} does not pass on to the caller what a renewed session brings: ` +
      'it goes on with its old token, and the Core is asked about each request',
    'form: envoy with gRPC, or the sidecar in front of it',
  );
}

/** A decision is over long before the request that it is about. */
function checkInFlight(base: Path, parts: ParsedConfig, report: Report): void {
  const places = [['limits'], ...parts.routes.map(({ path }) => [...path, 'limits'])];
  for (const place of places) {
    const at = [...place, 'max_in_flight'];
    if ((parts.rawValue(at) ?? null) === null) continue;
    report.warning(
      at,
      `${nameOf(at)} counts a request until it is decided, and ${nameOf(base)} does not see its end: nobody is kept to it there`,
      'a limit of the proxy in front, requests_per_second, or the sidecar in front of it',
    );
  }
}

/** Of tokens that have to be bound, those to certificates are never proved to this listener. */
function checkBindings(base: Path, { issuers, listen }: ParsedConfig, report: Report): void {
  if (listen === null || listen.value.dpop !== null) return;
  for (const { path, parsed } of issuers.values()) {
    if (parsed?.value.binding !== 'require') continue;
    const at = [...path, 'binding'];
    report.warning(
      at,
      `${nameOf(at)} is require, and nothing can be proved to ${nameOf(base)}: every token of this issuer is refused there`,
      'listen.dpop, for tokens that are bound to keys',
    );
  }
}

/** What `listen` may say where it has no place: what requests are judged by, and what the listener is opened with. */
const keysWithoutPlace: ReadonlySet<string> = new Set([
  'dpop',
  'underscore_fields',
  'max_header_bytes',
  'max_target',
  'max_in_flight',
  'max_streams',
  'header_timeout',
  'keep_alive_timeout',
  'body_idle_timeout',
]);

/** Nothing listens without a place, and so the rest of `listen` would say nothing. */
export function checkListenWithoutPlace({ servesCallers, rawValue }: ParsedConfig, report: Report): void {
  const written = rawValue(['listen']) ?? null;
  if (servesCallers || typeof written !== 'object' || written === null) return;
  for (const key of Object.keys(written)) {
    if (keysWithoutPlace.has(key)) continue;
    const at = ['listen', key];
    report.keyError(
      at,
      `${nameOf(at)} has no use without listen.host and listen.port: only decide listens`,
      `the sidecar beside decide, or no other keys than ${[...keysWithoutPlace].join(', ')}`,
    );
  }
}
