import { systemClock } from '../../adapters/system/clock.js';
import type { ListenSettings } from '../../config/types.js';
import { isNonce, nonceAt, readNonceKeys, type NonceKeys } from '../../decision/binding/nonce.js';
import { accept, refuse, type Result } from '../../lib/result.js';
import type { ProofKeeper } from '../../ports/auth.js';
import type { ReservationParts } from '../../ports/idempotency.js';
import type { Files } from '../../ports/system.js';
import { createUsedProofs } from '../../proxy/auth/used-proofs.js';
import { invalidFile } from '../config/named-files.js';
import { startFailure, type StartFailure } from '../start-failure.js';

/** Some dozens of keys. */
const maxFileBytes = 4_096;

/** What proofs of possession are judged with while the proxy runs. */
interface OpenProofs {
  readonly keeper: ProofKeeper;
  /** The nonce that is handed out now; `null` where none is asked for. */
  readonly nonce: (() => string) | null;
}

/** Reads the keys of nonces; `null` where no file is named. */
export async function readNonceKeyFile(
  dpop: ListenSettings['dpop'],
  files: Files,
): Promise<Result<NonceKeys | null, StartFailure>> {
  const path = dpop?.nonceKeyFile ?? null;
  if (path === null) return accept(null);
  const text = await files.read(path, { maxBytes: maxFileBytes });
  if (!text.ok) return refuse(startFailure('unreadable', `${path}: ${text.error}`));
  const keys = readNonceKeys(text.value);
  return typeof keys === 'string' ? invalidFile(path, keys) : accept(keys);
}

/** Opens what knows of proofs; `null` where none are taken. */
export function openProofs(
  dpop: ListenSettings['dpop'],
  parts: Pick<ReservationParts, 'store' | 'replicas'> | null,
  keys: NonceKeys | null,
): OpenProofs | null {
  if (dpop === null || parts === null) return null;
  return {
    keeper: {
      use: createUsedProofs(parts, dpop.clockSkewMs),
      isNonce: keys === null ? null : (nonce) => isNonce(nonce, systemClock.now(), keys),
    },
    nonce: keys === null ? null : () => nonceAt(systemClock.now(), keys),
  };
}
