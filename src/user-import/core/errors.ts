/** Which answers end a row, which are tried again, and which end the run. */
import type { Result } from '../../lib/result.js';
import type { CoreReply, CoreTrouble } from './requests.js';
import type { Flow } from '../import-user.js';

type Verdict =
  /** The Core has spoken of this row. */
  | { readonly kind: 'reply'; readonly reply: CoreReply }
  /** Try again later. `isCoreReached` tells that the Core was reached, so that the row may be what it fails on. */
  | {
      readonly kind: 'retry';
      readonly why: string;
      readonly mayHaveRun: boolean;
      readonly isCoreReached: boolean;
      readonly retryAfterMs: number | null;
    }
  /** No row will fare better. */
  | { readonly kind: 'stop'; readonly why: string };

interface Circumstances {
  readonly flow: Flow;
  /** Whether the Core took a hosted scrypt hash before: then it has its signer key. */
  readonly hostedScryptWorks: boolean;
}

/** Judges what came of a call. */
export function judge(response: Result<CoreReply, CoreTrouble>, { flow, hostedScryptWorks }: Circumstances): Verdict {
  if (!response.ok) return judgeTrouble(response.error);
  const reply = response.value;
  const { status, retryAfterMs } = reply;
  const said = `status ${String(status)}${reply.text === '' ? '' : `, ${reply.text}`}`;
  if (status === 200 && reply.json === null) {
    return retry('it answers with something that is no JSON object', { mayHaveRun: true, isCoreReached: true });
  }
  if (status === 429) {
    return retry('it asks for fewer calls (status 429)', { mayHaveRun: false, isCoreReached: false, retryAfterMs });
  }
  if (status === 408) return retry(said, { mayHaveRun: true, isCoreReached: true });
  if (status >= 500) {
    if (status === 500 && isHostedScrypt(flow) && !hostedScryptWorks) return { kind: 'stop', why: signerKeyMissing };
    return retry(said, { mayHaveRun: true, isCoreReached: true, retryAfterMs });
  }
  if (status === 401 || status === 403) {
    return { kind: 'stop', why: `the Core refuses us (${said}): is the api-key in the curl config file right?` };
  }
  if (status === 404 || status === 405) {
    return {
      kind: 'stop',
      why: `the Core does not have this call (${said}): is the path in the url of the curl config file right?`,
    };
  }
  return { kind: 'reply', reply };
}

const signerKeyMissing =
  'the Core answered 500 for a hosted scrypt hash: most likely its config lacks hosted_password_hashing_signer_key ' +
  '(firebase_password_hashing_signer_key in SuperTokens); set it, restart the Core and go on with --resume';

function isHostedScrypt({ user, stage }: Flow): boolean {
  return user.kind === 'password' && user.algorithm === 'hosted_scrypt' && stage === 'import_hash';
}

function judgeTrouble({ kind, reason, mayHaveRun }: CoreTrouble): Verdict {
  if (kind === 'refused_address') return { kind: 'stop', why: reason };
  return retry(reason, { mayHaveRun, isCoreReached: kind === 'timeout' || kind === 'broken' });
}

interface Retry {
  readonly mayHaveRun: boolean;
  readonly isCoreReached: boolean;
  readonly retryAfterMs?: number | null;
}

function retry(why: string, { mayHaveRun, isCoreReached, retryAfterMs = null }: Retry): Verdict {
  return { kind: 'retry', why, mayHaveRun, isCoreReached, retryAfterMs };
}
