import { stat } from 'node:fs/promises';
import { readText } from '../adapters/text-file.js';
import { accept, refuse, type Result } from '../decision/result.js';

/** The Core's own rule for the keys in its config. */
const apiKey = /^[A-Za-z0-9=-]{20,}$/;

/** Hundreds of keys. */
const maxBytes = 64 * 1024;

/** Reads API keys, one a line or between commas; refuses, in words that follow the path, a file that others may read. */
export async function readApiKeys(path: string): Promise<Result<readonly string[], string>> {
  const text = await readText(path, { maxBytes });
  if (!text.ok) return text;
  const mode = (await stat(path)).mode & 0o777;
  if ((mode & 0o077) !== 0) return refuse(`is open to others (mode ${mode.toString(8).padStart(4, '0')}); chmod 600 it`);
  const keys = text.value.split(/[\s,]+/).filter((key) => key !== '');
  if (keys.length === 0) return refuse('holds no key');
  if (!keys.every((key) => apiKey.test(key))) return refuse('holds a key that is not 20 or more characters of A-Z, a-z, 0-9, = and -');
  return accept(keys);
}
