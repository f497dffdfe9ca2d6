/** What a route says of writes that may come twice. */
import { z } from 'zod';
import { volatileFields } from '../../decision/idempotency/fingerprint.js';
import { createFieldRules } from '../../decision/http/header-rules.js';
import { whyNeverStored } from '../../decision/idempotency/stored-response.js';
import { duration, integer, list, map, size, text, word } from './scalars.js';

/** Statuses whose meaning is that nothing was done (RFC 9110 §15.5, RFC 6585 §4, RFC 8470 §5.2). */
const notAppliedStatuses: readonly number[] = [401, 403, 408, 421, 425, 429];

/** Fields that tell two requests apart whether or not a route lists them. */
const alwaysCompared: ReadonlySet<string> = new Set(['content-type', 'content-encoding']);

/** Under any config: names with an underscore may be allowed. */
const fieldRules = createFieldRules({ identityNames: [], underscoreFields: 'allow', http10: 'refuse' });

const fieldName = text(/^[A-Za-z0-9._-]+$/, 'the name of a header field', 64);

const comparedField = fieldName.superRefine((name, context) => {
  const why = whyNotCompared(name);
  if (why !== null) refuse(context, name, why, 'another field, such as If-Match');
});

const keptField = fieldName.superRefine((name, context) => {
  const why = whyNeverStored(name);
  if (why !== null) refuse(context, name, `is never kept: ${why}`, 'another field, such as X-Total-Count');
});

/** Names are scopes of keys, like those of routes. */
const operationName = text(
  /^[A-Za-z0-9][A-Za-z0-9._:/-]*$/,
  '1 to 128 letters, digits and `._:/-`, beginning with a letter or digit',
  128,
);

/** Whoever reads it later has to learn something from it. */
const reason = text(
  /^(?=.*\S)[^\x00-\x1f\x7f-\x9f]+$/,
  'why a write may run again: 1 to 500 characters in one line',
  500,
);

const mode = word('required', 'optional', 'none');

const settingsSchema = map({
  mode: mode.describe(
    '`required`: without a key the answer is 400. `optional`: reserved where a key is sent. `none`: no key counts.',
  ),
  because: reason
    .optional()
    .describe(
      'With `mode: none` on a route that writes: why a repeated write may run again. `check` warns of such a route until it says so.',
    ),
  retention: duration('1h', '31d').prefault('24h').describe('How long a result is kept, and its key taken.'),
  operation: operationName
    .optional()
    .describe(
      'Scope of a key: under another operation it is another key. Default: the route’s name. Routes may share one, which their keys share then.',
    ),
  fields: list(comparedField, 0, 'field names')
    .prefault([])
    .describe(
      'Header fields that tell two requests with one key apart, beside method, path, query, `Content-Type`, `Content-Encoding` and body.',
    ),
  store_headers: list(keptField, 0, 'field names')
    .prefault([])
    .describe(
      'Header fields of the answer that are kept, beside `Content-Type`, `Content-Encoding`, `Content-Language`, `Location`, `Content-Location`, ' +
        '`ETag`, `Last-Modified`, `Link` and `Retry-After`.',
    ),
  release_on: list(integer(400, 599), 0, 'statuses from 400 to 599')
    .prefault([...notAppliedStatuses])
    .describe('Statuses of the upstream that mean that nothing was done: the key is free again.'),
  receiver: word('plain', 'reports', 'deduplicates')
    .prefault('plain')
    .describe(
      'What the upstream adds: nothing; `Idempotency-Outcome` in its answers; or its own check of `Idempotency-Record`, so that a write in ' +
        'doubt may be sent again.',
    ),
  max_body: size('0B', '16MiB')
    .prefault('1MiB')
    .describe('Largest body of a reserved request, which is read whole. The route’s `max_body` holds as well.'),
  max_stored_response: size('0B', '4MiB')
    .prefault('256KiB')
    .describe('Largest body of an answer that is kept. A larger one is passed on and cannot be shown again.'),
});

/** A word, or a map that says more. */
export const idempotencySchema = z
  .union([mode, settingsSchema], 'required, optional, none, or a map with mode')
  .transform((value) => (typeof value === 'string' ? settingsSchema.parse({ mode: value }) : value))
  .meta({ allowed: '`required`, `optional`, `none`, or a map with `mode`' });

export type IdempotencyFile = z.output<typeof idempotencySchema>;

/** What holds on routes where only the token is reserved. */
export const noKeyReserved: IdempotencyFile = settingsSchema.parse({ mode: 'none' });

function whyNotCompared(name: string): string | null {
  const lower = name.toLowerCase();
  if (alwaysCompared.has(lower)) return 'is compared in any case';
  if (volatileFields.has(lower)) return 'differs between honest retries';
  return fieldRules.requestKind(name) === 'passed' ? null : 'is never passed on as it came';
}

function refuse(context: z.core.$RefinementCtx<string>, name: string, why: string, instead: string): void {
  context.addIssue({ code: 'custom', message: instead, params: { fault: `is ${JSON.stringify(name)}, which ${why}` } });
}
