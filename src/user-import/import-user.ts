/** What one user takes, call by call: one function from a state and the Core's answer to the next step. */
import type { JsonObject, JsonValue } from '../lib/strict-json.js';
import { isJsonObject } from '../lib/strict-json.js';
import {
  addContactRequest,
  codeRequest,
  consumeRequest,
  importHashRequest,
  lookUpRequest,
  signInUpRequest,
  type CoreReply,
  type CoreRequest,
  type CoreSpeech,
  type IssuedCode,
} from './core/requests.js';
import type { Outcome } from './journal.js';
import type { Begun } from './totals.js';
import { isVerifiedField } from './losses.js';
import type { ImportedUser } from './row/user.js';

export interface FlowRules extends CoreSpeech {
  /** Existing users are expected, and made what the row says. */
  readonly overwrite: boolean;
}

type Stage = 'look_up' | 'import_hash' | 'sign_in_up' | 'code' | 'consume' | 'add_contact';

export interface Flow {
  readonly user: ImportedUser;
  readonly stage: Stage;
  /** Whether a call whose answer nobody saw may have created the user. */
  readonly mayBeOurs: boolean;
  /** When the first such call may have been made. */
  readonly begunAtMs: number | null;
  readonly code: IssuedCode | null;
  readonly userId: string | null;
  /** Set where the user was there before us. */
  readonly existed: boolean;
  /** How often the flow went back to the code. */
  readonly restarts: number;
}

export type Next =
  | { readonly step: 'call'; readonly flow: Flow }
  /**
   * `stop` says why no other row may be begun after this one; `lost` names what the row says and the Core does not
   * have.
   */
  | { readonly step: 'end'; readonly outcome: Outcome; readonly stop: string | null; readonly lost: readonly string[] };

/** Codes are spent by whoever signs in with the same contact meanwhile: that ends. */
const maxRestarts = 5;

/** Ids have 36 characters, codes 44. */
const maxTokenLength = 1024;

/** How far the Core's clock may be behind ours before a user of ours looks older than our call. */
const clockToleranceMs = 5 * 60_000;

/** Where a user begins; `begun` is what an earlier run left in the journal. */
export function beginFlow(user: ImportedUser, begun: Begun | null, { dialect, overwrite }: FlowRules): Flow {
  const looksUp = begun === null && dialect === 'supertokens' && !overwrite;
  const adds = user.kind === 'passwordless' && user.add !== null && begun !== null && begun.userId !== null;
  return {
    user,
    stage: looksUp ? 'look_up' : adds ? 'add_contact' : firstStage(user),
    mayBeOurs: begun !== null,
    begunAtMs: begun?.atMs ?? null,
    code: null,
    userId: begun?.userId ?? null,
    existed: begun?.existed ?? false,
    restarts: 0,
  };
}

/** Whether the journal has to know of the user before the next call is made. */
export function createsUser({ stage }: Flow): boolean {
  return stage !== 'look_up' && stage !== 'add_contact';
}

/** The next call. */
export function requestOf({ user, stage, code, userId }: Flow, speech: CoreSpeech): CoreRequest {
  if (stage === 'look_up') return lookUpRequest(user);
  if (user.kind === 'password') return importHashRequest(user, speech);
  if (user.kind === 'third_party') return signInUpRequest(user, speech);
  if (stage === 'consume' && code !== null) return consumeRequest(code, speech);
  if (stage === 'add_contact' && userId !== null) return addContactRequest(user, userId, speech);
  return codeRequest(user, speech);
}

/** Where to go on after a call whose answer did not come, or was that of a server in trouble. */
export function afterFailure(flow: Flow, mayHaveRun: boolean): Flow {
  const creates = flow.stage === 'import_hash' || flow.stage === 'sign_in_up' || flow.stage === 'consume';
  const doubtful = mayHaveRun && creates ? { ...flow, mayBeOurs: true } : flow;
  // The code may be spent: a new one signs in the same user.
  return flow.stage === 'consume' && mayHaveRun ? { ...doubtful, stage: 'code', code: null } : doubtful;
}

/** What follows from an answer with status 200, or from one that refuses this row. */
export function afterReply(flow: Flow, reply: CoreReply, rules: FlowRules): Next {
  const status = reply.status === 200 ? reply.json?.['status'] : undefined;
  const body = reply.json ?? {};
  switch (flow.stage) {
    case 'look_up':
      return lookedUp(flow, status, reply);
    case 'import_hash':
      return status === 'OK' ? isThere(flow, body['didUserAlreadyExist'] === true, body, rules) : refused(reply);
    case 'sign_in_up':
      return status === 'OK' ? isThere(flow, body['createdNewUser'] === false, body, rules) : refused(reply);
    case 'code':
      return codeIssued(flow, status, body, reply);
    case 'consume':
      return status === 'OK'
        ? isThere(flow, body['createdNewUser'] === false, body, rules)
        : restarted(flow, 'the code was refused', reply);
    case 'add_contact':
      return contactAdded(flow, status, reply);
  }
}

function firstStage({ kind }: ImportedUser): Stage {
  return kind === 'password' ? 'import_hash' : kind === 'third_party' ? 'sign_in_up' : 'code';
}

function lookedUp(flow: Flow, status: JsonValue | undefined, reply: CoreReply): Next {
  if (status === 'OK') {
    const why = 'the user was there before and was left as it was; --overwrite imports the row all the same';
    return end({ result: 'existed', isIn: false, why });
  }
  const isUnknown = typeof status === 'string' && /^UNKNOWN_\w+_ERROR$/.test(status);
  return isUnknown ? { step: 'call', flow: { ...flow, stage: firstStage(flow.user) } } : refused(reply);
}

