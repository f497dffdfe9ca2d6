import t from 'tap';
import { readBearer, saysDpop, readCredential } from '../../../src/decision/token/credential.js';
import { rsaKey } from '../../support/keys.js';
import { mintSession } from '../../support/sessions.js';
import { mintToken } from '../../support/tokens.js';

const key = rsaKey();
const service = mintToken({ key });
const session = mintSession({ key });
const crafted = mintToken({ key, claims: { sessionHandle: 'h', refreshTokenHash1: 'r' } });
const cookie = ['Cookie', `sAccessToken=${session}`];

interface Case {
  readonly name: string;
  readonly authorization?: string;
  readonly passed?: readonly string[];
  /** On routes for: service tokens, sessions, both. */
  readonly expected: readonly [string, string, string];
}

const twice: Case['expected'] = ['service', 'credential_ambiguous', 'credential_ambiguous'];
const unlike: Case['expected'] = ['credential_malformed', 'credential_ambiguous', 'credential_ambiguous'];
const misspelt: Case['expected'] = ['credential_malformed', 'credential_malformed', 'credential_malformed'];

const cases: readonly Case[] = [
  { name: 'nothing', expected: ['credential_missing', 'credential_missing', 'credential_missing'] },
  {
    name: 'a service token',
    authorization: `Bearer ${service}`,
    expected: ['service', 'credential_kind_refused', 'service'],
  },
  {
    name: 'a session as bearer',
    authorization: `bearer ${session}`,
    expected: ['service', 'session header', 'session header'],
  },
  { name: 'a session as cookie', passed: cookie, expected: ['credential_missing', 'session cookie', 'session cookie'] },
  { name: 'both kinds', authorization: `Bearer ${service}`, passed: cookie, expected: twice },
  { name: 'a garbage bearer beside a good cookie', authorization: 'Bearer x', passed: cookie, expected: twice },
  { name: 'another scheme beside a good cookie', authorization: 'Basic eDp5', passed: cookie, expected: unlike },
  { name: 'an empty Authorization beside a good cookie', authorization: '', passed: cookie, expected: unlike },
  { name: 'two sessions', authorization: `Bearer ${session}`, passed: cookie, expected: twice },
  {
    name: 'two cookies',
    passed: [...cookie, ...cookie],
    expected: ['credential_missing', 'credential_ambiguous', 'credential_ambiguous'],
  },
  {
    name: 'a garbage cookie beside a bearer',
    authorization: `Bearer ${service}`,
    passed: ['Cookie', 'sAccessToken='],
    expected: twice,
  },
  {
    name: 'a garbage cookie',
    passed: ['Cookie', 'sAccessToken=x'],
    expected: ['credential_missing', 'session cookie', 'session cookie'],
  },
  {
    name: 'other cookies',
    authorization: `Bearer ${service}`,
    passed: ['Cookie', 'sRefreshToken=x; a=b'],
    expected: ['service', 'credential_kind_refused', 'service'],
  },
  {
    name: 'point 7: a crafted service token',
    authorization: `Bearer ${crafted}`,
    expected: ['service', 'credential_kind_refused', 'service'],
  },
  {
    name: 'a session that says it is proved',
    authorization: `DPoP ${session}`,
    expected: ['service', 'credential_kind_refused', 'service'],
  },
  { name: 'garbage', authorization: 'Bearer x', expected: ['service', 'credential_kind_refused', 'service'] },
  { name: 'a session behind two spaces', authorization: `Bearer  ${session}`, expected: misspelt },
];

t.test('the kind of credential is settled by form, and both at once are none', (t) => {
  const routes = [
    { service: true, session: false },
    { service: false, session: true },
    { service: true, session: true },
  ];
  for (const { name, authorization = null, passed = [], expected } of cases) {
    const found = routes.map((accepts) => {
      const isDpop = authorization !== null && saysDpop(authorization);
      const given = { authorization, bearer: readBearer(authorization), passed, saysBound: isDpop };
      const read = readCredential(given, accepts);
      if (!read.ok) return read.error.reason;
      return read.value.kind === 'session' ? `session ${read.value.from}` : 'service';
    });
    t.same(found, expected, name);
  }
  t.end();
});
