import type { ParsedConfig } from '../../load/parse-sections.js';
import { nameOf, type Report } from '../../load/report.js';
import { checkPlace, isGrpcRoute, writtenMethods } from './grpc.js';
import { takesKeys } from './idempotency.js';
import { takesServiceTokens } from '../sessions.js';
import { isMap, type Path } from '../../load/source-tree.js';

/** Name of the metric label for requests without a route. */
const reservedName = 'none';

interface RouteCheck {
  readonly path: Path;
  readonly parts: ParsedConfig;
  readonly report: Report;
}

/**
 * Checks what each route says, and its name against those of the others. These rules read what is written, so that they
 * hold for routes in which something else is wrong too.
 */
export function checkRoutes(parts: ParsedConfig, report: Report): void {
  const named = new Map<string, Path>();
  for (const { path } of parts.routes) {
    const check: RouteCheck = { path, parts, report };
    if (!isMap(parts.rawValue(path))) continue;
    checkName(check, named);
    checkPlace(parts, path, report);
    checkMethods(check);
    checkWebSocket(check);
    checkApprovals(check);
    checkRouteIssuers(check);
  }
  const needing = parts.routes.find(
    ({ path }) =>
      isMap(parts.rawValue(path)) && !parts.isPresent([...path, 'access']) && takesServiceTokens(parts, path),
  );
  if (parts.issuersAreMap && parts.issuers.size === 0 && needing !== undefined) {
    const { path } = needing;
    report.error(
      path,
      `${nameOf(path)} needs credentials, and no issuer is configured`,
      'at least one in issuers, or access: public',
    );
  }
}

function checkName({ path, parts, report }: RouteCheck, named: Map<string, Path>): void {
  const at = [...path, 'name'];
  const name = parts.rawValue(at);
  if (typeof name !== 'string') return;
  if (name === reservedName) {
    report.error(at, `${nameOf(at)} is ${report.show(at)}, which stands for no route`, 'another name');
  }
  const other = named.get(name);
  if (other === undefined) named.set(name, at);
  else {
    report.error(
      at,
      `${nameOf(at)} is ${report.show(at)}, like that of the route in line ${report.lineOf(other)}`,
      'a name of its own',
    );
  }
}

function checkMethods({ path, parts, report }: RouteCheck): void {
  const methods = writtenMethods(parts, path);
  if (!Array.isArray(methods)) return;
  const isEvery = methods.includes('*');
  if (isEvery && methods.length > 1) {
    report.error(
      [...path, 'methods'],
      `${nameOf(path)}.methods has * beside other methods`,
      '["*"], or methods by name',
    );
  }
  methods.forEach((method, index) => {
    const at = [...path, 'methods', index];
    if (methods.indexOf(method) < index) {
      report.error(at, `${nameOf(at)} is ${report.show(at)}, which the list has before`, 'each method once');
    }
  });
  const writes = isEvery || methods.includes('POST') || methods.includes('PATCH');
  if (writes && !parts.isPresent([...path, 'idempotency'])) {
    report.error(
      path,
      `${nameOf(path)}.idempotency is missing: a route for ${isGrpcRoute(parts, path) ? 'gRPC calls' : 'POST or PATCH'} has to say what a repeated request does`,
      'required, optional or none',
    );
  }
}

/** The opening handshake is a GET, and has no response that could be kept. */
function checkWebSocket({ path, parts, report }: RouteCheck): void {
  if (isGrpcRoute(parts, path)) return;
  if (parts.rawValue([...path, 'websocket']) !== true) {
    const origins = [...path, 'origins'];
    if (parts.isPresent(origins)) {
      report.keyError(
        origins,
        `${nameOf(origins)} says who may open WebSockets, and the route takes none`,
        'websocket: true',
      );
    }
    return;
  }
  const methods = parts.rawValue([...path, 'methods']);
  if (Array.isArray(methods) && methods.some((method) => method !== 'GET')) {
    report.error(
      [...path, 'methods'],
      `${nameOf(path)} takes WebSockets and has other methods than GET`,
      '[GET]; a route of their own for other methods',
    );
  }
  const mode = parts.rawValue([...path, 'idempotency', 'mode']) ?? parts.rawValue([...path, 'idempotency']);
  const reserving = {
    idempotency: takesKeys(mode),
    single_use: parts.rawValue([...path, 'single_use']) === true,
  };
  for (const [key, isOn] of Object.entries(reserving)) {
    if (isOn) {
      report.keyError([...path, key], `${nameOf(path)}.${key} stands beside ${nameOf(path)}.websocket`, 'one of them');
    }
  }
}

