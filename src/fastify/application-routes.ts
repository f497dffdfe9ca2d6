import type { FastifyInstance, RouteOptions } from 'fastify';
import type { ApplicationRoutes, ServedRoute } from '../config/checks/application-routes.js';
import { namesAuthorities } from '../proxy/node-internals/server.js';
import { examplesOf, policyPathsOf, readPattern } from './route-pattern.js';

/** A policy beside a route, with what it stands beside. */
interface OwnPolicy {
  readonly url: string;
  readonly methods: Set<string>;
  readonly said: object;
}

/** What the application serves, as far as it was told of. */
export interface RouteRegister {
  /** To be called for each route that is added. */
  readonly add: (route: RouteOptions) => void;
  /** All of it, with the routes that stood before anybody listened. */
  readonly collect: (mustBeCovered: boolean) => ApplicationRoutes;
  /** Name of the policy that stands beside a route; `null` where none does, `undefined` where it was not collected. */
  readonly policyOf: (method: string, url: string, said: unknown) => string | null | undefined;
  /** Whether a policy of this name stands beside a route. */
  readonly isOwn: (name: string) => boolean;
}

/** Methods that are refused whatever a route says. */
const neverServed: ReadonlySet<string> = new Set(['TRACE', 'TRACK', 'CONNECT']);

/** Keeps the routes of an application. */
export function createRouteRegister(app: FastifyInstance): RouteRegister {
  const served = new Map<string, { readonly method: string; readonly url: string; readonly own: OwnPolicy | null }>();
  const policies: OwnPolicy[] = [];
  let names = new Map<OwnPolicy, string>();
  let ownNames: ReadonlySet<string> = new Set();

  function add({ method, url, config }: RouteOptions): void {
    const said = config?.sallyport ?? null;
    for (const each of Array.isArray(method) ? method : [method]) {
      if (neverServed.has(each)) continue;
      const own = said === null ? null : ownPolicy(url, said);
      own?.methods.add(each);
      served.set(keyOf(each, url), { method: each, url, own });
    }
  }

  /** HEAD that Fastify adds to GET has the same. */
  function ownPolicy(url: string, said: object): OwnPolicy {
    const known = policies.find((policy) => policy.url === url && policy.said === said);
    if (known !== undefined) return known;
    const added = { url, methods: new Set<string>(), said };
    policies.push(added);
    return added;
  }

  return {
    add,
    collect: (mustBeCovered) => {
      for (const { method, url } of printedRoutes(app)) {
        if (!served.has(keyOf(method, url)) && !neverServed.has(method)) {
          served.set(keyOf(method, url), { method, url, own: null });
        }
      }
      names = new Map(policies.map((policy) => [policy, nameOf(policy)]));
      ownNames = new Set(names.values());
      return {
        mustBeCovered,
        verifiesCertificates: namesAuthorities(app.server),
        policies: policies.map((policy) => ({
          ...policy.said,
          name: nameOf(policy),
          methods: [...policy.methods],
          path: policyPathsOf(readPattern(policy.url)),
        })),
        served: [...served.values()].flatMap(({ method, url, own }): ServedRoute[] => {
          // Fastify adds HEAD to each GET: where no policy names it, nobody may use it.
          if (method === 'HEAD' && own === null && served.has(keyOf('GET', url))) return [];
          return [{ method, url, examples: examplesOf(readPattern(url)), policy: own === null ? null : nameOf(own) }];
        }),
      };
    },
    policyOf: (method, url, said) => {
      const own = served.get(keyOf(method, url))?.own ?? null;
      if (own === null) return said === undefined || said === null ? null : undefined;
      return own.said === said ? names.get(own) : undefined;
    },
    isOwn: (name) => ownNames.has(name),
  };
}

function keyOf(method: string, url: string): string {
  return `${method} ${url}`;
}

/** Unless it says its name itself: its methods and its path, in the characters of a name. */
function nameOf({ methods, url, said }: OwnPolicy): string {
  if ('name' in said && typeof said.name === 'string') return said.name;
  return `${[...methods].join('-')}:${url}`.replace(/[^A-Za-z0-9._:/-]/g, '_').slice(0, 128);
}

/** One line of the printed tree: how deep it is, its part of the path, and its methods where a route ends there. */
const printedLine = /^((?:│ {3}| {4})*)[├└]── (.*?)(?: \(([A-Z, -]+)\).*)?$/;

/**
 * Routes that the root of an application has, by the one list that Fastify gives: those that were added before the
 * plugin was loaded were told to nobody.
 */
function printedRoutes(app: FastifyInstance): readonly { readonly method: string; readonly url: string }[] {
  if (Object.getPrototypeOf(app) !== Object.prototype) return [];
  const trail: string[] = [];
  return app
    .printRoutes()
    .split('\n')
    .flatMap((line) => {
      const [, indent, part = '', methods = ''] = printedLine.exec(line) ?? [];
      if (indent === undefined) return [];
      trail.splice(indent.length / 4, Infinity, part === '(empty root node)' ? '' : part);
      const url = trail.join('');
      return methods
        .split(', ')
        .filter((method) => method !== '' && app.hasRoute({ method, url }))
        .map((method) => ({ method, url }));
    });
}
