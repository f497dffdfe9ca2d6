import { fullInvalidationBudget, takeInvalidation } from '../../decision/egress/token-life.js';
import { expiryOf, isBearerToken } from '../../decision/egress/token-response.js';
import { accept, refuse, type Result } from '../../lib/result.js';
import type { Files } from '../../ports/system.js';
import type { TokenOutcome, TokenSource } from '../../ports/tokens.js';
import { unavailable, waitingRoom, type TokenSourceDeps } from './fetch-state.js';

/** Least time between two reads, milliseconds. */
const readEveryMs = 1_000;

/** A token of 8 KiB, and blanks around it. */
const maxFileBytes = 9 * 1024;

/** How long a token serves that does not say when it ends, while its file cannot be used; milliseconds. */
const graceMs = 60_000;

interface FileSourceDeps extends TokenSourceDeps {
  readonly files: Pick<Files, 'read'>;
}

interface Kept {
  readonly outcome: Extract<TokenOutcome, { kind: 'token' }>;
  /** Milliseconds since the epoch; `null` where it does not say. */
  readonly endsAtMs: number | null;
  /** When the file held it last; monotonic. */
  seenAtMs: number;
}

/**
 * The token that a file holds: one that Kubernetes projects, or that something beside this writes. Read again for a
 * request, at most each second, links followed: a file that is replaced, or a link that is moved, counts within that. A
 * file that cannot be used leaves the token in hand until its end.
 */
export function createFileSource(
  name: string,
  path: string,
  { clock, files, log, maxWaiting }: FileSourceDeps,
): TokenSource {
  const room = waitingRoom(maxWaiting);
  let kept: Kept | null = null;
  let problem: string | null = null;
  let readAtMs = -Infinity;
  let reads = 0;
  let flight: Promise<TokenOutcome> | null = null;
  let budget = fullInvalidationBudget;
  let isClosed = false;

  async function read(): Promise<TokenOutcome> {
    const found = readToken(await files.read(path, { maxBytes: maxFileBytes }), clock.now());
    readAtMs = clock.monotonic();
    reads += 1;
    if (isClosed) return unavailable('closed', 'the source was closed', 0);
    if (found.ok) {
      const { token, endsAtMs } = found.value;
      if (kept?.outcome.token === token) kept.seenAtMs = readAtMs;
      else kept = { outcome: { kind: 'token', token, scheme: 'Bearer' }, endsAtMs, seenAtMs: readAtMs };
    }
    note(found.ok ? null : found.error);
    return inHand();
  }

  function note(next: string | null): void {
    if (next !== problem) {
      if (next === null) log.info('tokens can be had again', { source: name });
      else log.warn('no token could be had', { source: name, problem: 'unreadable', error: `${path}: ${next}` });
    }
    problem = next;
  }

  function isUsable({ endsAtMs, seenAtMs }: Kept): boolean {
    return endsAtMs === null ? clock.monotonic() < seenAtMs + graceMs : clock.now() < endsAtMs;
  }

  function inHand(): TokenOutcome {
    if (kept !== null && isUsable(kept)) return kept.outcome;
    return unavailable('unreadable', `${path}: ${problem ?? 'holds a token that is over'}`, readEveryMs);
  }

  return {
    get: () => {
      if (isClosed) return unavailable('closed', 'the source was closed', 0);
      if (flight === null && clock.monotonic() < readAtMs + readEveryMs) return inHand();
      return room.join(() => {
        flight ??= read().finally(() => {
          flight = null;
        });
        return flight;
      });
    },
    invalidate: (token) => {
      if (kept?.outcome.token !== token) return;
      const next = takeInvalidation(budget, clock.monotonic());
      if (next === null) return;
      budget = next;
      // What the file holds now is all that there is.
      readAtMs = -Infinity;
    },
    status: () => ({
      kind: 'file',
      kept: kept !== null && isUsable(kept),
      endsAtMs: kept?.endsAtMs ?? null,
      lastError: problem === null ? null : 'unreadable',
      fetches: reads,
      waiting: room.waiting(),
    }),
    close: () => {
      isClosed = true;
      kept = null;
    },
  };
}

interface FileToken {
  readonly token: string;
  readonly endsAtMs: number | null;
}

/** Takes a token out of a file, blanks and ends of lines around it left out; refuses in words that follow the path. */
function readToken(text: Result<string, string>, nowMs: number): Result<FileToken, string> {
  if (!text.ok) return text;
  const token = text.value.trim();
  if (token === '') return refuse('is empty');
  if (!isBearerToken(token)) return refuse('holds no bearer token of one line of 1 to 8,192 characters');
  const exp = expiryOf(token);
  const endsAtMs = exp === null ? null : exp * 1_000;
  return endsAtMs !== null && endsAtMs <= nowMs ? refuse('holds a token that is over') : accept({ token, endsAtMs });
}
