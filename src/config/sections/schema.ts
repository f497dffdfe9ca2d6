/**
 * The config file: the one source of its types, defaults, units and reference text. `config.schema.json` and
 * `docs/configuration.md` are generated from it.
 */
import { z } from 'zod';
import { identitySchema } from './identity.js';
import { issuerName, issuerSchema, revokedSchema } from './issuers.js';
import { adminSchema, listenSchema, logSchema, probesSchema, reloadSchema, shutdownSchema } from './listen.js';
import { routeSchema } from './routes.js';
import { limitsSchema } from './limits.js';
import { list, map, size, word } from './scalars.js';
import { sessionsSchema } from './sessions.js';
import { storeSchema } from './store.js';
import { receiverSchema, upstreamSchema } from './upstream.js';

/** Sections that are read one by one, so that a problem in one does not hide those of another. */
export const sections = {
  listen: listenSchema.describe('Where callers are served. Read once, at start.'),
  admin: adminSchema.prefault({}).describe('The operators’ listener. Read once, at start.'),
  probes: probesSchema
    .nullable()
    .prefault(null)
    .describe('A further listener for those who may not reach `admin`: kubelet, Prometheus. Read once, at start.'),
  upstream: upstreamSchema.describe('The upstream.'),
  receiver: receiverSchema.prefault({}).describe('What is known of the upstream.'),
  issuers: z
    .record(issuerName, issuerSchema, 'a map of issuers')
    .prefault({})
    .describe('Whose tokens count, by a name of your choice.'),
  token_cache: size('64KiB', '1GiB')
    .nullable()
    .prefault('32MiB')
    .describe(
      'Memory for tokens that were verified, so that one that comes again costs no signature; null verifies each one each time. Policy and ' +
        'revocation are judged for each request all the same.',
    ),
  sessions: sessionsSchema
    .nullable()
    .prefault(null)
    .describe('Where sessions of users come from. Required where a route accepts them. Read once, at start.'),
  identity: identitySchema.prefault({}).describe('What the upstream learns of the caller.'),
  store: storeSchema
    .nullable()
    .prefault(null)
    .describe('Where reservations are kept. Required where a route reserves. Read once, at start.'),
  revoked: revokedSchema.prefault({}).describe('Credentials withdrawn before their time.'),
  shutdown: shutdownSchema.prefault({}).describe('How a stop goes. `/readyz` fails from its beginning.'),
  log: logSchema.prefault({}).describe('What is logged.'),
  reload: reloadSchema
    .prefault({})
    .describe('When an edit of this file counts. See [operations.md](operations.md#changing-the-config).'),
  limits: limitsSchema
    .nullable()
    .prefault(null)
    .describe(
      'What each caller, by its subject, may ask of all routes together that have no `limits` of their own. See [limits.md](limits.md).',
    ),
  mode: word('enforce', 'shadow')
    .prefault('enforce')
    .describe(
      '`shadow`: what would be answered 401 or 403 is logged and counted, and goes on without an identity. It holds for requests without a ' +
        'route, and for routes that do not say otherwise. See [shadow.md](shadow.md).',
    ),
  routes: list(routeSchema, 1, 'routes').describe('Who may do what. What no route allows is refused.'),
} as const;

/** A whole config file. */
export const configSchema = map(sections);
