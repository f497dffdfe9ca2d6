import t from 'tap';
import { maxTokenBytes, peekHeader } from '../../../src/decision/token/compact-jws.js';
import { base64url } from '../../support/tokens.js';

const header = '{"alg":"RS256"}';

/** A header of exactly so many characters of base64url, and a dot. */
function headerOf(length: number): string {
  return `${base64url(`{"a":"${'x'.repeat((length / 4) * 3 - '{"a":""}'.length)}"}`)}.`;
}

t.test('a header is seen for its form only, in what may be a token and nowhere else', (t) => {
  const rows: readonly { readonly name: string; readonly text: string; readonly seen: boolean }[] = [
    { name: 'a token', text: `${base64url(header)}.b.c`, seen: true },
    { name: 'the largest', text: headerOf(maxTokenBytes - 4) + 'b.c', seen: true },
    { name: 'one that is too large', text: headerOf(maxTokenBytes - 4) + 'b.cd.e', seen: false },
    { name: 'no dot', text: base64url(header), seen: false },
    { name: 'no dot, and one character more', text: `${base64url(header)}x`, seen: false },
    { name: 'nothing before the dot', text: `.${base64url(header)}`, seen: false },
    { name: 'no base64url', text: `${base64url(header)}=.b.c`, seen: false },
    { name: 'no object', text: `${base64url('[1]')}.b.c`, seen: false },
  ];
  for (const { name, text, seen } of rows) t.equal(peekHeader(text) !== null, seen, name);
  t.end();
});
