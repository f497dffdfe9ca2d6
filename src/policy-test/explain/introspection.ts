/** Says of an opaque token whom it was shown to, and what became of that. Never the token. */
import type { Reason } from '../../decision/denial.js';
import type { Explained } from './explanation.js';

type IntrospectionReason = Extract<Reason, 'token_inactive' | 'introspection_unavailable' | 'introspection_limited'>;

export function explainIntrospection(reason: IntrospectionReason, { activeConfig }: Explained): readonly string[] {
  const asked = activeConfig.issuers.filter(({ introspection }) => introspection !== undefined);
  const names = asked.map(({ rules }) => rules.name).join(', ');
  switch (reason) {
    case 'token_inactive':
      return [`an opaque token, of which issuer ${names} says that it is not active: expired, revoked or never issued`];
    case 'introspection_unavailable': {
      const problems = asked.flatMap(({ rules, introspection }) => {
        const problem = introspection?.source.state().problem ?? null;
        return problem === null ? [] : [`issuer ${rules.name} could not be asked: ${problem}`];
      });
      return problems.length === 0 ? [`issuer ${names} could not be asked about an opaque token`] : problems;
    }
    case 'introspection_limited':
      return [
        `issuer ${names} was not asked: too many unknown tokens came; introspection.unknown_per_second and unknown_per_address say how many`,
      ];
  }
}