/** The user is in the Core: was it there before us, and is there more to do? */
function isThere(flow: Flow, wasThere: boolean, body: JsonObject, { overwrite }: FlowRules): Next {
  const user = body['user'];
  const record = isJsonObject(user) ? user : {};
  // From CDI 4.0 on the user may be several linked ones, and this one has an id, a time and a mark of its own.
  const own = loginMethodOf(record, body['recipeUserId']);
  const existed =
    flow.existed || (wasThere && !(flow.mayBeOurs && isSince((own ?? record)['timeJoined'], flow.begunAtMs)));
  const adds = flow.user.kind === 'passwordless' && flow.user.add !== null;
  if (existed && !overwrite) {
    const why = `the user was there before; ${happened[flow.user.kind]}`;
    return {
      step: 'end',
      outcome: { result: 'existed', isIn: !adds, why },
      stop: unexpected,
      lost: lostOf(flow.user, own),
    };
  }
  const outcome: Outcome = existed
    ? { result: 'existed', isIn: true, why: 'the user was there before and is now as in the file' }
    : { result: 'created' };
  if (!adds) return { step: 'end', outcome, stop: null, lost: lostOf(flow.user, own) };
  const userId = body['recipeUserId'] ?? record['id'];
  if (!isToken(userId)) {
    return end({
      result: 'rejected',
      why: 'the user is in, but the Core did not tell its id, so that nothing could be added',
    });
  }
  return { step: 'call', flow: { ...flow, stage: 'add_contact', userId, existed, mayBeOurs: true, code: null } };
}

/** The login method that a call of CDI 4.0 or later was about; `null` in an answer of another version. */
function loginMethodOf(record: JsonObject, recipeUserId: JsonValue | undefined): JsonObject | null {
  const methods = record['loginMethods'];
  if (!Array.isArray(methods)) return null;
  return (
    methods.filter(isJsonObject).find((method) => method['recipeUserId'] === (recipeUserId ?? record['id'])) ?? null
  );
}

/** What the answer does not show as kept was not: below CDI 4.0 the Core does not read the mark, and shows none. */
function lostOf(user: ImportedUser, own: JsonObject | null): readonly string[] {
  if (user.kind !== 'third_party') return [];
  const shown = own?.['verified'] === true;
  return shown === user.isVerified ? [] : [isVerifiedField];
}

const unexpected =
  'the user was in the Core before this import; --resume goes on after it, and --overwrite says that such users are meant';

const happened: Readonly<Record<ImportedUser['kind'], string>> = {
  password: 'its password hash is now that of the file',
  third_party: 'its email is now that of the file',
  passwordless: 'nothing was added to it',
};

/** Without a time the journal's word is all there is. */
function isSince(timeJoined: JsonValue | undefined, begunAtMs: number | null): boolean {
  return typeof timeJoined !== 'number' || begunAtMs === null || timeJoined >= begunAtMs - clockToleranceMs;
}

function codeIssued(flow: Flow, status: JsonValue | undefined, body: JsonObject, reply: CoreReply): Next {
  const { preAuthSessionId, linkCode } = body;
  if (status === 'OK' && isToken(preAuthSessionId) && isToken(linkCode)) {
    return { step: 'call', flow: { ...flow, stage: 'consume', code: { preAuthSessionId, linkCode } } };
  }
  return reply.status === 200 ? restarted(flow, 'no code was issued', reply) : refused(reply);
}

/** An id or code as the Core makes them: what is longer would break the journal, which has to hold it in a line. */
function isToken(value: JsonValue | undefined): value is string {
  return typeof value === 'string' && value !== '' && value.length <= maxTokenLength;
}

/** Used, expired and duplicate flows begin again at the code (docs/specification.md 3), within bounds. */
function restarted(flow: Flow, what: string, reply: CoreReply): Next {
  if (flow.restarts < maxRestarts) {
    return { step: 'call', flow: { ...flow, stage: 'code', code: null, restarts: flow.restarts + 1 } };
  }
  return end({ result: 'rejected', why: `${what} ${String(maxRestarts + 1)} times: ${saidBy(reply)}` });
}

function contactAdded(flow: Flow, status: JsonValue | undefined, reply: CoreReply): Next {
  const existed: Outcome = {
    result: 'existed',
    isIn: true,
    why: 'the user was there before and is now as in the file',
  };
  if (status === 'OK') return end(flow.existed ? existed : { result: 'created' });
  if (status === 'UNKNOWN_USER_ID_ERROR') {
    return restarted({ ...flow, userId: null }, 'the user was gone before its other contact was added', reply);
  }
  const added = flow.user.kind === 'passwordless' && flow.user.add?.kind === 'email' ? 'email' : 'phoneNumber';
  const isTaken = typeof status === 'string' && /^(?:EMAIL|PHONE_NUMBER)_ALREADY_EXISTS_ERROR$/.test(status);
  const why = isTaken ? `the ${added} to add belongs to another user` : saidBy(reply);
  return end({ result: 'rejected', why: `the user is in, but without its other contact: ${why}` });
}

function refused(reply: CoreReply): Next {
  return end({ result: 'rejected', why: `the Core refused it: ${saidBy(reply)}` });
}

/** The Core's own words: a status it names, or its line of text. An answer that is no error may have a code in it. */
function saidBy({ status, json, text }: CoreReply): string {
  const named = json?.['status'];
  if (typeof named === 'string' && /^[A-Z_]{1,64}$/.test(named)) return named;
  if (status < 400) return `status ${String(status)} without a status that is known`;
  return `status ${String(status)}${text === '' ? '' : `, ${text}`}`;
}

function end(outcome: Outcome): Next {
  return { step: 'end', outcome, stop: null, lost: [] };
}