function checkApprovals(check: RouteCheck): void {
  const { path, parts, report } = check;
  const name = nameOf(path);
  const has = (key: string): boolean => parts.isPresent([...path, key]);
  if (has('access')) {
    for (const key of ['subjects', 'permissions', 'any_of', 'issuers'].filter(has)) {
      report.keyError([...path, key], `${name}.${key} stands beside ${name}.access`, 'one of them');
    }
    if (parts.rawValue([...path, 'access']) === 'public') {
      report.note([...path, 'access'], `route ${report.show([...path, 'name'])} is public: no credential is asked for`);
    }
    return;
  }
  if (!takesServiceTokens(parts, path)) return;
  if (has('any_of')) {
    for (const key of ['subjects', 'permissions'].filter(has)) {
      report.keyError([...path, key], `${name}.${key} stands beside ${name}.any_of`, 'one of them');
    }
    const pairs = parts.rawValue([...path, 'any_of']);
    if (Array.isArray(pairs)) {
      pairs.forEach((_, index) => {
        noteWithoutPermissions(check, ['any_of', index, 'permissions']);
        notePrefixes(check, ['any_of', index, 'subjects']);
      });
    }
    return;
  }
  const missing = ['subjects', 'permissions'].filter((key) => !has(key));
  if (missing.length === 2) {
    report.error(
      path,
      `${name} does not say who is let through`,
      'subjects and permissions, any_of, or access: public',
    );
  } else {
    for (const key of missing) {
      report.error(
        path,
        `${name}.${key} is missing`,
        key === 'permissions' ? 'a list; [] where none is needed' : 'a list',
      );
    }
  }
  noteWithoutPermissions(check, ['permissions']);
  notePrefixes(check, ['subjects']);
}

/** Says whom a beginning of subjects allows: callers that nobody listed, and that may not be there yet. */
function notePrefixes({ path, parts, report }: RouteCheck, steps: Path): void {
  const subjects = parts.rawValue([...path, ...steps]);
  if (!Array.isArray(subjects)) return;
  const named = parts.rawValue([...path, 'issuers']);
  const issuers = Array.isArray(named) ? named.filter((name) => typeof name === 'string') : [...parts.issuers.keys()];
  subjects.forEach((_, index) => {
    const at = [...path, ...steps, index, 'prefix'];
    if (typeof parts.rawValue(at) !== 'string' || report.hasError(at)) return;
    const whose = issuers.length === 0 ? 'no issuer' : issuers.map((name) => `issuers.${name}`).join(' and ');
    report.note(
      at,
      `route ${report.show([...path, 'name'])} lets in every caller of ${whose} whose subject begins with ${report.show(at)}, ` +
        'whoever gets such a name later too',
    );
  });
}

function noteWithoutPermissions({ path, parts, report }: RouteCheck, steps: Path): void {
  const at = [...path, ...steps];
  const permissions = parts.rawValue(at);
  if (!Array.isArray(permissions) || permissions.length > 0) return;
  report.note(at, `route ${report.show([...path, 'name'])} asks for no permission: being an approved caller is enough`);
}

function checkRouteIssuers({ path, parts, report }: RouteCheck): void {
  const issuers = parts.rawValue([...path, 'issuers']);
  if (!Array.isArray(issuers) || !parts.issuersAreMap) return;
  issuers.forEach((issuer, index) => {
    const at = [...path, 'issuers', index];
    if (typeof issuer !== 'string' || parts.issuers.has(issuer)) return;
    report.error(
      at,
      `${nameOf(at)} is ${report.show(at)}, which is no issuer`,
      [...parts.issuers.keys()].join(', ') || 'a name in issuers',
    );
  });
}

/** A certificate that nobody verifies is one that anybody makes. */
export function checkClientCertificates(
  { routes, listen, isPresent, rawValue, applicationVerifies, servesCallers }: ParsedConfig,
  report: Report,
): void {
  const isVerified =
    applicationVerifies === true ||
    listen === null ||
    listen.value.client_cert_header ||
    (applicationVerifies === null && (listen.value.tls?.client_ca_file ?? null) !== null);
  for (const { path } of routes) {
    const at = [...path, 'client_certificates'];
    if (!isPresent(at)) continue;
    if (rawValue([...path, 'access']) === 'public') {
      report.keyError(at, `${nameOf(at)} stands beside access: public, which asks nobody who they are`, 'one of them');
    } else if (!servesCallers) {
      report.error(
        at,
        `${nameOf(at)} asks for certificates of callers, which nobody shows to decide: its requests would all be refused`,
        'the sidecar in front of the service, or tokens that are bound to keys',
      );
    } else if (!isVerified) {
      report.error(
        at,
        `${nameOf(at)} asks for certificates, and nobody verifies those of callers`,
        applicationVerifies === null
          ? 'listen.tls.client_ca_file, or listen.client_cert_header behind a proxy that does'
          : 'https: { requestCert: true, ca } of the application, or listen.client_cert_header behind a proxy that does',
      );
    }
  }
}
