/** Reads what the page shows, again and again. */
import { useEffect, useRef, useState } from 'preact/hooks';
import type { Access } from '../admin/console/access.js';
import type { RefusedRequest } from '../admin/console/refusals.js';
import type { Status } from '../admin/status.js';
import type { ConsoleState } from '../app/console/pages.js';
import type { Sample } from './rates.js';

/** Everything that was read so far. */
export interface Live {
  readonly status: Status | null;
  readonly access: Access | null;
  /** The oldest first, five minutes of them. */
  readonly samples: readonly Sample[];
  /** The newest first. */
  readonly refusals: readonly RefusedRequest[];
  readonly inDoubt: ConsoleState['in_doubt'];
  /** When the last answer came, milliseconds since the epoch by this machine; `null` before the first. */
  readonly readAtMs: number | null;
  /** Why the last attempt failed, or `null`. */
  readonly problem: string | null;
}

const nothing: Live = {
  status: null,
  access: null,
  samples: [],
  refusals: [],
  inDoubt: [],
  readAtMs: null,
  problem: null,
};

const everyMs = 2_000;
const mostSamples = 150;
/** Of each kind, as the proxy keeps them. */
const mostOfKind = 25;

/** Characters of a question, encoded. */
const maxQuestion = 6_500;

/** Asks one of the console's own pages; throws with the reason in words. */
export async function ask<T>(path: string, query: Readonly<Record<string, string>> = {}): Promise<T> {
  const search = new URLSearchParams(query).toString();
  // The listener reads heads of 8 KiB, the browser's own headers among them, and ends the connection of longer ones.
  if (search.length > maxQuestion) {
    throw new Error(`too long by ${search.length - maxQuestion} characters, as it is sent`);
  }
  const response = await fetch(search === '' ? path : `${path}?${search}`, {
    headers: { 'Sallyport-Console': '1' },
    cache: 'no-store',
    credentials: 'omit',
    redirect: 'error',
  });
  if (response.ok) return (await response.json()) as T;
  const answer = (await response.json().catch(() => ({}))) as { readonly problem?: string };
  throw new Error(answer.problem ?? `the proxy answered ${response.status}`);
}

/** Reads every two seconds, as long as the page is seen and nobody paused it. */
export function useLive(isPaused: boolean): Live {
  const [live, setLive] = useState(nothing);
  const latest = useRef(live);
  useEffect(() => {
    if (isPaused) return undefined;
    let timer = 0;
    let isOver = false;
    const next = async (): Promise<void> => {
      if (!document.hidden) {
        const read = await readOnce(latest.current);
        if (isOver) return;
        latest.current = read;
        setLive(read);
      }
      timer = window.setTimeout(() => void next(), everyMs);
    };
    void next();
    return () => {
      isOver = true;
      window.clearTimeout(timer);
    };
  }, [isPaused]);
  return live;
}

async function readOnce(before: Live): Promise<Live> {
  try {
    // Another process begins to count anew, refusals too.
    const status = await ask<Status>('/status');
    const isOther = before.status !== null && before.status.started_at !== status.started_at;
    const last = isOther ? nothing : before;
    const after = String(last.refusals[0]?.id ?? 0);
    const state = await ask<ConsoleState>('/console/state', { after });
    const isKnown = last.access?.config === status.config.sha256;
    return {
      status,
      access: isKnown ? last.access : await ask<Access>('/console/access'),
      samples: [...last.samples, { at_ms: state.at_ms, traffic: state.traffic }].slice(-mostSamples),
      refusals: newest([...state.refusals, ...last.refusals]),
      inDoubt: state.in_doubt,
      readAtMs: Date.now(),
      problem: null,
    };
  } catch (error) {
    return { ...before, problem: error instanceof Error ? error.message : 'unknown' };
  }
}

function newest(refusals: readonly RefusedRequest[]): readonly RefusedRequest[] {
  const counts = new Map<string, number>();
  return refusals.filter(({ decision, reason }) => {
    const kind = `${decision} ${reason}`;
    const seen = (counts.get(kind) ?? 0) + 1;
    counts.set(kind, seen);
    return seen <= mostOfKind;
  });
}
