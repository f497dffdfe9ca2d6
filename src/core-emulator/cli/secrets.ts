import { openToOthers } from '../../lib/secret-file-access.js';
import { stat } from 'node:fs/promises';
import { readText } from '../../adapters/files/read-file.js';
import { accept, refuse, type Result } from '../../lib/result.js';
import type { Dialect } from '../context.js';

/** The Core's own rule for the keys in its config. */
const apiKey = /^[A-Za-z0-9=-]{20,}$/;

const base64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

/** Hundreds of keys. */
const maxBytes = 64 * 1024;

/**
 * Reads API keys, one a line or between commas; refuses, in words that follow the path, a file that others may read.
 */
export async function readApiKeys(path: string): Promise<Result<readonly string[], string>> {
  const text = await readOwn(path);
  if (!text.ok) return text;
  const keys = text.value.split(/[\s,]+/).filter((key) => key !== '');
  if (keys.length === 0) return refuse('holds no key');
  if (!keys.every((key) => apiKey.test(key))) {
    return refuse('holds a key that is not 20 or more characters of A-Z, a-z, 0-9, = and -');
  }
  return accept(keys);
}

/** Reads the hosted provider's signer key, in base64; refuses as `readApiKeys` does. */
export async function readSignerKey(path: string): Promise<Result<Buffer, string>> {
  const text = await readOwn(path);
  if (!text.ok) return text;
  return signerKeyOf(text.value.trim());
}

/**
 * Variables by which the images of the Core get the signer key: the specification's (docs/specification.md 4.4), and
 * SuperTokens'.
 */
const signerKeyVariables = {
  seed: 'HOSTED_PASSWORD_HASHING_SIGNER_KEY',
  supertokens: 'FIREBASE_PASSWORD_HASHING_SIGNER_KEY',
} as const;

/**
 * The hosted provider's signer key as the environment has it, in base64; `null` where it has none. Refuses in words
 * that name the variable.
 */
export function signerKeyIn(
  env: Readonly<Record<string, string | undefined>>,
  dialect: Dialect,
): Result<Buffer | null, string> {
  const variable = signerKeyVariables[dialect];
  const value = env[variable];
  if (value === undefined || value === '') return accept(null);
  const key = signerKeyOf(value.trim());
  return key.ok ? key : refuse(`${variable} ${key.error}`);
}

function signerKeyOf(key: string): Result<Buffer, string> {
  return key === '' || !base64.test(key)
    ? refuse('does not hold a signer key in base64')
    : accept(Buffer.from(key, 'base64'));
}

async function readOwn(path: string): Promise<Result<string, string>> {
  const text = await readText(path, { maxBytes });
  if (!text.ok) return text;
  const problem = openToOthers((await stat(path)).mode);
  return problem === null ? text : refuse(problem);
}
