/** Checks of answers about opaque tokens, each with the text of the compiled program that takes it out. */
import type { PlantedFault } from '../profiles/faults.js';

const rules = 'decision/token/introspection.js';
const reader = 'adapters/oauth/read-response.js';
const question = 'adapters/oauth/ask-issuer.js';
const introspector = 'adapters/oauth/introspector.js';
const times = 'decision/token/service-token.js';

export const answerFaults: readonly PlantedFault[] = [
  {
    name: 'active may be a text',
    file: reader,
    from: "if (typeof active !== 'boolean')",
    to: "if (typeof active !== 'boolean' && active !== 'true')",
  },
  {
    name: 'what is not active passes where it says who calls',
    file: reader,
    from: 'return accept(active ? members.value : null);',
    to: 'return accept(members.value);',
  },
  {
    name: 'aud is not looked at',
    file: rules,
    from: 'if (aud === undefined ? rules.requiresAudience : !namesAudience(aud, rules.audiences))',
    to: 'if (false)',
  },
  {
    name: 'aud may be missing',
    file: rules,
    from: 'aud === undefined ? rules.requiresAudience :',
    to: 'aud === undefined ? false :',
  },
  {
    name: 'iss is not looked at',
    file: rules,
    from: 'if (iss !== undefined && iss !== rules.expectedIssuer)',
    to: 'if (false)',
  },
  { name: 'exp is not looked at', file: times, from: 'if (nowMs >= exp * 1000 + skewMs)', to: 'if (false)' },
  {
    name: 'nbf is not looked at',
    file: times,
    from: 'if (nbf !== undefined && nbf * 1000 > nowMs + skewMs)',
    to: 'if (false)',
  },
  {
    name: 'token_type is not looked at',
    file: rules,
    from: 'if (tokenType !== undefined && !isTokenType(tokenType, cnf))',
    to: 'if (false)',
  },
  {
    name: 'a token for DPoP needs no key',
    file: rules,
    from: "(name === 'dpop' && boundKey(cnf) !== null)",
    to: "name === 'dpop'",
  },
  {
    name: 'jti may be missing',
    file: rules,
    from: 'jti === undefined ? rules.requiresTokenId :',
    to: 'jti === undefined ? false :',
  },
  {
    name: 'claims.require counts for nothing',
    file: rules,
    from: "return isHeld ? null : 'claim_mismatch';",
    to: 'return null;',
  },
  { name: 'any media type', file: reader, from: 'if (type !== acceptedTypes[rules.form])', to: 'if (false)' },
  { name: 'any status', file: question, from: 'if (status !== 200) {', to: 'if (false) {' },
  {
    name: 'answers of any size',
    file: 'lib/http/requests.js',
    from: 'if (bytes > maxBytes)',
    to: 'if (false)',
  },
  {
    name: 'compressed answers are read as they come',
    file: 'lib/http/requests.js',
    from: "return (headers['content-encoding'] ?? 'identity') === 'identity';",
    to: 'return true;',
  },
  {
    name: 'a name may come twice',
    file: 'lib/strict-json.js',
    from: 'if (tally.members !== members)',
    to: 'if (false)',
  },
  {
    name: 'no signature is looked at',
    file: reader,
    from: 'if (!verifySignature(token.value, key, algorithm))',
    to: 'if (false)',
  },
  {
    name: 'a signed answer may be of any type',
    file: reader,
    from: "const jwtTypes = new Set(['token-introspection+jwt']);",
    to: "const jwtTypes = new Set(['token-introspection+jwt', 'at+jwt', 'jwt']);",
  },
  {
    name: 'a signed answer may be for anybody',
    file: reader,
    from: 'if (!namesAudience(aud, new Set([clientId])))',
    to: 'if (false)',
  },
  {
    name: 'a signed answer may be another issuer’s',
    file: reader,
    from: 'if (iss !== issuer.expectedIssuer)',
    to: 'if (false)',
  },
  {
    name: 'a signed answer may be of any time',
    file: reader,
    from: 'if (!isOfNow(',
    to: 'if (false && !isOfNow(',
  },
  {
    name: 'what a signed answer says of itself counts for the token',
    file: reader,
    from: 'return isJsonObject(members) ? accept(members) :',
    to: 'return isJsonObject(members) ? accept(members) : isJsonObject(claims.value) ? accept(claims.value) :',
  },
  {
    name: 'a JWT may be opaque',
    file: rules,
    from: 'return !/^\\s*\\{/.test(',
    to: 'return true || !/^\\s*\\{/.test(',
  },
  {
    name: 'several callers ask at once',
    file: introspector,
    from: 'if (begun !== undefined) {',
    to: 'if (false) {',
  },
  {
    name: 'nothing is remembered',
    file: introspector,
    from: 'responses.set(digest,',
    to: 'void (digest,',
  },
];

/** What of memory alone shows. */
export const memoryFaults: readonly PlantedFault[] = [
  {
    name: 'what is said is kept beyond exp',
    file: introspector,
    from: 'return leftMs + issuer.clockSkewS * 1_000 > 0 ? 0 : settings.maxNegativeAgeMs;',
    to: 'return settings.maxNegativeAgeMs;',
  },
  {
    name: 'what is said is kept for max_age, whatever exp says',
    file: introspector,
    from: 'return Math.min(settings.maxAgeMs, leftMs);',
    to: 'return settings.maxAgeMs;',
  },
  {
    name: 'what is said is kept until exp, whatever max_age says',
    file: introspector,
    from: 'return Math.min(settings.maxAgeMs, leftMs);',
    to: 'return leftMs;',
  },
  {
    name: 'a token that is not active is so for as long as one that is',
    file: introspector,
    from: 'if (claims === null)\n            return settings.maxNegativeAgeMs;',
    to: 'if (claims === null)\n            return settings.maxAgeMs;',
  },
  {
    name: 'it is kept from when the answer came',
    file: introspector,
    from: 'freshUntilMs: beganAtMs +',
    to: 'freshUntilMs: clock.monotonic() +',
  },
];
