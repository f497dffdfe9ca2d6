/** Callers of the soak: each sends, waits, and holds the answer to what the model says. */
import { randomUUID } from 'node:crypto';
import { request, sendRaw, type RawResponse, type RequestInput } from '../support/raw-client.js';
import type { ProxyProcess } from '../support/proxy-process.js';
import { attacksNow } from './soak-attacks.js';
import type { Asked, SoakModel } from './soak-model.js';
import type { SoakDeployment } from './soak-deployment.js';

/** One turn of a caller. */
export type Caller = () => Promise<void>;

const forged = { 'X-Auth-Subject': 'admin', X_Auth_Subject: 'admin', 'X-Auth-Permissions': 'orders:admin' };

export function soakCallers(deployment: SoakDeployment, model: SoakModel): Caller[] {
  const pick = (): ProxyProcess => deployment.proxies[Math.random() < 0.5 ? 0 : 1];
  const ask = async (what: string, input: RequestInput, proxy = pick()): Promise<Asked> => {
    const sentMs = performance.now();
    return { what, sentMs, answer: await request(proxy.port, input, { limitMs: 60_000 }) };
  };
  const bearer = (token: string): Record<string, string> => ({ Authorization: `Bearer ${token}` });

  /** What the receiver said it saw has to be the caller that we were, and nothing of what was forged. */
  const sees = (asked: Asked, subject: string): void => {
    const seen = (JSON.parse(asked.answer.text) as { subject?: unknown }).subject;
    if (seen !== subject) model.wrong(`${asked.what}: the receiver saw ${String(seen)} for ${subject}`);
  };

  async function read(): Promise<void> {
    const asked = await ask('read', { path: '/orders', headers: { ...forged, ...bearer(deployment.token()) } });
    if (model.judge(asked, ['200'])) sees(asked, 'checkout');
  }

  /**
   * A caller that is revoked and forgiven, and a route that is closed and opened. What changed meanwhile may have
   * counted or not.
   */
  async function underPolicy(): Promise<void> {
    const [before, changes] = [deployment.policy(), deployment.policies()];
    const isMole = Math.random() < 0.5;
    const claims = isMole ? { sub: 'mole' } : {};
    const asked = await ask(isMole ? 'mole' : 'closable', {
      path: isMole ? '/orders' : '/closable',
      headers: bearer(deployment.token(claims)),
    });
    const refused = isMole ? '401' : '403';
    if (before === null || deployment.policies() !== changes) model.judge(asked, ['200', refused]);
    else model.judge(asked, [(isMole ? before.revoked : before.closed) ? refused : '200']);
  }

  /** A write, its retries, and others beside it with the same key: one run, and one answer. */
  async function write(): Promise<void> {
    const key = randomUUID();
    const sinceMs = performance.now();
    const input = (): RequestInput => ({
      method: 'POST',
      path: '/orders',
      headers: { ...forged, ...bearer(deployment.token()), 'Idempotency-Key': key },
      body: `order ${key}`,
    });
    const atOnce = Math.random() < 0.3 ? 3 : 1;
    const first = await Promise.all(Array.from({ length: atOnce }, async () => ask('write', input())));
    const texts = new Set<string>();
    const take = (asked: Asked, right: readonly string[]): void => {
      if (model.judge(asked, right, sinceMs) && asked.answer.status === 201) texts.add(asked.answer.text);
    };
    for (const asked of first) take(asked, atOnce > 1 ? ['201', 'idempotency-in-progress'] : ['201']);
    const isDone = texts.size > 0;
    for (const proxy of deployment.proxies) {
      const retry = await ask('retry', input(), proxy);
      take(retry, ['201']);
      if (
        isDone &&
        retry.answer.status === 201 &&
        retry.answer.field('idempotent-replayed') !== 'true' &&
        !model.troubledSince('redis', sinceMs)
      ) {
        model.wrong(`retry of ${key}: its answer was known and not shown again`);
      }
    }
    const other = await ask('another body', { ...input(), body: 'another' });
    // Where none of those before was run, this is the first.
    model.judge(other, ['idempotency-key-reused', ...(texts.size === 0 ? ['201'] : [])], sinceMs);
    if (texts.size > 1) {
      model.wrong(`write ${key}: ${texts.size} different answers: ${[...texts].join(' ').slice(0, 300)}`);
    }
    if (deployment.runs(key) > 1) {
      model.count('writes that ran twice');
      model.wrong(`write ${key} ran ${deployment.runs(key)} times`);
    }
    model.count(`writes that ran ${deployment.runs(key) === 1 ? 'once' : 'never'}`);
  }

  /** One token, shown to both proxies at once: it passes once. */
  async function single(): Promise<void> {
    const jti = randomUUID();
    const iatS = Math.floor(Date.now() / 1000);
    const sinceMs = performance.now();
    const input: RequestInput = {
      method: 'POST',
      path: '/single',
      headers: bearer(deployment.token({ jti, iat: iatS })),
      body: jti,
    };
    const both = await Promise.all(deployment.proxies.map(async (proxy) => ask('single use', input, proxy)));
    const mayBeOld = iatS <= deployment.floorS() || model.troubledSince('redis', sinceMs);
    for (const asked of both) model.judge(asked, ['201', '401'], sinceMs);
    const passed = both.filter(({ answer }) => answer.status === 201).length;
    const failed = both.some(({ answer }) => ![201, 401].includes(answer.status));
    if (passed > 1) model.wrong(`token ${jti} passed ${passed} times`);
    if (passed === 0 && !failed && !mayBeOld) model.wrong(`token ${jti} passed never`);
    const again = await ask('single use again', input);
    model.judge(again, ['401', ...(passed === 0 ? ['201'] : [])], sinceMs);
    if (deployment.runs(jti) > 1) model.wrong(`token ${jti} ran ${deployment.runs(jti)} writes`);
  }

  let round = 0;
  async function attack(): Promise<void> {
    const all = attacksNow(deployment);
    const [one] = all.splice(round++ % all.length, 1);
    if (one === undefined) return;
    const sentMs = performance.now();
    const { port } = pick();
    const answers: RawResponse[] = await sendRaw(port, one.bytes, {
      untilClosed: one.name === 'two lengths',
      limitMs: 60_000,
    });
    const [answer] = answers;
    if (answer === undefined) model.wrong(`${one.name}: no answer`);
    else model.judge({ what: `attack: ${one.name}`, sentMs, answer }, one.right);
    if (answers.length > 1) model.wrong(`${one.name}: ${answers.length} answers`);
  }

  return [read, read, underPolicy, underPolicy, write, write, single, attack, attack];
}
