/** What of an issuer says what its tokens may be bound to (RFC 7800). */
import type { Entry } from '../../load/parse-sections.js';
import { nameOf, type Report } from '../../load/report.js';
import { towards, type KeyChanges } from '../../schema/key-changes.js';
import { word } from '../../schema/scalars.js';
import type { IssuerFile } from './issuers.js';
import { bindingNames } from '../../../decision/binding/confirmation.js';
import type { IssuerRules } from '../../../decision/route/policy.js';

export const bindingSchema = word(...bindingNames)
  .prefault('accept')
  .describe(
    'Tokens that are bound to a key or a certificate (`cnf`). `accept`: a proof is asked for where a token is bound. `require`: one that is not is ' +
      'refused. `none`: `cnf` says nothing, so that a stolen token counts: see [bound-tokens.md](bound-tokens.md).',
  );

export const bindingKeys: KeyChanges<{ readonly rules: IssuerRules }> = {
  binding: { of: ({ rules }) => rules.binding, widens: towards('require', 'accept', 'none') },
};

/** A token whose issuer bound it is to be worth nothing to a thief. */
export function checkBinding({ path }: Entry<IssuerFile>, { binding }: IssuerFile, report: Report): void {
  if (binding !== 'none') return;
  const at = [...path, 'binding'];
  report.warning(
    at,
    `${nameOf(at)} is none: a stolen token counts, though its issuer bound it to what its client has`,
    'accept, once clients prove it',
  );
}
