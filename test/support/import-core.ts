/** A Core emulator as a process of its own, which keeps its users through kills, and what it says of them. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { startCommand, type StartedCommand } from '../cli/started-command.js';
import { publishedSample, type Proof } from './import-users.js';
import type { Scope } from './scope.js';
import { tempDir } from './temp-dir.js';

export interface ImportCore {
  readonly dir: string;
  readonly url: string;
  /** File for `--curl-config`. */
  readonly curlConfig: string;
  /** SIGKILL, then a new process over the same data and port. */
  readonly killAndRestart: () => Promise<void>;
  readonly kill: () => Promise<void>;
  readonly restart: (options?: CoreOptions) => Promise<void>;
  readonly count: () => Promise<number>;
  /** Whether the user is there as the proof says; password users by signing in. */
  readonly holds: (proof: Proof) => Promise<boolean>;
}

export interface CoreOptions {
  readonly faults?: string;
  readonly dialect?: 'seed' | 'supertokens';
  /** Whether it has the hosted provider's signer key; yes unless this says so. */
  readonly signerKey?: false;
}

const apiKey = 'a-key-for-tests-0123456789';

export async function startImportCore(t: Scope, options: CoreOptions = {}): Promise<ImportCore> {
  const dir = tempDir(t);
  const secret = (name: string, text: string): string => {
    writeFileSync(join(dir, name), text, { mode: 0o600 });
    return join(dir, name);
  };
  const keys = secret('api-keys', `${apiKey}\n`);
  const signer = secret('signer-key', `${publishedSample.signerKey}\n`);
  let port = '0';
  let running: StartedCommand;
  const start = async ({ faults, dialect, signerKey }: CoreOptions): Promise<string> => {
    running = startCommand(t, [
      'core',
      '--port',
      port,
      '--data',
      join(dir, 'core.data'),
      '--api-keys-file',
      keys,
      ...(signerKey === false ? [] : ['--signer-key-file', signer]),
      ...(faults === undefined ? [] : ['--faults', faults]),
      ...(dialect === undefined ? [] : ['--dialect', dialect]),
    ]);
    const [, url = ''] = await running.says(/^core {2}(\S+)$/m);
    port = new URL(url).port;
    return url;
  };
  const kill = async (): Promise<void> => {
    running.signal('SIGKILL');
    await running.exited;
  };
  const url = await start(options);
  const ask = async (path: string, rid: string, body?: object, version = '2.16'): Promise<Record<string, unknown>> => {
    const headers = { 'api-key': apiKey, 'cdi-version': version, rid, 'content-type': 'application/json' };
    // Faults are for those who import: who checks asks again.
    for (let attempt = 1; ; attempt += 1) {
      const answer = await fetch(
        `${url}${path}`,
        body === undefined ? { headers } : { method: 'POST', headers, body: JSON.stringify(body) },
      ).catch(() => null);
      if (answer?.status === 200) return (await answer.json()) as Record<string, unknown>;
      if (attempt === 20) throw new Error(`${path} is answered with ${String(answer?.status)}`);
    }
  };
  return {
    dir,
    url,
    kill,
    curlConfig: secret('curl.cfg', `url = "${url}/recipe/jwt"\nheader = "api-key: ${apiKey}"\n`),
    restart: async (other = options) => {
      await start(other);
    },
    killAndRestart: async () => {
      await kill();
      await start(options);
    },
    count: async () => Number((await ask('/users/count', ''))['count']),
    holds: async (proof) => {
      if (proof.kind === 'password') {
        return (
          (await ask('/recipe/signin', 'emailpassword', { email: proof.email, password: proof.password }))['status'] ===
          'OK'
        );
      }
      if (proof.kind === 'third_party') {
        const { thirdPartyId, thirdPartyUserId, email, isVerified } = proof;
        const query = new URLSearchParams({ thirdPartyId, thirdPartyUserId, doUnionOfAccountInfo: 'false' });
        const answer = await ask(`/users/by-accountinfo?${query.toString()}`, '', undefined, '4.0');
        const users = answer['users'] as readonly { readonly loginMethods: readonly object[] }[];
        const [method] = users[0]?.loginMethods ?? [];
        return users.length === 1 && isDeepStrictEqual({ email, verified: isVerified }, pick(method));
      }
      const query = proof.email === null ? { phoneNumber: proof.phoneNumber ?? '' } : { email: proof.email };
      const { status, user } = await ask(`/recipe/user?${new URLSearchParams(query).toString()}`, 'passwordless');
      const found = (user ?? {}) as Record<string, unknown>;
      return (
        status === 'OK' &&
        (found['email'] ?? null) === proof.email &&
        (found['phoneNumber'] ?? null) === proof.phoneNumber
      );
    },
  };
}

function pick(method: object | undefined): object {
  const { email, verified } = (method ?? {}) as Record<string, unknown>;
  return { email, verified };
}
