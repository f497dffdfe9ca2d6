/** The section that names credentials revoked before their time. */
import type { z } from 'zod';
import { whenRemoved } from '../schema/key-changes.js';
import { list, map, time, visibleText } from '../schema/scalars.js';
import { section } from '../schema/section.js';
import type { Revocations } from '../../decision/route/policy.js';

const revokedSchema = map({
  key_ids: list(visibleText(256), 0, 'key ids').prefault([]).describe('Key ids whose tokens are refused.'),
  subjects: list(visibleText(256), 0, 'subjects').prefault([]).describe('Subjects whose tokens are refused.'),
  token_ids: list(visibleText(256), 0, 'token ids').prefault([]).describe('`jti`s of tokens that are refused.'),
  issued_before: time()
    .nullable()
    .prefault(null)
    .describe(
      'Tokens issued before this time (RFC 3339) are refused, and so are those that do not say when they were issued.',
    ),
});

type RevokedFile = z.output<typeof revokedSchema>;

export const revoked = section({
  schema: revokedSchema.prefault({}).describe('Credentials that are revoked before they expire.'),
  compile: (file) => ({ revoked: compileRevoked(file) }),
  keys: {
    key_ids: { of: ({ revoked }) => revoked.keyIds, widens: whenRemoved },
    subjects: { of: ({ revoked }) => revoked.subjects, widens: whenRemoved },
    token_ids: { of: ({ revoked }) => revoked.tokenIds, widens: whenRemoved },
    issued_before: {
      of: ({ revoked }) => revoked.issuedBeforeS,
      widens: (from, to) => to === null || Number(to) < Number(from ?? 0),
    },
  },
});

function compileRevoked(file: RevokedFile): Revocations {
  return {
    issuer: null,
    keyIds: new Set(file.key_ids),
    subjects: new Set(file.subjects),
    tokenIds: new Set(file.token_ids),
    tokenDigests: new Set(),
    // Rounded up: `iat` counts whole seconds, and a token of the very second may have come before.
    issuedBeforeS: file.issued_before === null ? null : Math.ceil(Date.parse(file.issued_before) / 1_000),
  };
}
