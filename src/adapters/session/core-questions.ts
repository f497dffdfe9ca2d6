/** Which sessions the Core is asked about, and when. */

import type { OpenConnection, SessionAsker } from '../../ports/auth.js';

export interface QuestionLimits {
  /** Questions at once. */
  readonly maxAsking: number;
  /** Of one user: of its requests, and of what is asked again. */
  readonly maxOfUser: number;
  /** Of what is asked again. */
  readonly maxAgain: number;
}

/** A question that was put. */
export interface Asked<T> {
  /** In time, whatever becomes of it. */
  readonly answer: Promise<T>;
  /** It is over, which may be later than its answer: only then it leaves its place. */
  readonly over: Promise<unknown>;
}

interface CoreQuestions<T> {
  /** The answer; who asks again waits for a place. `full`, `share`: there is no place at all, or none for this user. */
  readonly put: (accessToken: string, asker: SessionAsker) => Promise<T> | 'full' | 'share';
  /** Nothing is asked from now on: who waits for a question hears so. */
  readonly close: () => void;
}

interface Later<T> {
  readonly promise: Promise<T>;
  readonly resolve: (answer: Promise<T>) => void;
}

interface Question<T> {
  asked: Asked<T>;
  /** The answer to the same question, asked anew after this one. */
  next: Later<T> | null;
}

/** What waits for a place, and the connections that want it. Where all of them are closed, it is not asked any more. */
type Waiting<T> = Later<T> & { readonly asker: SessionAsker; readonly wantedBy: Set<OpenConnection> };

/** Places, and what one user has of them. */
interface Places {
  /** Why there is none for this user; `null` where there is one. */
  readonly missing: (user: string) => 'full' | 'share' | null;
  /** What is returned gives it back. */
  readonly take: (user: string) => () => void;
}

/**
 * Puts questions, one at a time about each token: in a place for all who ask about it.
 *
 * @param ask nothing of what it returns rejects.
 * @param mayChange whether the answer may be another one from one moment to the next. Who comes while the question is
 *   under way gets the answer to the next one then: what is said of a session counts from before it was asked.
 * @param notAsked the answer where nobody is asked any more.
 */
export function createCoreQuestions<T>(
  ask: (accessToken: string, asker: SessionAsker) => Asked<T>,
  mayChange: boolean,
  notAsked: T,
  { maxAsking, maxOfUser, maxAgain }: QuestionLimits,
): CoreQuestions<T> {
  const underWay = new Map<string, Question<T>>();
  /** Who came first is first. */
  const waiting = new Map<string, Waiting<T>>();
  const all = createPlaces(maxAsking, Infinity);
  const ofRequests = createPlaces(maxAsking, maxOfUser);
  const again = createPlaces(maxAgain, maxOfUser);
  let isClosed = false;

  function joined(question: Question<T>): Promise<T> {
    if (!mayChange) return question.asked.answer;
    question.next ??= later();
    return question.next.promise;
  }

  function begin(accessToken: string, asker: SessionAsker): Promise<T> | 'full' | 'share' {
    const { user } = asker;
    const places = asker.again === null ? ofRequests : again;
    const missing = places.missing(user) ?? all.missing(user);
    if (missing !== null) return missing;
    const giveBack = [all.take(user), places.take(user)];
    const question: Question<T> = { asked: ask(accessToken, asker), next: null };
    const { answer } = question.asked;
    underWay.set(accessToken, question);
    waiting.get(accessToken)?.resolve(answer);
    waiting.delete(accessToken);
    follow(accessToken, asker, question, () => {
      underWay.delete(accessToken);
      for (const back of giveBack) back();
      beginWaiting();
    });
    return answer;
  }

  /** Asks anew as long as somebody came meanwhile, in the same place. */
  function follow(accessToken: string, asker: SessionAsker, question: Question<T>, onOver: () => void): void {
    void question.asked.over.then(() => {
      const { next } = question;
      if (next === null) {
        onOver();
        return;
      }
      question.next = null;
      question.asked = ask(accessToken, asker);
      next.resolve(question.asked.answer);
      follow(accessToken, asker, question, onOver);
    });
  }

  function beginWaiting(): void {
    for (const [accessToken, { asker, wantedBy, resolve }] of waiting) {
      if ([...wantedBy].every((connection) => connection.isGone())) {
        waiting.delete(accessToken);
        resolve(Promise.resolve(notAsked));
      } else if (begin(accessToken, asker) === 'full') return;
    }
  }

  return {
    put: (accessToken, asker) => {
      if (isClosed) return Promise.resolve(notAsked);
      const question = underWay.get(accessToken);
      if (question !== undefined) return joined(question);
      const known = waiting.get(accessToken);
      if (asker.again !== null && known !== undefined) {
        known.wantedBy.add(asker.again);
        return known.promise;
      }
      const begun = begin(accessToken, asker);
      if (typeof begun !== 'string' || asker.again === null) return begun;
      const place = { ...later<T>(), asker, wantedBy: new Set([asker.again]) };
      waiting.set(accessToken, place);
      return place.promise;
    },
    close: () => {
      isClosed = true;
      for (const { resolve } of waiting.values()) resolve(Promise.resolve(notAsked));
      waiting.clear();
      for (const question of underWay.values()) {
        question.next?.resolve(Promise.resolve(notAsked));
        question.next = null;
      }
    },
  };
}

function later<T>(): Later<T> {
  let resolve: Later<T>['resolve'] = () => undefined;
  const promise = new Promise<T>((settle) => (resolve = settle));
  return { promise, resolve };
}

function createPlaces(max: number, maxOfUser: number): Places {
  const held = new Map<string, number>();
  let taken = 0;
  return {
    missing: (user) => {
      if (taken >= max) return 'full';
      return (held.get(user) ?? 0) >= maxOfUser ? 'share' : null;
    },
    take: (user) => {
      taken += 1;
      held.set(user, (held.get(user) ?? 0) + 1);
      return () => {
        taken -= 1;
        const left = (held.get(user) ?? 0) - 1;
        if (left > 0) held.set(user, left);
        else held.delete(user);
      };
    },
  };
}
