import type { IssuerRules } from '../../decision/route/policy.js';
import type { KeySource } from '../../ports/auth.js';

/** An issuer of the config with the source of its keys. */
export interface IssuerInForce {
  readonly rules: IssuerRules;
  readonly keys: KeySource;
}
