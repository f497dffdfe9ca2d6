import type { SessionContainer } from 'supertokens-node/recipe/session';
import { Agent } from 'undici';
import type { SessionSettings } from '../../config/types.js';
import { accept, refuse, type Result } from '../../lib/result.js';
import { defaultMaxDepth, parseStrictJson } from '../../lib/strict-json.js';
import type { Clock, Log, Timers } from '../../ports/system.js';
import type { SessionAsker, SessionRefusal, SessionVerifier, VerifiedSession } from '../../ports/auth.js';
import { useForFetch } from '../../proxy/node-internals/global-dispatcher.js';
import { createCoreQuestions, type Asked, type QuestionLimits } from './core-questions.js';
import { contextOf, type CallContext, type SessionSdk } from './session-sdk.js';

interface SessionVerifierDeps {
  readonly log: Log;
  readonly clock: Clock;
  readonly timers: Timers;
}

/** Of the sessions that are verified at once; requests beyond these are not kept waiting. */
export interface SessionVerifierLimits extends QuestionLimits {
  /** Longest time for one question, and for one session of which the Core is not asked, milliseconds. */
  readonly timeoutMs: number;
  /** Sessions that are verified at once without a question to the Core. */
  readonly maxUnderWay: number;
}

/** A verifier that holds connections to the Core. */
export interface OpenSessionVerifier extends SessionVerifier {
  readonly close: () => Promise<void>;
}

type Vouched = Result<VerifiedSession, SessionRefusal>;

interface Outcome {
  readonly vouched: Vouched;
  /** Why nobody could tell, in words; `null` where somebody could. */
  readonly failure: string | null;
}

const defaultLimits: SessionVerifierLimits = {
  timeoutMs: 5_000,
  maxAsking: 64,
  maxOfUser: 8,
  maxAgain: 16,
  maxUnderWay: 1_024,
};

/** `full`, `share`: the Core is asked about so many. `verified`: of those of which it is not asked. */
type Limit = 'full' | 'share' | 'verified';

/** The log tells of a limit that was met no more often than that, milliseconds. */
const tellEveryMs = 60_000;

/** The SDK looks for new keys no more often than that (its `JWKCacheCooldownInMs` is 500). */
const sdkKeysCooldownMs = 550;

/** Of a session that nobody waits for any more, or that came too late: it is no outage. */
const notAsked: Outcome = { vouched: refuse('unavailable'), failure: null };

/** What may stand in a header and in a cookie. */
const tokenCharacters = /^[A-Za-z0-9._~+/=-]+$/;

/**
 * Verifies sessions with the SDK. It calls the Core with `fetch`, without time limits of its own: those are set for all
 * calls of the Core in the process, so that none is left hanging after its session was given up.
 */
