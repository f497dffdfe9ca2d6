import t from 'tap';
import { holderClaim } from '../../../src/decision/token/profile-claims.js';
import { issuerRules } from '../samples.js';

t.test('where a token says who calls is the same of two issuers, or not', (t) => {
  const { claims } = issuerRules();
  const clients = { ...claims, subject: ['client_id'] };
  const usual = holderClaim({ profile: 'oauth', claims });
  t.equal(holderClaim({ profile: 'spiffe', claims }), usual);
  t.not(holderClaim({ profile: 'kubernetes', claims }), usual, 'the account of a sub is named in another way');
  t.not(holderClaim({ profile: 'oauth', claims: clients }), usual);
  t.not(
    holderClaim({ profile: 'oauth', claims: { ...claims, subject: ['a', 'b'] } }),
    holderClaim({ profile: 'oauth', claims: { ...claims, subject: ['a.b'] } }),
  );
  t.end();
});
