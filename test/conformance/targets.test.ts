/** docs/contract.md 3.1: which targets are refused, and that the rest is forwarded as the bytes that came. */
import t from 'tap';
import type { RawResponse } from '../support/raw-client.js';
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

const refused: readonly { name: string; targets: readonly string[] }[] = [
  {
    name: 'dot segments in any spelling',
    targets: [
      '/files/../x',
      '/files/..',
      '/files/.',
      '/files/./x',
      '/..',
      '/../files/x',
      '/files/%2e%2e/x',
      '/files/%2E%2E/x',
      '/files/.%2e/x',
      '/files/%2e./x',
      '/files/%2e',
      '/names/..%2fx',
      '/names/a%2f..',
      '/names/..%2F..%2Fetc',
      '/matrix/..;v=1',
      '/matrix/.;',
    ],
  },
  { name: 'empty segments', targets: ['//files/a', '//127.0.0.1/files/a', '/files//a', '/files/a//', '///'] },
  {
    name: 'separators of other readers',
    targets: ['/files/a\\b', '/files\\a', '/\\files/a', '/files/a#b', '/files/a;v=1', '/files/;', '/items/a;'],
  },
  {
    name: 'encoded separators in any case',
    targets: [
      '/files/a%2fb',
      '/files/a%2Fb',
      '/files/a%5cb',
      '/files/a%5Cb',
      '/files/a%3bb',
      '/files/a%3Bb',
      '/files/a%3fb',
      '/files/a%3Fb',
      '/files/a%23b',
      '/items/a%2fb',
      '/names/a%5cb',
      '/names/a;b',
      '/matrix/a%3bb',
      '/matrix/a%2fb',
    ],
  },
  {
    name: 'twice encoded',
    targets: ['/files/%252e%252e', '/files/%2500', '/files/%252f', '/files/%25aF', '/names/%252f'],
  },
  {
    name: 'encoded bytes that have a plain spelling',
    targets: ['/files/%61', '/files/%7A', '/files/%30', '/files/%2d', '/files/%5f', '/files/%7e', '/f%69les/a'],
  },
  {
    name: 'encoded controls',
    targets: ['/files/%00', '/files/a%00.txt', '/files/%0a', '/files/%0D%0A', '/files/%09', '/files/%1f', '/files/%7F'],
  },
  {
    name: 'invalid UTF-8',
    targets: [
      '/files/%80',
      '/files/%ff',
      '/files/%c0%ae%c0%ae',
      '/files/%C0%AF',
      '/files/%e0%80%af',
      '/files/%ed%a0%80',
      '/files/%f5%80%80%80',
      '/files/%c3',
      '/files/%c3a',
      '/files/%f8%80%80%80%af',
    ],
  },
  {
    name: 'bad escapes',
    targets: ['/files/%', '/files/%4', '/files/%zz', '/files/%u002e', '/files/%%32e', '/files/a%2', '/files/%-1'],
  },
  {
    name: 'characters outside pchar',
    targets: [
      '/files/a"b',
      '/files/<',
      '/files/>',
      '/files/^',
      '/files/`',
      '/files/{',
      '/files/}',
      '/files/a|b',
      '/files/[0]',
    ],
  },
  { name: 'another form than origin-form', targets: ['http://127.0.0.1/files/a', 'https://example.com/files/a', '*'] },
  { name: 'a fragment or raw non-ASCII in the query', targets: ['/files/a?x#y', '/files/a?#', '/files/a?x=\xe9'] },
];

t.test('ambiguous targets are refused', async (t) => {
  const before = proxy.receiver.requests.length;
  for (const { name, targets } of refused) {
    for (const target of targets) checkRefusal(t, await get(target), refusals.badTarget, `${name} ${target}`);
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
  '/files/%20',
  '/files/%C3%A9',
  '/files/%c3%a9',
  '/files/%e2%82%ac',
  '/files/%F0%9F%98%80',
  "/files/!$&'()*+,=:@-._~",
  '/files/%21%40',
  '/files/100%25',
  '/files/%25zz',
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

t.test('accepted targets reach the receiver as the bytes that came', async (t) => {
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

t.test('the target is judged before the credential', async (t) => {
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
