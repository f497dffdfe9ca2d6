/** docs/contract.md 3.1: which targets are refused, and that the rest is forwarded as the bytes that came. */
import t from 'tap';
import type { RawResponse } from '../support/raw-client.js';
import { ambiguousTargets } from '../support/attacks/targets.js';
import { readVectors } from '../vectors/corpus.js';
import { startProxyProcess } from '../support/proxy-process.js';
import { markedSecret } from '../support/secrets.js';
import { readCorpusTargets } from './corpus-targets.js';
import { checkRefusal, refusals } from './refusals.js';
import { checkSilence } from './silence.js';

const open = { methods: ['GET'], subjects: ['checkout'], permissions: [] };
const proxy = await startProxyProcess(t, {
  config: {
    listen: { max_target: '1KiB' },
    routes: [
      { ...open, name: 'files', path: '/files/**' },
      { ...open, name: 'item', path: '/items/{id}' },
      { ...open, name: 'names', path: '/names/{name}', encoded_slashes: 'allow' },
      { ...open, name: 'matrix', path: '/matrix/{point}', path_parameters: 'allow' },
    ],
  },
});

const headers = proxy.authorization();
const get = async (path: string): Promise<RawResponse> => proxy.request({ path, headers });

t.test('ambiguous targets are refused', async (t) => {
  const before = proxy.receiver.requests.length;
  for (const { name, targets } of ambiguousTargets) {
    for (const target of targets) checkRefusal(t, await get(target), refusals.badTarget, `${name} ${target}`);
  }
  t.equal(proxy.receiver.requests.length, before, 'none reached the receiver');
});

t.test('what the decision finds malformed is refused', async (t) => {
  const before = proxy.receiver.requests.length;
  const { refused } = readVectors('targets.json') as { refused: readonly { name: string; input: string }[] };
  for (const { name, input } of refused.filter(({ input: text }) => /^[\0-\xff]*$/.test(text))) {
    const response = await get(input);
    t.equal(response.status, 400, name);
    t.match(response.field('proxy-status'), /^sallyport; error=http_request_error$/, name);
  }
  t.equal(proxy.receiver.requests.length, before, 'none reached the receiver');
});

t.test('targets that no parser takes are refused', async (t) => {
  const before = proxy.receiver.requests.length;
  for (const target of [
    'files/a',
    '',
    '?x=1',
    '/files/a b',
    '/files/\x01',
    '/files/\x00',
    '/files/a\tb',
    '/files/\x7f',
    '/files/\xe9',
    '127.0.0.1:80',
  ]) {
    const response = await get(target);
    t.equal(response.status, 400, JSON.stringify(target));
    t.match(response.field('proxy-status'), /^sallyport; error=http_request_error$/, JSON.stringify(target));
  }
  t.equal(proxy.receiver.requests.length, before, 'none reached the receiver');
});

const forwarded: readonly string[] = [
  '/files/a',
  '/files/a/',
  '/files/a/b/c',
  '/files/%C3%A9',
  '/files/%c3%a9',
  '/files/%e2%82%ac',
  '/files/%F0%9F%98%80',
  "/files/!$&'()*+,=:@-._~",
  '/files/%21%40',
  '/files/100%25',
  '/files/%25zz',
  '/files/%20a%20',
  '/files/%25%20',
  '/files/...',
  '/files/.hidden',
  '/files/a..b',
  '/files/..a',
  '/files/a.',
  '/files/%22%3c%3E',
  '/files/a:b@c',
  '/files/a?',
  '/files/a??',
  '/files/a?x=1&x=2',
  '/files/a?x=/../..//;%2f%00%zz',
  '/files/a?"<>\\^`{|}',
  '/files/a?/files/b',
  '/items/1?a=b',
  '/names/a%2Fb',
  '/names/a%2fb',
  '/names/%2F',
  '/matrix/a;v=1',
  '/matrix/a;v=1;w=2',
  '/items/a%2bb',
];

t.test('accepted targets reach the upstream as the bytes that came', async (t) => {
  for (const target of forwarded) {
    const response = await get(target);
    t.equal(response.status, 200, target);
    t.equal(proxy.receiver.requests.at(-1)?.target, target, target);
  }
});

t.test('case, trailing slash and the query are significant or not judged, as it says', async (t) => {
  for (const path of [
    '/Files/a',
    '/FILES/a',
    '/items/1/',
    '/items/',
    '/items',
    '/files',
    '/items/1/2',
    '/filesx',
    '/',
    '/healthz?/files/a',
  ]) {
    checkRefusal(t, await get(path), refusals.forbidden, path);
  }
  t.equal((await get(`/items/1?secret=${markedSecret}`)).status, 200);
});

t.test('a target that is too long is 414', async (t) => {
  const target = (length: number): string => `/files/${'a'.repeat(length - '/files/'.length)}`;
  t.equal((await get(target(1024))).status, 200, 'at the limit');
  checkRefusal(t, await get(target(1025)), refusals.targetTooLong, 'one byte over the limit');
  checkRefusal(t, await get(`/files/a?${'a'.repeat(1016)}`), refusals.targetTooLong, 'the query counts');
});

t.test('the target is checked before the credential', async (t) => {
  checkRefusal(t, await proxy.request({ path: '/files/../x' }), refusals.badTarget, 'without a credential');
  checkRefusal(
    t,
    await proxy.request({ path: '/files/a' }),
    refusals.unauthorized,
    'a good target without a credential',
  );
});

t.test('public corpora are refused or forwarded byte for byte', async (t) => {
  const targets = readCorpusTargets('/files/').filter((target) => target.length < 500);
  const wrong: string[] = [];
  let passed = 0;
  for (const target of targets) {
    const before = proxy.receiver.requests.length;
    const { status } = await get(target);
    const received = proxy.receiver.requests.slice(before).map((request) => request.target);
    const held =
      status === 200
        ? received.length === 1 && received[0] === target
        : received.length === 0 && [400, 403].includes(status);
    if (!held) wrong.push(`${target}: ${String(status)}, received ${JSON.stringify(received)}`);
    passed += status === 200 ? 1 : 0;
  }
  t.same(wrong, []);
  t.not(passed, 0, `${String(passed)} of ${String(targets.length)} forwarded`);
});

checkSilence(t, proxy);
