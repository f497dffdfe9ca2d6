/** Configs: route tables made at random, and the example with bytes changed. */
import { baseConfig } from '../support/proxy-process.js';
import { once, pick, several, type Draw } from './draw.js';
import { handshakeFields, sessionFields, someToken } from './heads.js';
import type { Tokens } from './keyring.js';
import type { Field } from './model-fields.js';
import type { Policy, PolicyRoute } from './model-policy.js';
import type { Head } from './model.js';
import { configOf, policies } from './policies.js';

const segments = ['a', 'b', '{x}', 'A', 'a%20b', '%C3%A9', '7', 'a-b', 'a.b', '{y}'];
const asked = ['a', 'b', 'A', 'a%20b', '%C3%A9', '%c3%a9', '7', 'a-b', 'a.b', '..', 'a;b', 'a%2Fb', '', 'c', '%61'];
const methods = ['GET', 'POST', 'HEAD', 'DELETE'];
const subjects = ['checkout', 'reporting', 'partner', 'migration'];
const permissions = ['orders:read', 'orders:write', 'orders:import'];

/** A policy with routes of a few segments, so that they overlap. */
export function somePolicy(draw: Draw): Policy {
  const base = pick(draw, policies);
  return {
    ...base,
    routes: Array.from({ length: 1 + draw.below(6) }, (_, index) =>
      someRoute(draw, `r${String(index)}`, base.sessions !== null),
    ),
  };
}

/** A request to one of the paths that such routes have, or nearly have. */
export function someAsk(draw: Draw, tokens: Tokens): Head {
  const target = `/${several(draw, 1 + draw.below(4), (one) => pick(one, asked)).join('/')}`;
  return {
    method: pick(draw, methods),
    target,
    version: '1.1',
    fields: [
      ['Host', 'sallyport.example'],
      ...someCredential(draw, tokens),
      ...(once(draw, 5) ? handshakeFields(draw) : []),
    ],
  };
}

function someCredential(draw: Draw, tokens: Tokens): readonly Field[] {
  if (once(draw, 4)) return sessionFields(draw, tokens);
  return once(draw, 8) ? [] : [['Authorization', `Bearer ${someToken(draw, tokens)}`]];
}

/** The YAML of a policy, whole. */
export function policyText(policy: Policy): string {
  return baseConfig({ ...configOf(policy), upstream: { url: 'http://127.0.0.1:3000' } });
}

/** A sound config with some of its text changed: lines swapped, doubled, moved in or out, and pieces of YAML put in. */
export function damagedText(draw: Draw, text: string): string {
  const lines = text.split('\n');
  for (let count = 1 + draw.below(3); count > 0; count--) {
    const at = draw.below(lines.length);
    const line = lines[at] ?? '';
    switch (draw.below(7)) {
      case 0:
        lines.splice(at, 1);
        break;
      case 1:
        lines.splice(at, 0, line);
        break;
      case 2:
        lines.splice(at, 1, `  ${line}`);
        break;
      case 3:
        lines.splice(at, 1, line.replace(/^ {2}/, ''));
        break;
      case 4:
        lines.splice(draw.below(lines.length), 0, line);
        break;
      case 5:
        lines.splice(at, 1, line.replace(/: .*/, `: ${pick(draw, values)}`));
        break;
      default: {
        const place = draw.below(line.length + 1);
        lines.splice(at, 1, line.slice(0, place) + pick(draw, pieces) + line.slice(place + draw.below(2)));
      }
    }
  }
  return lines.join('\n');
}

const pieces = [
  ':',
  '-',
  '#',
  '&a ',
  '*a',
  '<<: ',
  '!!js/function ',
  '? ',
  '| ',
  '> ',
  '"',
  "'",
  '{',
  '}',
  '[',
  ']',
  ',',
  '\t',
  '\0',
  '\uFEFF',
  '---\n',
  '...\n',
  '${env:HOME}',
  '${file:/etc/passwd}',
  '${env:',
  '\\',
  '%',
  '@',
  '`',
  '~',
  '\u2028',
  '\x85',
  'public',
  'access: public\n',
  '**',
  '/',
  '..',
  '0x1F',
  '1e3',
  'yes',
  'null',
  '!!binary ',
  'é',
  '\ud800',
];

const values = [
  'null',
  '[]',
  '{}',
  '""',
  '"*"',
  '["*"]',
  '-1',
  '0',
  '99999999999999999999',
  '1e400',
  '.inf',
  'true',
  'public',
  'allow',
  'none',
  '7d',
  '1PiB',
  'shadow',
  '/**',
  'http://evil',
];

function someRoute(draw: Draw, name: string, takesSessions: boolean): PolicyRoute {
  const path = `/${several(draw, 1 + draw.below(3), (one) => pick(one, segments)).join('/')}${pick(draw, ['', '', '', '/**', '/'])}`;
  const common = {
    name,
    path,
    methods: once(draw, 6) ? ['*'] : several(draw, 1 + draw.below(2), (one) => pick(one, methods)),
    idempotency: 'none' as const,
  };
  if (once(draw, 6)) return { ...common, access: 'public' };
  const pair = (one: Draw): { readonly subjects: readonly string[]; readonly permissions: readonly string[] } => ({
    subjects: [pick(one, subjects)],
    permissions: several(one, one.below(2), (two) => pick(two, permissions)),
  });
  return {
    ...common,
    ...(once(draw, 3) ? { any_of: several(draw, 2, pair) } : pair(draw)),
    ...(takesSessions && once(draw, 4)
      ? { accept: ['service', 'session'] as const, session: { claims: once(draw, 2) ? {} : { tId: 'public' } } }
      : {}),
    ...(once(draw, 4) ? { websocket: true as const, methods: ['GET'] } : {}),
    ...(once(draw, 5) ? { encoded_slashes: 'allow' as const } : {}),
    ...(once(draw, 5) ? { path_parameters: 'allow' as const } : {}),
    ...(once(draw, 5) ? { issuers: [pick(draw, ['core', 'partner'])] } : {}),
  };
}
