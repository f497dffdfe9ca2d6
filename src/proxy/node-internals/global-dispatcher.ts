import { getGlobalDispatcher, setGlobalDispatcher, type Dispatcher } from 'undici';

/**
 * Has `fetch` of the whole process go through `dispatcher`: Node's own copy of undici and the package share one place
 * for it, a symbol of `globalThis`.
 *
 * @returns gives the place back to what was there before, where nobody else took it in the meantime.
 */
export function useForFetch(dispatcher: Dispatcher): () => void {
  const before = getGlobalDispatcher();
  setGlobalDispatcher(dispatcher);
  return () => {
    if (getGlobalDispatcher() === dispatcher) setGlobalDispatcher(before);
  };
}
