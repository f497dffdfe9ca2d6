import type { Scope } from '../../support/scope.js';

export interface RealReceiver {
  readonly name: string;
  /** Returns the port. `LEDGER` of the environment is the ledger's file. */
  readonly start: (t: Scope, env: { readonly LEDGER: string }) => Promise<number>;
}
