import { readMethod } from '../decision/method.js';
import type { ConfigParts, Entry } from './parse.js';
import { nameOf, type Report } from './report.js';
import type { RouteFile } from './schema-routes.js';

/** Name of the metric label for requests without a route. */
const reservedName = 'none';

/** Checks what each route says, and its name against those of the others. */
export function checkRoutes(parts: ConfigParts, report: Report): void {
  const named = new Map<string, Entry<RouteFile>>();
  for (const entry of parts.routes) {
    if (entry.part === null) continue;
    const route = entry.part.value;
    checkName(entry, route, named, report);
    checkMethods(entry, route, parts, report);
    checkApprovals(entry, route, report);
    checkRouteIssuers(entry, route, parts, report);
  }
  const needing = parts.routes.find(({ part }) => part !== null && part.value.access === undefined);
  if (parts.issuersAreMap && parts.issuers.size === 0 && needing !== undefined) {
    const { path } = needing;
    report.error(path, `${nameOf(path)} needs credentials, and no issuer is configured`, 'at least one in issuers, or access: public');
  }
}

function checkName({ path }: Entry<RouteFile>, { name }: RouteFile, named: Map<string, Entry<RouteFile>>, report: Report): void {
  const at = [...path, 'name'];
  if (name === reservedName) report.error(at, `${nameOf(at)} is "none", which stands for no route`, 'another name');
  const other = named.get(name);
  if (other === undefined) named.set(name, { path, part: null });
  else report.error(at, `${nameOf(at)} is ${report.show(at)}, like that of the route in line ${report.lineOf([...other.path, 'name'])}`, 'a name of its own');
}

function checkMethods({ path }: Entry<RouteFile>, route: RouteFile, parts: ConfigParts, report: Report): void {
  const { methods } = route;
  const isEvery = methods.includes('*');
  if (isEvery && methods.length > 1) report.error([...path, 'methods'], `${nameOf(path)}.methods has * beside other methods`, '["*"], or methods by name');
  methods.forEach((method, index) => {
    const at = [...path, 'methods', index];
    if (methods.indexOf(method) < index) report.error(at, `${nameOf(at)} is ${report.show(at)}, which the list has before`, 'each method once');
    else if (method !== '*' && readMethod(method) !== null) report.error(at, `${nameOf(at)} is ${report.show(at)}, which is never let through`, 'another method');
  });
  const writes = isEvery || methods.includes('POST') || methods.includes('PATCH');
  if (writes && !parts.isWritten([...path, 'idempotency'])) {
    report.error(path, `${nameOf(path)}.idempotency is missing: a route for POST or PATCH has to say what a repeated request does`, 'none');
  }
}

function checkApprovals({ path }: Entry<RouteFile>, route: RouteFile, report: Report): void {
  const name = nameOf(path);
  const { subjects, permissions, any_of: pairs } = route;
  if (route.access === 'public') {
    for (const key of ['subjects', 'permissions', 'any_of', 'issuers'] as const) {
      if (route[key] !== undefined) report.keyError([...path, key], `${name}.${key} has no use beside access: public`, 'one of them');
    }
    report.warning([...path, 'access'], `route ${report.show([...path, 'name'])} is public: everybody is let through`);
    return;
  }
  if (pairs !== undefined) {
    for (const key of ['subjects', 'permissions'] as const) {
      if (route[key] !== undefined) report.keyError([...path, key], `${name}.${key} stands beside ${name}.any_of`, 'one of them');
    }
    pairs.forEach((pair, index) => warnWithoutPermissions([...path, 'any_of', index, 'permissions'], pair.permissions, path, report));
    return;
  }
  const missing = (['subjects', 'permissions'] as const).filter(key => route[key] === undefined);
  for (const key of missing) {
    const allowed = missing.length === 2 ? 'subjects and permissions, any_of, or access: public' : key === 'permissions' ? 'a list; [] where none is needed' : 'a list';
    report.error(path, `${name}.${key} is missing`, allowed);
  }
  if (permissions !== undefined && subjects !== undefined) warnWithoutPermissions([...path, 'permissions'], permissions, path, report);
}

function warnWithoutPermissions(at: readonly (string | number)[], permissions: readonly string[], path: readonly (string | number)[], report: Report): void {
  if (permissions.length > 0) return;
  report.warning(at, `route ${report.show([...path, 'name'])} asks for no permission: being an approved caller is enough`);
}

function checkRouteIssuers({ path }: Entry<RouteFile>, { issuers }: RouteFile, parts: ConfigParts, report: Report): void {
  issuers?.forEach((issuer, index) => {
    const at = [...path, 'issuers', index];
    if (parts.issuers.has(issuer) || !parts.issuersAreMap) return;
    report.error(at, `${nameOf(at)} is ${report.show(at)}, which is no issuer`, [...parts.issuers.keys()].join(', ') || 'a name in issuers');
  });
}
