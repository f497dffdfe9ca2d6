/** The JavaScript of docs/assertion.md. */
import t from 'tap';
import { checkSnippet } from './assertion-snippets.js';

t.setTimeout(120_000);

const driver = `
import { readFileSync } from 'node:fs';
for (const line of readFileSync(process.argv[2], 'latin1').split('\\n')) {
  await verifyAssertion(...line.split('\\t')).then(claims => console.log('holds', claims.sub), () => console.log('refused'));
}`;

t.test('forged, replayed, expired and misdirected assertions are refused by the snippet in JavaScript', async (t) => {
  checkSnippet(t, { language: 'js', file: 'verify.mjs', driver, commands: [[process.execPath, 'verify.mjs']] });
});
