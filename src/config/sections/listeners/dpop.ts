/** What of the listener says how proofs of possession of a key are taken (RFC 9449). */
import type { ParsedConfig } from '../../load/parse-sections.js';
import type { Report } from '../../load/report.js';
import { readUrl } from '../../schema/addresses.js';
import { z } from 'zod';
import { duration, filePath, list, map } from '../../schema/scalars.js';
import type { AbsolutePath } from '../../schema/section.js';

const originAllowed = 'an origin such as https://orders.example.com, without path';

const origin = z
  .string(originAllowed)
  .max(300, originAllowed)
  .refine((text) => readUrl(text)?.origin === text && /^https?:/.test(text), originAllowed)
  .meta({ allowed: originAllowed });

export const dpopSchema = map({
  origins: list(origin, 1, 'origins').describe(
    'Under which clients reach this service: `htu` of a proof has to be one of them and the path that is judged. `Host` says nothing.',
  ),
  max_age: duration('1s', '10m').prefault('60s').describe('How old a proof may be.'),
  clock_skew: duration('0ms', '60s').prefault('5s').describe('How far a client’s clock may be from ours.'),
  nonce_key_file: filePath()
    .nullable()
    .prefault(null)
    .describe(
      'File with keys for nonces, a line each: base64 or hex of 32 bytes or more. The first makes them, all are taken; proxies behind one address share the ' +
        'file. Proofs then have to repeat a nonce. Read again when it changes; nonces of a key that is gone are taken for seven minutes more.',
    ),
});

type DpopFile = z.output<typeof dpopSchema>;

export function compileDpop(
  file: DpopFile | null,
  absolute: AbsolutePath,
): {
  readonly origins: ReadonlySet<string>;
  readonly maxAgeMs: number;
  readonly clockSkewMs: number;
  /** `null` where no nonce is asked for. */
  readonly nonceKeyFile: string | null;
} | null {
  if (file === null) return null;
  return {
    origins: new Set(file.origins),
    maxAgeMs: file.max_age,
    clockSkewMs: file.clock_skew,
    nonceKeyFile: absolute(file.nonce_key_file),
  };
}

/** A proof counts once, which something has to remember. */
export function checkDpop({ listen, isPresent, rawValue }: ParsedConfig, report: Report): void {
  if ((listen?.value.dpop ?? null) === null) return;
  if (isPresent(['store']) && rawValue(['store']) !== null) return;
  report.error(
    ['listen', 'dpop'],
    'listen.dpop takes proofs that count once, and no store remembers them',
    'store: { redis: … }, or store: { memory: {} } where there is one process alone',
  );
}
