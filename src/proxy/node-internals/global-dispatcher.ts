import { Dispatcher, getGlobalDispatcher, setGlobalDispatcher } from 'undici';

/**
 * Has `fetch` of the whole process go through `dispatcher` where it calls `origin`, and else through what was there
 * before: an application may have a proxy there, or authorities of its own. Node's own copy of undici and the package
 * share one place for it, a symbol of `globalThis`.
 *
 * @returns ends that. It gives the place back to what was there before, where nobody else took it in the meantime.
 */
export function useForFetch(dispatcher: Dispatcher, origin: string): () => void {
  const byOrigin = new ByOrigin(dispatcher, origin, getGlobalDispatcher());
  setGlobalDispatcher(byOrigin);
  return () => {
    byOrigin.leave();
    if (getGlobalDispatcher() === byOrigin) setGlobalDispatcher(byOrigin.others());
  };
}

/** Calls of one origin go one way, and all others another. */
class ByOrigin extends Dispatcher {
  private readonly own: Dispatcher;
  private readonly origin: string;
  private readonly before: Dispatcher;
  private isInUse = true;

  constructor(own: Dispatcher, origin: string, before: Dispatcher) {
    super();
    this.own = own;
    this.origin = new URL(origin).origin;
    this.before = before;
  }

  override dispatch(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): boolean {
    const to = this.isInUse && originOf(options) === this.origin ? this.own : this.others();
    return to.dispatch(options, handler);
  }

  /** Asked by `fetch`: what stands in for servers, in the tests of an application, gets bodies in another form. */
  get isMockActive(): boolean {
    return (this.others() as object as { readonly isMockActive?: unknown }).isMockActive === true;
  }

  /** All calls go the other way from now on: it may still be in use, inside of what came later. */
  leave(): void {
    this.isInUse = false;
  }

  /** Where other calls go: past those that are in use no more. */
  others(): Dispatcher {
    const { before } = this;
    return before instanceof ByOrigin && !before.isInUse ? before.others() : before;
  }

  // Who closes what `fetch` goes through means their own: ours is closed by who opened it.

  override close(): Promise<void>;
  override close(callback: () => void): void;
  override close(callback?: () => void): Promise<void> | undefined {
    return told(this.others().close(), callback);
  }

  override destroy(error?: Error | null): Promise<void>;
  override destroy(callback: () => void): void;
  override destroy(error: Error | null, callback: () => void): void;
  override destroy(why?: Error | null | (() => void), callback?: () => void): Promise<void> | undefined {
    return typeof why === 'function'
      ? told(this.others().destroy(null), why)
      : told(this.others().destroy(why ?? null), callback);
  }
}

function told(ended: Promise<void>, callback: (() => void) | undefined): Promise<void> | undefined {
  if (callback === undefined) return ended;
  void ended.then(callback, callback);
  return undefined;
}

/** `fetch` says it as a text; others may as a URL. */
function originOf({ origin }: Dispatcher.DispatchOptions): string | null {
  if (origin === undefined) return null;
  const text = String(origin);
  return URL.canParse(text) ? new URL(text).origin : null;
}
