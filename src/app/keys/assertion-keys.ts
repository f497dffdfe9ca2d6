import { randomBytes } from 'node:crypto';
import { readAssertionKeys, signAssertion, type AssertionKey } from '../../adapters/assertion-signer.js';
import type { AssertionSettings } from '../../config/types.js';
import { assertionClaims, type AssertedRequest } from '../../decision/token/assertion.js';
import { accept, refuse, type Result } from '../../lib/result.js';
import type { Clock, Files, FileWatch, Log } from '../../ports/system.js';
import { warnOfExposure } from '../config/named-files.js';
import { startFailure, type StartFailure } from '../start-failure.js';

/** The key file of a config, read. */
export interface AssertionFile {
  readonly path: string;
  readonly digest: string;
  readonly keys: readonly AssertionKey[];
}

/** The keys in use while the proxy runs. */
export interface Assertions {
  /** Takes the keys of a new config; `null` where it asks for no assertion. */
  readonly use: (file: AssertionFile | null) => void;
  /** The header for one request: its name and value. */
  readonly headers: (request: AssertedRequest, settings: AssertionSettings) => readonly string[];
  /** The public keys, as a JWKS; `null` where there are none. */
  readonly jwks: () => string | null;
  readonly close: () => void;
}

interface AssertionsDeps {
  readonly files: Files;
  readonly clock: Clock;
  readonly log: Log;
  /** Milliseconds between two looks at the key file. */
  readonly intervalMs?: number;
}

/**
 * How long a replaced key stays published, milliseconds: an assertion is a minute old at most, and an upstream's clock
 * a minute behind ours.
 */
export const publishedAfterMs = 60_000 + 60_000;

/** Keys of a few hundred bytes each. */
const maxFileBytes = 64 * 1024;

const idBytes = 16;

/** Reads a key file. */
export async function readAssertionFile(
  { keyFile }: AssertionSettings,
  files: Files,
): Promise<Result<AssertionFile, StartFailure>> {
  const text = await files.read(keyFile, { maxBytes: maxFileBytes });
  if (!text.ok) return refuse(startFailure('unreadable', `${keyFile}: ${text.error}`));
  const keys = readAssertionKeys(text.value);
  return keys.ok
    ? accept({ path: keyFile, digest: files.digest(text.value), keys: keys.value })
    : refuse(startFailure('invalid', `${keyFile}: ${keys.error}`));
}

/**
 * Signs with the first key of the file, and takes it up when it changes. A key that was replaced stays published for a
 * while.
 */
export function createAssertions(
  first: AssertionFile | null,
  { files, clock, log, intervalMs }: AssertionsDeps,
): Assertions {
  let keys: readonly AssertionKey[] = [];
  /** Until when keys that are gone are published, by their id. */
  const gone = new Map<string, { readonly jwk: AssertionKey['jwk']; readonly untilMs: number }>();
  let path: string | null = null;
  let watch: FileWatch | null = null;
  use(first);

  function use(file: AssertionFile | null): void {
    replace(file?.keys ?? []);
    if (file === null || file.path !== path) {
      watch?.close();
      watch =
        file === null
          ? null
          : files.watch(file.path, changed, {
              digest: file.digest,
              maxBytes: maxFileBytes,
              intervalMs,
            });
      path = file?.path ?? null;
    } else watch?.loaded(accept(file.digest));
  }

  function changed(content: Result<string, string>): void {
    const read = content.ok ? readAssertionKeys(content.value) : content;
    if (!read.ok) {
      log.warn('the assertion keys were not reloaded; the old ones stay in use', {
        problem: `${path ?? ''}: ${read.error}`,
      });
      return;
    }
    replace(read.value);
    log.info('the assertion keys were reloaded', { key_ids: read.value.map(({ keyId }) => keyId) });
    if (path !== null) warnOfExposure(path, files, log);
  }

  function replace(next: readonly AssertionKey[]): void {
    for (const { keyId, jwk } of keys) gone.set(keyId, { jwk, untilMs: clock.monotonic() + publishedAfterMs });
    for (const { keyId } of next) gone.delete(keyId);
    keys = next;
  }

  return {
    use,
    headers: (request, settings) => {
      const [key] = keys;
      // A request that began before a reload took the assertion away goes out without one.
      if (key === undefined) return [];
      return [
        settings.header,
        signAssertion(key, assertionClaims(request, settings, clock.now(), randomBytes(idBytes).toString('base64url'))),
      ];
    },
    jwks: () => {
      for (const [keyId, { untilMs }] of gone) if (untilMs <= clock.monotonic()) gone.delete(keyId);
      const published = [...keys, ...gone.values()].map(({ jwk }) => jwk);
      return published.length === 0 ? null : JSON.stringify({ keys: published });
    },
    close: () => watch?.close(),
  };
}
