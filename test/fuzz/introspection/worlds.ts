/** Configs with issuers that are asked about opaque tokens, and routes for their callers. */
import { once, pick, type Draw } from '../draw.js';
import type { PolicyIntrospection, PolicyIssuer } from '../model-policy.js';
import {
  identity,
  someAlgorithms,
  someKeys,
  somePermissions,
  someRequired,
  someRoutes,
  someSubject,
  type World,
  type WorldIssuer,
} from '../profiles/worlds.js';

export interface AskedWorldIssuer extends WorldIssuer {
  readonly introspection: PolicyIntrospection;
}

export interface AskedWorld extends World {
  /** All of them are asked; which of them, the beginning of a token says. */
  readonly issuers: readonly AskedWorldIssuer[];
  /** Where they are asked: a path for each. */
  readonly url: string;
  /** Whether no answer comes in time. */
  readonly isLate: boolean;
}

/** Where the issuers of a world are asked, and where the client's secret is. */
export interface AskedPlace {
  readonly url: string;
  readonly secretFile: string;
}

/** One or two issuers, perhaps with prefixes of their tokens that are alike. */
export function someAskedWorld(draw: Draw, place: AskedPlace): AskedWorld {
  const prefixes = pick(draw, [[''], ['v1.'], ['a.', 'b.'], ['to', 'tO'], ['e30.', 'x~/+'], ['']]);
  const isLate = once(draw, 25);
  const issuers = prefixes.map((prefix, index): AskedWorldIssuer => {
    const name = index === 0 ? 'one' : 'two';
    const introspection = someIntrospection(draw, place, name, prefix, isLate);
    const rules: PolicyIssuer = { ...someIssuer(draw, name), introspection };
    return { name, rules, introspection, ...someKeys(draw, rules, pick(draw, ['a', 'a', 'b'])) };
  });
  return {
    url: place.url,
    isLate,
    issuers,
    policy: {
      issuers: Object.fromEntries(issuers.map(({ name, rules }) => [name, rules])),
      routes: someRoutes(
        draw,
        issuers.map(({ name }) => name),
      ),
      sessions: null,
      underscores: 'drop',
      http10: 'refuse',
      identity,
      revoked: {
        key_ids: [],
        subjects: ['withdrawn'],
        token_ids: ['stolen'],
        issuedBeforeS: null,
      },
    },
  };
}

function someIssuer(draw: Draw, name: string): PolicyIssuer {
  return {
    issuer: `https://${name}.example.com`,
    profile: 'oauth',
    audience: pick(draw, ['orders', 'orders', ['orders', 'https://orders.example.com'], 'other']),
    clock_skew: pick(draw, ['5s', '0s', '60s']),
    max_lifetime: pick(draw, ['2h', '10m', '24h']),
    ...(once(draw, 4) ? { key_ids: pick(draw, [{ accept: ['k-*'] }, { accept: ['*'], reject: ['k-3'] }]) } : {}),
    ...(once(draw, 2) ? { algorithms: someAlgorithms(draw) } : {}),
    ...(once(draw, 3) ? { binding: pick(draw, ['none', 'none', 'require'] as const) } : {}),
    claims: { ...somePermissions(draw), ...someRequired(draw, 'oauth'), ...someSubject(draw) },
  };
}

function someIntrospection(
  draw: Draw,
  { url, secretFile }: AskedPlace,
  name: string,
  prefix: string,
  isLate: boolean,
): PolicyIntrospection {
  return {
    url: `${url}/${name}`,
    client_id: pick(draw, ['sallyport', 'sallyport', 'a:b%c+d&e=f', '"s"']),
    client_secret_file: secretFile,
    // Nobody's questions are too many here.
    unknown_per_second: 10_000,
    unknown_per_address: 10_000,
    timeout: isLate ? '40ms' : '20s',
    ...(prefix === '' ? {} : { token_prefix: prefix }),
    ...(once(draw, 3) ? { client_auth: 'client_secret_post' as const } : {}),
    ...(once(draw, 2) ? { answer: pick(draw, ['jwt', 'jwt', 'jwt', 'json'] as const) } : {}),
    ...(once(draw, 3) ? { require_aud: false } : {}),
    ...(once(draw, 4) ? { has_jti: true } : {}),
    ...(once(draw, 2) ? { max_bytes: pick(draw, ['1KiB', '2KiB', '16KiB']) } : {}),
  };
}
