/** The policy as the model reads it: the YAML of the routes as it stands, and nothing that was compiled from it. */

/** Who is approved: to the letter, or whose name begins so. */
export type PolicySubject = string | { readonly prefix: string };

/** A route in the words of the config. */
export interface PolicyRoute {
  readonly name: string;
  readonly methods: readonly string[];
  readonly path: string | readonly string[];
  readonly access?: 'public';
  readonly subjects?: readonly PolicySubject[];
  readonly permissions?: readonly string[];
  readonly any_of?: readonly {
    readonly subjects: readonly PolicySubject[];
    readonly permissions: readonly string[];
  }[];
  readonly issuers?: readonly string[];
  readonly body?: 'allow';
  readonly encoded_slashes?: 'allow';
  readonly path_parameters?: 'allow';
  readonly forward_authorization?: boolean;
  /** Bytes. */
  readonly max_body?: string;
  readonly idempotency?: 'none';
  /** Services alone where it is not said. */
  readonly accept?: readonly ('service' | 'session')[];
  readonly session?: { readonly claims: Readonly<Record<string, string>>; readonly forward_tokens?: boolean };
  readonly websocket?: true;
  readonly origins?: readonly string[];
  readonly client_certificates?: readonly string[];
}

export type ProfileName = 'core' | 'oauth' | 'kubernetes' | 'spiffe';

/** An issuer in the words of the config: what is left out is as the reference says. */
export interface PolicyIssuer {
  readonly profile?: ProfileName;
  /** Left out with `spiffe` only. */
  readonly issuer?: string;
  readonly audience: string | readonly string[];
  readonly source?: string | readonly string[];
  readonly token_type?: string | readonly string[];
  readonly clock_skew?: string;
  readonly max_lifetime?: string;
  readonly key_ids?: { readonly accept?: readonly string[]; readonly reject?: readonly string[] };
  readonly algorithms?: readonly string[];
  readonly token_typ?: readonly string[];
  readonly trust_domain?: string;
  readonly binding?: 'none' | 'accept' | 'require';
  readonly claims?: {
    readonly subject?: string;
    readonly permissions?: string;
    readonly require?: Readonly<Record<string, PolicyValue | readonly PolicyValue[]>>;
  };
  readonly introspection?: PolicyIntrospection;
}

/** How an issuer is asked about its opaque tokens, in the words of the config. */
export interface PolicyIntrospection {
  readonly url: string;
  readonly client_id: string;
  readonly client_auth?: 'client_secret_basic' | 'client_secret_post';
  readonly client_secret_file: string;
  readonly answer?: 'json' | 'jwt';
  readonly token_prefix?: string;
  readonly require_aud?: boolean;
  readonly has_jti?: boolean;
  readonly max_age?: string;
  readonly max_negative_age?: string;
  readonly timeout?: string;
  readonly max_bytes?: string;
  readonly unknown_per_second?: number;
  readonly unknown_per_address?: number;
}

/** What a claim may be asked to be. */
export type PolicyValue = string | number | boolean;

/** What the model has to know of a config. */
export interface Policy {
  readonly issuers: Readonly<Record<string, PolicyIssuer>>;
  readonly routes: readonly PolicyRoute[];
  /** Who makes sessions; `null` where nobody does. */
  readonly sessions: { readonly api_domain: string; readonly api_base_path: string } | null;
  readonly underscores: 'drop' | 'allow' | 'refuse';
  readonly http10: 'refuse' | 'allow';
  readonly identity: {
    readonly subject: string;
    readonly issuer: string;
    readonly permissions: string;
    readonly token_id: string;
    readonly kind: string;
    readonly client_certificate?: string;
  };
  readonly revoked: {
    readonly key_ids: readonly string[];
    readonly subjects: readonly string[];
    readonly token_ids: readonly string[];
    /** Seconds since the epoch. */
    readonly issuedBeforeS: number | null;
  };
}

/** Bytes of a size such as `64B` or `2KiB`; the default of the contract where there is none. */
export function bytesOf(size: string | undefined): number {
  const [, digits, unit] = /^(\d+)(B|KiB|MiB)$/.exec(size ?? '1MiB') ?? [];
  return Number(digits) * (unit === 'B' ? 1 : unit === 'KiB' ? 1024 : 1024 * 1024);
}

/** Seconds of a duration such as `5s`, `2m` or `2h`. */
export function secondsOf(duration: string): number {
  const [, digits, unit] = /^(\d+)(s|m|h)$/.exec(duration) ?? [];
  return Number(digits) * (unit === 's' ? 1 : unit === 'm' ? 60 : 3600);
}

/**
 * docs/contract.md 2: from left to right a literal beats `{x}` beats `**`; the route of the best path that takes this
 * request.
 */
export function findRoute(policy: Policy, method: string, segments: readonly string[]): PolicyRoute | null {
  let best: { readonly route: PolicyRoute; readonly rank: string } | null = null;
  for (const route of policy.routes) {
    if (!route.methods.includes(method) && !route.methods.includes('*')) continue;
    for (const path of typeof route.path === 'string' ? [route.path] : route.path) {
      const rank = rankOf(path, segments);
      // A route that names the method stands before one for all methods of the same path.
      const full = rank === null ? null : `${rank}${route.methods.includes(method) ? 'b' : 'a'}`;
      if (full !== null && (best === null || full > best.rank)) best = { route, rank: full };
    }
  }
  return best === null ? null : best.route;
}

/** How specific a path is where it takes these segments: text that sorts; `null` where it does not take them. */
function rankOf(path: string, segments: readonly string[]): string | null {
  const parts = path.split('/').slice(1);
  let rank = '';
  for (const [index, part] of parts.entries()) {
    const segment = segments[index];
    if (segment === undefined) return null;
    if (part === '**') return `${rank}1`;
    const isParameter = part.startsWith('{');
    if (isParameter ? segment === '' : segment !== decodeURIComponent(part)) return null;
    rank += isParameter ? '2' : '3';
  }
  return parts.length === segments.length ? rank : null;
}
