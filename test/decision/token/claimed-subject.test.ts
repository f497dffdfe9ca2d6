import t from 'tap';
import { claimedSubject } from '../../../src/decision/token/profile-claims.js';
import { issuerRules } from '../samples.js';

t.test('whom a service may take a token for that we refuse', (t) => {
  const oauth = issuerRules({ profile: 'oauth' });
  t.equal(claimedSubject({ sub: 'bob' }, oauth), 'bob');
  t.equal(claimedSubject({ sub: 42 }, oauth), 42);
  t.equal(claimedSubject({ sub: ['bob'] }, oauth), '');
  const kubernetes = issuerRules({ profile: 'kubernetes' });
  t.equal(
    claimedSubject({ sub: 'system:serviceaccount:shop:api' }, kubernetes),
    'shop/api',
    'as old ones are, of it alone',
  );
  t.equal(claimedSubject({ sub: 'shop/api' }, kubernetes), '');
  t.equal(claimedSubject({ sub: 42 }, kubernetes), '');
  t.end();
});
