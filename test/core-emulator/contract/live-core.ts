import { readFileSync } from 'node:fs';
import { connectCore, startCore, type CoreClient, type Headers } from '../core-client.js';
import type { Scope } from '../../support/scope.js';
import { readVectors } from '../../vectors/corpus.js';
import type { CoreUnderTest } from './core-under-test.js';
import type { HostedSample } from './password-contract.js';

/** What the hosted provider publishes of one password. */
export const hostedSample = readVectors('hosted-scrypt-sample.json') as HostedSample;

/**
 * The Cores to hold to the contract: the one that `CORE_URL` names, with the header fields of the curl config file
 * `CORE_CURL_CONFIG` (`header = "api-key: …"`), or else the emulator in both dialects.
 */
export async function coresUnderTest(
  t: Scope,
  env: Readonly<Record<string, string | undefined>> = process.env,
): Promise<readonly CoreUnderTest[]> {
  const { CORE_URL: url, CORE_CURL_CONFIG: file } = env;
  if (url !== undefined && url !== '') {
    const core = connectCore(url.replace(/\/$/, ''), file === undefined ? {} : headersOf(readFileSync(file, 'utf8')));
    return [{ core, dialect: 'supertokens', hasSignerKey: await hasSignerKey(core) }];
  }
  const signerKey = Buffer.from(hostedSample.signer_key, 'base64');
  return Promise.all(
    (['seed', 'supertokens'] as const).map(async (dialect) => ({
      core: await startCore(t, { dialect, signerKey }),
      dialect,
      hasSignerKey: true,
    })),
  );
}

/** `header = "name: value"` lines; the URL of the file is another command's. */
function headersOf(text: string): Headers {
  const lines = [...text.matchAll(/^\s*-{0,2}header\s*[=:]?\s*"([\w-]+):\s*([^"\n]*)"/gm)];
  return Object.fromEntries(lines.map(([, name = '', value = '']) => [name.toLowerCase(), value.trim()]));
}

/** A Core without the signer key fails at the hash; with another one, it does so at the sign-in. */
async function hasSignerKey(core: CoreClient): Promise<boolean> {
  const { password_hash: hash, salt, mem_cost: cost, rounds, salt_separator: separator, password } = hostedSample;
  const email = 'hosted-scrypt-probe@example.com';
  const passwordHash = `$f_scrypt$${hash}$${salt}$m=${String(cost)}$r=${String(rounds)}$s=${separator}`;
  const headers = { 'cdi-version': '2.16' };
  const imported = await core.post(
    '/recipe/user/passwordhash/import',
    { email, passwordHash, hashingAlgorithm: 'firebase_scrypt' },
    headers,
  );
  if (imported.status !== 200) return false;
  return (await core.post('/recipe/signin', { email, password }, headers)).json()['status'] === 'OK';
}
