/**
 * What every Core promises, asked of the emulator, or of a real Core: `CORE_URL=… CORE_CURL_CONFIG=… npm run
 * test:core`. A real Core keeps the users that the tests create: take one that can be thrown away.
 */
import t from 'tap';
import { coresUnderTest, hostedSample } from './live-core.js';
import { passwordContract } from './password-contract.js';
import { passwordlessContract } from './passwordless-contract.js';
import { thirdPartyContract } from './third-party-contract.js';
import { tokenContract } from './token-contract.js';

for (const subject of await coresUnderTest(t)) {
  t.test(`${subject.dialect}, ${subject.core.url.replace(/:\d+$/, '')}`, (t) => {
    tokenContract(t, subject);
    passwordContract(t, subject, hostedSample);
    passwordlessContract(t, subject);
    thirdPartyContract(t, subject);
    t.end();
  });
}