export function createSessionVerifier(
  sdk: SessionSdk,
  settings: SessionSettings,
  { log, clock, timers }: SessionVerifierDeps,
  limits: SessionVerifierLimits = defaultLimits,
): OpenSessionVerifier {
  const { timeoutMs, maxAsking, maxOfUser, maxUnderWay } = limits;
  const reasons: Readonly<Record<Limit, string>> = {
    full: `it is asked about ${String(maxAsking)} at once already`,
    share: `it is asked about ${String(maxOfUser)} of one user at once already`,
    verified: `${String(maxUnderWay)} are verified without it at once already`,
  };
  const agent = new Agent({
    connect: { timeout: timeoutMs, rejectUnauthorized: true },
    headersTimeout: timeoutMs,
    bodyTimeout: timeoutMs,
    connections: maxAsking,
  });
  const restoreFetch = useForFetch(agent, settings.coreUrl);
  const questions = createCoreQuestions(put, settings.checkDatabase, notAsked, limits);
  let underWay = 0;
  let isFailing = false;
  let isClosed = false;
  /** The limits of which the log has told just now. */
  const toldOf = new Set<Limit>();

  return {
    verify: async (accessToken, asksCore, asker) => {
      const outcome = asksCore ? questions.put(accessToken, asker) : attemptWithoutCore(accessToken, asker);
      if (typeof outcome === 'string') {
        tellOfLimit(outcome);
        return refuse('unavailable');
      }
      // A request may have come while the question before its own was under way.
      const settled = await (asker.again === null ? within(outcome, 2 * timeoutMs) : outcome);
      if (settled !== notAsked) tell(settled.failure);
      return settled.vouched;
    },
    close: async () => {
      isClosed = true;
      questions.close();
      restoreFetch();
      await agent.destroy();
    },
  };

  /** The SDK may still have to fetch keys, so that there is an end to these as well. */
  function attemptWithoutCore(accessToken: string, asker: SessionAsker): Promise<Outcome> | 'verified' {
    if (underWay >= maxUnderWay) return 'verified';
    underWay += 1;
    const { answer, over } = put(accessToken, asker);
    void over.then(() => {
      underWay -= 1;
    });
    return answer;
  }

  function put(accessToken: string, asker: SessionAsker): Asked<Outcome> {
    const over = attempt(accessToken, asker);
    return { answer: within(over, timeoutMs), over };
  }

  /** Never rejects. */
  async function attempt(accessToken: string, { expiresAtMs }: SessionAsker): Promise<Outcome> {
    const first = await ask(accessToken);
    if (first !== 'keys-missing') return first;
    // The SDK says the same of a token that has ended meanwhile.
    if (clock.now() >= expiresAtMs) return refused('refresh');
    // We hold the key that made the signature, so the SDK's keys are older than ours, or cannot be had.
    await new Promise<void>((resolve) => timers.after(sdkKeysCooldownMs, resolve));
    if (isClosed) return notAsked;
    const second = await ask(accessToken);
    return second === 'keys-missing' ? unavailable('the keys of the Core cannot be had') : second;
  }

  async function ask(accessToken: string): Promise<Outcome | 'keys-missing'> {
    const context: CallContext = { hasAskedCore: false };
    try {
      // The proxy checked anti-CSRF already: it has the request.
      const options = { sessionRequired: true, antiCsrfCheck: false, checkDatabase: settings.checkDatabase };
      const session = await sdk.session.getSessionWithoutRequestResponse(
        accessToken,
        undefined,
        options,
        contextOf(context),
      );
      return session === undefined ? refused('refused') : { vouched: vouchedSession(session), failure: null };
    } catch (error) {
      if (!sdk.session.Error.isErrorFromSuperTokens(error)) return unavailable(coreFailure(error));
      if (error.type !== sdk.session.Error.TRY_REFRESH_TOKEN) return refused('refused');
      return context.hasAskedCore ? refused('refresh') : 'keys-missing';
    }
  }

  /** The SDK's call may go on a while; what it says then is not heard. */
  function within(outcome: Promise<Outcome>, limitMs: number): Promise<Outcome> {
    return new Promise((resolve) => {
      const callOff = timers.after(limitMs, () => resolve(unavailable(`no answer within ${String(limitMs)} ms`)));
      void outcome.then((settled) => {
        callOff();
        resolve(settled);
      });
    });
  }

  /** Once for each outage: who sends requests does not write the log. */
  function tell(failure: string | null): void {
    if (failure !== null && !isFailing) {
      log.error('sessions cannot be verified with the Core', { core: settings.coreUrl, reason: failure });
    }
    isFailing = failure !== null;
  }

  function tellOfLimit(limit: Limit): void {
    if (toldOf.has(limit)) return;
    toldOf.add(limit);
    timers.after(tellEveryMs, () => toldOf.delete(limit));
    const message =
      limit === 'verified'
        ? 'sessions are refused: too many are verified'
        : 'sessions are refused: the Core is asked about too many';
    log.warn(message, { core: settings.coreUrl, reason: reasons[limit] });
  }
}

function vouchedSession(session: SessionContainer): Vouched {
  const { accessAndFrontTokenUpdated: isRenewed, accessToken, frontToken } = session.getAllSessionTokensDangerously();
  const claims = parseStrictJson(Buffer.from(JSON.stringify(session.getAccessTokenPayload())), {
    maxDepth: defaultMaxDepth,
  });
  if (!claims.ok) return refuse('refused');
  const isSendable = tokenCharacters.test(accessToken) && tokenCharacters.test(frontToken);
  return accept({
    userId: session.getUserId(),
    claims: claims.value,
    renewed: isRenewed && isSendable ? { accessToken, frontToken } : null,
  });
}

function refused(why: 'refused' | 'refresh'): Outcome {
  return { vouched: refuse(why), failure: null };
}

function unavailable(failure: string): Outcome {
  return { vouched: refuse('unavailable'), failure };
}

/** In our words: the SDK's message has the Core's text in it. */
function coreFailure(error: unknown): string {
  const message = error instanceof Error ? error.message : '';
  const [, status] = /with status code: (\d{3})/.exec(message) ?? [];
  if (status !== undefined) return `the Core answered with status ${status}`;
  return message.startsWith('No SuperTokens core') ? 'the Core cannot be reached' : 'the call of the Core failed';
}
