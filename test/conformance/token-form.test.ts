/** docs/contract.md 3.5, docs/security-requirements.md R-20: a token has exactly one spelling. */
import t, { type Test } from 'tap';
import { otherSpellings } from '../support/attacks/tokens.js';
import { rsaKey } from '../support/keys.js';
import { base64url, mintToken, serviceClaims, signToken } from '../support/tokens.js';
import { startProxyProcess } from '../support/proxy-process.js';
import { checkRefusal, comparable, refusals } from './refusals.js';
import { checkSilence } from './silence.js';

const key = rsaKey();
const proxy = await startProxyProcess(t, { key });
const header = '{"alg":"RS256","kid":"d-1"}';
const payload = JSON.stringify(serviceClaims());
const good = signToken(header, payload, key.privateKey);
const [first = '', second = '', third = ''] = good.split('.');
const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
const answers = new Set<string>();

async function checkForms(t: Test, rows: readonly { name: string; token: string; passes?: true }[]): Promise<void> {
  for (const { name, token, passes } of rows) {
    const response = await proxy.request({ path: '/orders', headers: { Authorization: `Bearer ${token}` } });
    if (passes === true) {
      t.equal(response.status, 200, name);
      continue;
    }
    checkRefusal(t, response, refusals.unauthorized, name);
    answers.add(comparable(response));
  }
}

/** The same bytes to a lenient decoder: the bits of the last character that are not used, set. */
function withUnusedBits(part: string): string {
  const last = alphabet.indexOf(part.slice(-1));
  return `${part.slice(0, -1)}${alphabet.charAt(last | 1)}`;
}

t.test('three canonical base64url parts', async (t) => {
  await checkForms(t, [
    { name: 'as it was signed', token: good, passes: true },
    ...otherSpellings(good),
    { name: 'unused bits of the signature', token: `${first}.${second}.${withUnusedBits(third)}` },
    { name: 'another header', token: `${base64url('{"kid":"d-1","alg":"RS256"}')}.${second}.${third}` },
    {
      name: 'another payload',
      token: `${first}.${base64url(JSON.stringify(serviceClaims({ claims: { sub: 'root' } })))}.${third}`,
    },
    { name: 'the header of another token', token: `${mintToken({ key }).split('.')[0] ?? ''}.${second}.${third}` },
  ]);
});

t.test('header and payload are duplicate-free JSON objects in UTF-8', async (t) => {
  const signed = (head: string | Buffer, claims: string | Buffer): string => signToken(head, claims, key.privateKey);
  const inner = payload.slice(1, -1);
  const deep = (depth: number): string => `{${inner},"x":${'['.repeat(depth)}${']'.repeat(depth)}}`;
  await checkForms(t, [
    { name: 'alg twice', token: signed('{"alg":"RS256","alg":"RS256","kid":"d-1"}', payload) },
    { name: 'alg twice, escaped', token: signed('{"alg":"none","\\u0061lg":"RS256","kid":"d-1"}', payload) },
    { name: 'kid twice', token: signed('{"alg":"RS256","kid":"d-1","kid":"d-1"}', payload) },
    { name: 'sub twice', token: signed(header, `{${inner},"sub":"checkout"}`) },
    { name: 'sub twice, escaped', token: signed(header, `{${inner},"s\\u0075b":"checkout"}`) },
    { name: 'a member of a nested object twice', token: signed(header, `{${inner},"x":{"a":1,"a":1}}`) },
    { name: 'an array as payload', token: signed(header, `[${payload}]`) },
    { name: 'a string as payload', token: signed(header, JSON.stringify(payload)) },
    { name: 'null as payload', token: signed(header, 'null') },
    { name: 'an array as header', token: signed(`[${header}]`, payload) },
    { name: 'empty payload object', token: signed(header, '{}') },
    { name: 'broken JSON', token: signed(header, payload.slice(0, -1)) },
    { name: 'two values', token: signed(header, `${payload}${payload}`) },
    { name: 'a comment', token: signed(header, `${payload}//`) },
    { name: 'a trailing comma', token: signed(header, `{${inner},}`) },
    { name: 'single quotes', token: signed(header.replaceAll('"', "'"), payload) },
    { name: 'a byte order mark before the header', token: signed(`\ufeff${header}`, payload) },
    { name: 'a byte order mark before the payload', token: signed(header, `\ufeff${payload}`) },
    {
      name: 'invalid UTF-8',
      token: signed(header, Buffer.concat([Buffer.from(`{${inner},"x":"`), Buffer.from([0xff]), Buffer.from('"}')])),
    },
    { name: 'UTF-16', token: signed(header, Buffer.from(payload, 'utf16le')) },
    { name: 'a raw control in a string', token: signed(header, `{${inner},"x":"\n"}`) },
    { name: 'nested a thousand deep', token: signed(header, deep(1000)) },
    { name: 'NaN', token: signed(header, `{${inner},"x":NaN}`) },
    { name: 'a leading zero', token: signed(header, `{${inner},"x":01}`) },
    { name: 'white space around', token: signed(` ${header}\n`, `\t${payload} `), passes: true },
    {
      name: 'members that mean nothing here',
      token: signed(header, `{${inner},"__proto__":{"sub":"root"},"constructor":1,"toString":[]}`),
      passes: true,
    },
    { name: 'nested a little', token: signed(header, deep(5)), passes: true },
  ]);
  t.equal(answers.size, 1, 'and every refusal is the same answer');
});

checkSilence(t, proxy);
