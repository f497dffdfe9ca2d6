/** The section that says what verified tokens may take in memory. */
import { reloaded } from '../schema/key-changes.js';
import { size } from '../schema/scalars.js';
import { section } from '../schema/section.js';

export const tokenCache = section({
  schema: size('64KiB', '1GiB')
    .nullable()
    .prefault('32MiB')
    .describe(
      'Memory for tokens that were verified, so that one that comes again costs no signature; null verifies each one each time. Policy and ' +
        'revocation are judged for each request all the same.',
    ),
  /** `null` where no token is remembered. */
  compile: (bytes) => ({ tokenCacheBytes: bytes }),
  keys: { '': reloaded },
});
