/** Tokens by the million: signed once, in the system's folder for temporary files, and used again while they last. */
import {
  appendFileSync,
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  readSync,
  readdirSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { readRsaKey, rsaKey, type RsaKey } from '../support/keys.js';
import { batchSize, mintBatch } from './token-supply.js';

/** One token a line, all of one length. */
export interface TokenFile {
  readonly path: string;
  /** Of a token, without the end of its line. */
  readonly tokenBytes: number;
  readonly count: number;
}

export interface MintedFile {
  readonly key: RsaKey;
  readonly tokens: TokenFile;
}

export interface TokenFileSettings {
  readonly dir: string;
  readonly count: number;
  readonly nowS: number;
  /** Told how many there are, and how many are wanted. */
  readonly onProgress?: (made: number, count: number) => void;
}

/** The longest life that a config can accept is a day. */
const lifetimeS = 86_000;
/** So long has a run to be able to use them. */
const leastS = 3 * 3600;

/**
 * Signs what is missing of so many tokens. What an earlier run left is used, as far as it went, while it is good for
 * hours.
 */
export async function mintTokenFile({ dir, count, nowS, onProgress }: TokenFileSettings): Promise<MintedFile> {
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  const expiresAtS = keptExpiry(dir, nowS) ?? begin(dir, nowS + lifetimeS);
  const key = readRsaKey(readFileSync(join(dir, `${String(expiresAtS)}.pem`), 'utf8'));
  const path = join(dir, `${String(expiresAtS)}.tokens`);
  const [first = ''] = await mintBatch(key, 0, 1, expiresAtS);
  const tokenBytes = first.length;
  // A run that was ended in the middle of a line wrote less than a token.
  let made = existsSync(path) ? Math.floor(statSync(path).size / (tokenBytes + 1)) : 0;
  if (made > 0 && made < count) truncateSync(path, made * (tokenBytes + 1));
  while (made < count) {
    const batch = await mintBatch(key, made, Math.min(batchSize, count - made), expiresAtS);
    appendFileSync(path, batch.map((token) => `${token}\n`).join(''));
    made += batch.length;
    onProgress?.(made, count);
  }
  return { key, tokens: { path, tokenBytes, count } };
}

/** Reads tokens by their number. */
export function openTokens({ path, tokenBytes }: TokenFile): {
  readonly at: (index: number) => string;
  readonly close: () => void;
} {
  const file = openSync(path, 'r');
  const bytes = Buffer.alloc(tokenBytes);
  return {
    at: (index) => {
      readSync(file, bytes, 0, tokenBytes, index * (tokenBytes + 1));
      return bytes.toString('latin1');
    },
    close: () => closeSync(file),
  };
}

/** When the tokens that are kept end, if that is late enough; others are removed. */
function keptExpiry(dir: string, nowS: number): number | null {
  const kept = readdirSync(dir).flatMap((name) => (/^\d+\.pem$/.test(name) ? [Number(name.slice(0, -4))] : []));
  for (const expiresAtS of kept.filter((one) => one < nowS + leastS)) {
    for (const ending of ['pem', 'tokens']) rmSync(join(dir, `${String(expiresAtS)}.${ending}`), { force: true });
  }
  return kept.find((one) => one >= nowS + leastS) ?? null;
}

function begin(dir: string, expiresAtS: number): number {
  const pem = rsaKey().privateKey.export({ type: 'pkcs8', format: 'pem' });
  writeFileSync(join(dir, `${String(expiresAtS)}.pem`), pem, { mode: 0o600 });
  return expiresAtS;
}
