import type { Test } from 'tap';
import { startCore, decoded, jwtCall, publishedKeyIds, type CoreClient } from '../core-emulator/core-client.js';
import { until } from '../support/until.js';
import { startProxyProcess } from '../support/proxy-process.js';

/** So long does each dynamic key sign: two seconds of them it was published before. */
const rotateEveryMs = 4000;

/** Tokens live for less than their key stays published. */
const accessTokenValidityMs = 4000;
const validityS = 6;

export interface RotationRun {
  readonly requests: number;
  readonly keys: number;
  /** Whether to wait until the first key has left the set. */
  readonly toTheEnd: boolean;
}

interface Minted {
  readonly token: string;
  readonly keyId: string;
}

async function mint(core: CoreClient, validity: number): Promise<Minted> {
  const payload = {
    sub: 'checkout',
    aud: 'orders',
    source: 'microservice',
    token_type: 'service',
    permissions: ['orders:read'],
  };
  const answer = await core.post('/recipe/jwt', { ...jwtCall, payload, validity });
  return { token: String(answer.json()['jwt']), keyId: String(decoded(answer).header['kid']) };
}

/**
 * Requests go through a proxy while the Core's keys rotate: none is refused that may not be, and no token
 * passes once its key has left the set. Runs until so many requests were sent and so many keys have signed.
 */
export async function keyRotation(t: Test, { requests, keys, toTheEnd }: RotationRun): Promise<void> {
  const core = await startCore(t, { rotateEveryMs, accessTokenValidityMs });
  const proxy = await startProxyProcess(t, {
    config: {
      issuers: {
        core: {
          jwks_url: `${core.url}/auth/jwt/jwks.json`,
          jwks: { min_age: '100ms', max_age: '1s', cooldown: '200ms' },
        },
      },
    },
  });
  const ask = async (token: string): Promise<number> => {
    const response = await fetch(`http://127.0.0.1:${String(proxy.port)}/orders`, {
      headers: { authorization: `Bearer ${token}` },
    });
    await response.arrayBuffer();
    return response.status;
  };
  const early = await mint(core, 3600);
  const statuses = new Map<number, number>();
  const signed = new Set<string>();
  let sent = 0;
  const send = async (): Promise<void> => {
    while (sent < requests || signed.size < keys) {
      const { token, keyId } = await mint(core, validityS);
      signed.add(keyId);
      for (let count = 0; count < 20; count += 1) {
        sent += 1;
        const status = await ask(token);
        statuses.set(status, (statuses.get(status) ?? 0) + 1);
      }
    }
  };
  await Promise.all(Array.from({ length: 8 }, send));
  t.same(
    [...statuses.keys()],
    [200],
    `${String(sent)} requests under ${String(signed.size)} keys: ${JSON.stringify([...statuses])}`,
  );

  if (!toTheEnd) return;
  await until('the first key leaves the key set', async () => !(await publishedKeyIds(core)).includes(early.keyId));
  await until('the proxy has fetched the set without it', async () => (await ask(early.token)) === 401);
  for (let count = 0; count < 20; count += 1) t.equal(await ask(early.token), 401, 'and it does not come back');
  t.equal(await ask((await mint(core, validityS)).token), 200);
}
