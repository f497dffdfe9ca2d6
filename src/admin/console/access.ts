/** Who may do what, as the config in force has it: callers and routes, for people. */
import type { CompiledConfig } from '../../config/types.js';
import { prefixWords } from '../../decision/route/approval.js';
import type { Route } from '../../decision/route/policy.js';

/** What `/console/access` answers. */
export interface Access {
  /** SHA-256 of the config that it is of, hex. */
  readonly config: string;
  readonly callers: readonly AccessCaller[];
  readonly routes: readonly AccessRoute[];
  /** Names of the issuers whose tokens count. */
  readonly issuers: readonly string[];
}

interface AccessCaller {
  /** A subject, how subjects begin, `anybody` or `a session`. */
  readonly name: string;
  readonly kind: 'subject' | 'prefix' | 'session' | 'anybody';
}

interface AccessRoute {
  readonly name: string;
  readonly methods: readonly string[];
  readonly paths: readonly string[];
  readonly access: 'public' | 'protected';
  readonly mode: 'enforce' | 'shadow';
  /** Names of the issuers whose tokens count here; `null` is all. */
  readonly issuers: readonly string[] | null;
  /** Whether its writes are reserved. */
  readonly reserves: boolean;
  /** Whether a caller has to show a certificate. */
  readonly asks_certificate: boolean;
  readonly grants: readonly AccessGrant[];
}

interface AccessGrant {
  /** Index of the caller in `callers`. */
  readonly caller: number;
  /** What the caller has to hold, all of it; of a session, claims. Of several grants for one caller each is enough. */
  readonly needs: readonly string[];
}

interface NamedGrant {
  readonly caller: AccessCaller;
  readonly needs: readonly string[];
}

/** Reads it off the routes. */
export function accessOf({ sha256, routes, issuers }: CompiledConfig): Access {
  const callers = new Map<string, { readonly index: number; readonly caller: AccessCaller }>();
  const indexOf = (caller: AccessCaller): number => {
    const key = `${caller.kind} ${caller.name}`;
    const known = callers.get(key) ?? { index: callers.size, caller };
    callers.set(key, known);
    return known.index;
  };
  const listed = routes.map((route) => ({
    name: route.name,
    methods: route.methods === null ? ['*'] : [...route.methods],
    paths: route.paths.map(({ text }) => text),
    access: route.access,
    mode: route.mode,
    issuers: route.issuers === null ? null : [...route.issuers],
    reserves: route.reservation !== null,
    asks_certificate: route.clientCertificates !== null,
    grants: grantsOf(route).map(({ caller, needs }) => ({ caller: indexOf(caller), needs })),
  }));
  return {
    config: sha256,
    callers: [...callers.values()].map(({ caller }) => caller),
    routes: listed,
    issuers: issuers.map(({ rules }) => rules.name),
  };
}

function grantsOf({ access, approvals, session }: Route): readonly NamedGrant[] {
  if (access === 'public') return [{ caller: { name: 'anybody', kind: 'anybody' }, needs: [] }];
  return [
    ...approvals.flatMap(({ subjects, prefixes, permissions }) => [
      ...[...subjects].map((name) => ({ caller: { name, kind: 'subject' as const }, needs: permissions })),
      ...prefixes.map((prefix) => ({
        caller: { name: prefixWords(prefix), kind: 'prefix' as const },
        needs: permissions,
      })),
    ]),
    ...(session === null
      ? []
      : [
          {
            caller: { name: 'a session', kind: 'session' as const },
            needs: session.claims.map(({ path, value }) => `${path.join('.')} = ${JSON.stringify(value)}`),
          },
        ]),
  ];
}
