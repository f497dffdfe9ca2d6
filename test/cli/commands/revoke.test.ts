import { writeFileSync } from 'node:fs';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { run } from '../../../src/cli/program.js';
import { tokenDigest } from '../../../src/decision/revocation/match.js';
import { maxRevocationRecords } from '../../../src/decision/revocation/record.js';
import { rsaKey } from '../../support/keys.js';
import { bulk, startFakeRedis } from '../../support/fake-redis.js';
import { freePort } from '../../support/listening.js';
import { startRedis } from '../../support/redis-server.js';
import { tempDir } from '../../support/temp-dir.js';
import { mintToken } from '../../support/tokens.js';
import { baseConfig, type ConfigTree } from '../../support/proxy-process.js';
import { captureIo, type CapturedIo } from '../captured-io.js';

const key = 'sallyport:{revoked}:list';

const redis = await startRedis(t);
t.beforeEach(async () => redis.client.flushall());

const shared: ConfigTree = { store: { redis: { url: `redis://127.0.0.1:${String(redis.port)}` } } };

async function revoke(
  t: Test,
  args: readonly string[],
  { stdin = '', config = shared }: { stdin?: string; config?: ConfigTree } = {},
): Promise<CapturedIo> {
  const cwd = tempDir(t);
  writeFileSync(join(cwd, 'sallyport.yaml'), baseConfig(config));
  const io = captureIo({ cwd, stdin });
  await run(['revoke', '--config', 'sallyport.yaml', ...args], io);
  return io;
}

interface Listed {
  readonly revocations: readonly { readonly id: string; readonly kind: string; readonly value: string }[];
  readonly undone: readonly { readonly id: string }[];
  readonly unreadable: readonly string[];
}

async function list(t: Test): Promise<Listed> {
  const io = await revoke(t, ['--list', '--json']);
  t.equal(io.code(), 0, io.err());
  return JSON.parse(io.out()) as Listed;
}

const why = ['--for', '3h', '--reason', 'a leak'];
const token = mintToken({ key: rsaKey(), claims: {} });

const kinds: readonly {
  readonly args: readonly string[];
  readonly kind: string;
  readonly value: string;
  readonly stdin?: string;
}[] = [
  { args: ['--key-id', 'd-1763120000000'], kind: 'key_id', value: 'd-1763120000000' },
  { args: ['--subject', 'checkout'], kind: 'subject', value: 'checkout' },
  { args: ['--token-id', '0b8f2c1e'], kind: 'token_id', value: '0b8f2c1e' },
  { args: ['--token-stdin'], kind: 'token', value: tokenDigest(token), stdin: `${token}\n` },
  { args: ['--token-stdin'], kind: 'token', value: tokenDigest(token), stdin: `Bearer ${token}` },
  { args: ['--issued-before', '2026-01-31T12:00:00+01:00'], kind: 'issued_before', value: '2026-01-31T11:00:00.000Z' },
];

t.test('each kind is revoked, with author, reason and end', async (t) => {
  for (const { args, kind, value, stdin = '' } of kinds) {
    const io = await revoke(t, [...args, ...why, '--json'], { stdin });
    t.equal(io.code(), 0, io.err());
    t.equal(io.err(), '');
    const made = JSON.parse(io.out()) as { id: string; created_at: string; ends_at: string };
    t.match(made, {
      id: /^[\w-]{22}$/,
      kind,
      value,
      issuer: null,
      reason: 'a leak',
      author: userInfo().username,
      announced: true,
      replicas: 0,
      confirmed_replicas: null,
    });
    t.equal(Date.parse(made.ends_at) - Date.parse(made.created_at), 3 * 3_600_000);
    const [listed] = (await list(t)).revocations.slice(-1);
    t.match(made, listed ?? { id: 'listed' });
    await redis.client.flushall();
  }
});

t.test('a token that is longer than any that is accepted: shadow mode knows it as well', async (t) => {
  const groups = Array.from({ length: 900 }, (_, at) => `group-${String(at)}`);
  const long = mintToken({ key: rsaKey(), claims: { groups } });
  t.equal(long.length > 8_192, true);
  const io = await revoke(t, ['--token-stdin', ...why, '--json'], { stdin: long });
  t.equal(io.code(), 0, io.err());
  t.match(JSON.parse(io.out()), { kind: 'token', value: tokenDigest(long) });
  await redis.client.flushall();
});

t.test('a token is taken from standard input alone, and is nowhere afterwards', async (t) => {
  const io = await revoke(t, ['--token-stdin', ...why], { stdin: token });
  t.equal(io.code(), 0);
  const everything = `${io.out()}${io.err()}${JSON.stringify(await redis.client.hgetall(key))}${(await revoke(t, ['--list'])).out()}`;
  for (const part of token.split('.')) t.notOk(everything.includes(part));
  for (const option of ['--key-id', '--subject', '--token-id']) {
    const pasted = await revoke(t, [option, token, ...why]);
    t.equal(pasted.code(), 2, option);
    t.match(
      pasted.err(),
      /^error: \S+: tokens are not taken from arguments; allowed: on standard input, with --token-stdin$/m,
    );
    for (const part of token.split('.')) t.notOk(pasted.err().includes(part));
  }
  const [header = '', payload = '', signature = ''] = token.split('.');
  const torn = [`${header.slice(4)}.${payload}.${signature}`, `${header}.${payload.slice(0, 40)}.${signature}`];
  for (const stdin of ['', 'no token', 'a.b', 'a.b.c', 'a.b.c.d', 'a.b.c!', ...torn]) {
    const io = await revoke(t, ['--token-stdin', ...why], { stdin });
    t.equal(io.code(), 2, `no proxy would ever take it, so it revokes nothing: ${stdin}`);
    t.match(io.err(), /^error: standard input: .*; allowed: /);
  }
  t.equal(
    (await revoke(t, ['--token-stdin', ...why], { stdin: `${header}.${payload}.removed` })).code(),
    0,
    'its signature is not needed',
  );
  for (const reason of [`found ${token} in a log`, `found ${header}.${payload.slice(0, 40)}. in a log`]) {
    const told = await revoke(t, ['--subject', 'checkout', '--for', '3h', '--reason', reason]);
    t.equal(told.code(), 2);
    t.match(told.err(), /^error: --reason: allowed: .* without a token$/m);
    t.notOk(told.err().includes(header));
  }
});

t.test('for people, with the command that takes it back; undone it is let through', async (t) => {
  const made = await revoke(t, ['--subject', 'checkout', '--issuer', 'core', ...why]);
  const [, id = ''] = /^id {7}([\w-]{22})$/m.exec(made.out()) ?? [];
  t.match(made.out(), /^revoked {2}subject checkout of https:\/\/api\.example\.com$/m);
  t.match(made.out(), new RegExp(`^undo     sallyport revoke --config sallyport\\.yaml --undo ${id}$`, 'm'));
  const listed = await revoke(t, ['--list']);
  t.match(
    listed.out(),
    new RegExp(
      `^${id}  subject checkout of https://api\\.example\\.com; until \\d{4}-.*Z; by ${userInfo().username}: a leak$`,
      'm',
    ),
  );
  const undone = await revoke(t, ['--undo', id, '--reason', 'a mistake']);
  t.equal(undone.code(), 0, undone.err());
  t.match(undone.err(), /^undone: /);
  t.match(
    (await revoke(t, ['--list'])).out(),
    new RegExp(`^${id}  undone at .*Z; by ${userInfo().username}: a mistake$`, 'm'),
  );
  t.match(await list(t), { revocations: [], undone: [{ id, reason: 'a mistake' }] });
  const again = await revoke(t, ['--undo', id, '--json']);
  t.equal(again.code(), 0);
  t.match(JSON.parse(again.out()), { id, result: 'already', announced: true });
  const unknown = await revoke(t, ['--undo', 'A'.repeat(22)]);
  t.equal(unknown.code(), 1);
  t.match(unknown.err(), /holds no such revocation; that it is undone is written down all the same/);
  await redis.client.flushall();
  t.match((await revoke(t, ['--list'])).out(), /^nothing is revoked through the store$/m);
});

t.test('what an operator should think of is said', async (t) => {
  const rows: readonly { readonly args: readonly string[]; readonly stdin?: string; readonly says: RegExp | '' }[] = [
    { args: ['--key-id', 'd-1', '--for', '7204s'], says: /may end before the tokens .* is 7205 s/ },
    { args: ['--key-id', 'd-1', '--for', '7205s'], says: '' },
    { args: ['--issued-before', '2026-01-01T00:00:00Z', '--for', '5m'], says: /may end before the tokens/ },
    { args: ['--issued-before', new Date(Date.now() + 600_000).toISOString(), '--for', '3h'], says: /lies ahead/ },
    { args: ['--subject', 'checkout', '--for', '5m'], says: '' },
    {
      args: ['--subject', 'chekout', '--for', '5m'],
      says: /^warning: no route names this subject; did you mean checkout\? \(it is revoked all the same\)\n$/,
    },
    {
      args: ['--subject', 'billing', '--for', '5m'],
      says: /^warning: no route names this subject \(it is revoked all the same\)\n$/,
    },
    { args: ['--token-stdin', '--for', '1s'], stdin: token, says: /ends before the token does: it expires at 20/ },
    { args: ['--token-stdin', '--for', '3h'], stdin: token, says: '' },
    {
      args: ['--token-stdin', '--for', '5m'],
      stdin: mintToken({ key: rsaKey(), claims: { exp: 'never' } }),
      says: /may end before/,
    },
  ];
  for (const { args, stdin = '', says } of rows) {
    const io = await revoke(t, [...args, '--reason', 'x'], { stdin });
    t.equal(io.code(), 0, io.err());
    t.match(io.err(), says, args.join(' '));
    if (says === '') t.equal(io.err(), '', args.join(' '));
  }
});

const withSessions = {
  ...shared,
  sessions: {
    core_url: 'http://127.0.0.1:3567',
    api_key: 'a-key-of-more-than-20-characters',
    api_domain: 'https://api.example.com',
  },
  routes: [
    {
      name: 'list-orders',
      methods: ['GET'],
      path: '/orders',
      subjects: ['checkout'],
      permissions: ['orders:read'],
      accept: ['service', 'session'],
      session: { claims: { 'st-role.v': 'support' } },
    },
  ],
};

t.test('that tokens of sessions may outlive it is said where sessions are meant', async (t) => {
  const early = /^the revocation may end before the access tokens of sessions: .* access_token_validity of the Core/m;
  const ofIssuers = /^the revocation may end before the tokens/m;
  const before = ['--issued-before', '2026-01-01T00:00:00Z'];
  const rows: readonly { readonly args: readonly string[]; readonly says: readonly RegExp[] }[] = [
    { args: ['--key-id', 'd-1', '--issuer', 'sessions', '--for', '1m'], says: [early] },
    { args: ['--key-id', 'd-1', '--issuer', 'sessions', '--for', '3599s'], says: [early] },
    { args: ['--key-id', 'd-1', '--issuer', 'sessions', '--for', '1h'], says: [] },
    { args: [...before, '--issuer', 'sessions', '--for', '1m'], says: [early] },
    { args: ['--key-id', 'd-1', '--for', '1m'], says: [ofIssuers, early] },
    { args: ['--key-id', 'd-1', '--for', '1h'], says: [ofIssuers] },
    { args: ['--key-id', 'd-1', '--issuer', 'core', '--for', '1m'], says: [ofIssuers] },
    { args: ['--subject', 'user-1763', '--issuer', 'sessions', '--for', '1m'], says: [early] },
    { args: ['--subject', 'user-1763', '--for', '3599s'], says: [early] },
    { args: ['--subject', 'user-1763', '--for', '1h'], says: [] },
    { args: ['--subject', 'user-1763', '--issuer', 'core', '--for', '1m'], says: [] },
    { args: ['--subject', 'checkout', '--for', '1m'], says: [] },
    { args: ['--subject', 'checkout', '--issuer', 'sessions', '--for', '1m'], says: [early] },
    { args: ['--token-id', 'j-1', '--for', '1m'], says: [ofIssuers] },
  ];
  for (const { args, says } of rows) {
    const io = await revoke(t, [...args, '--reason', 'x'], { config: withSessions });
    t.equal(io.code(), 0, io.err());
    for (const one of [early, ofIssuers]) t.equal(one.test(io.err()), says.includes(one), args.join(' '));
  }
  const stdin = mintToken({ key: rsaKey(), claims: { exp: 'never' } });
  const token = await revoke(t, ['--token-stdin', '--for', '1m', '--reason', 'x'], { config: withSessions, stdin });
  t.match(token.err(), ofIssuers);
  t.notMatch(token.err(), early, 'one that says no end is none of a session');
});

t.test('where routes accept sessions, a subject may be a user, of whom no config knows', async (t) => {
  const rows: readonly { readonly args: readonly string[]; readonly says: RegExp }[] = [
    { args: ['--subject', 'user-1763'], says: /^$/ },
    { args: ['--subject', 'user-1763', '--issuer', 'sessions'], says: /^$/ },
    { args: ['--subject', 'user-1763', '--issuer', 'core'], says: /^warning: no route names this subject \(/ },
    { args: ['--subject', 'chekout'], says: /did you mean checkout\?/ },
  ];
  for (const { args, says } of rows) {
    const io = await revoke(t, [...args, ...why], { config: withSessions });
    t.equal(io.code(), 0, io.err());
    t.match(io.err(), says, args.join(' '));
  }
});

const usage: readonly { readonly name: string; readonly args: readonly string[]; readonly message: RegExp }[] = [
  { name: 'nothing', args: [], message: /exactly one of --key-id/ },
  { name: 'two things', args: ['--key-id', 'a', '--subject', 'b', ...why], message: /exactly one of/ },
  { name: 'a thing and a list', args: ['--key-id', 'a', ...why, '--list'], message: /exactly one of/ },
  { name: 'a list and an undo', args: ['--list', '--undo', 'A'.repeat(22)], message: /exactly one of/ },
  { name: 'no end', args: ['--key-id', 'a', '--reason', 'x'], message: /--for and --reason are needed/ },
  { name: 'no reason', args: ['--key-id', 'a', '--for', '1h'], message: /--for and --reason are needed/ },
  { name: 'too short', args: ['--key-id', 'a', '--for', '999ms', '--reason', 'x'], message: /Allowed: a duration/ },
  { name: 'too long', args: ['--key-id', 'a', '--for', '32d', '--reason', 'x'], message: /Allowed: a duration/ },
  {
    name: 'a reason of two lines',
    args: ['--key-id', 'a', '--for', '1h', '--reason', 'x\ny'],
    message: /without control characters/,
  },
  { name: 'an empty reason', args: ['--key-id', 'a', '--for', '1h', '--reason', ' '], message: /1 to 500 characters/ },
  { name: 'no key id', args: ['--key-id', '', ...why], message: /--key-id: allowed: 1 to 256 visible/ },
  {
    name: 'a subject with a space',
    args: ['--subject', 'a b', ...why],
    message: /--subject: allowed: 1 to 1024 visible/,
  },
  {
    name: 'no token id',
    args: ['--token-id', 'j'.repeat(257), ...why],
    message: /--token-id: allowed: 1 to 256 visible/,
  },
  { name: 'no time', args: ['--issued-before', 'yesterday', ...why], message: /Allowed: a time such as/ },
  {
    name: 'a time after the year 9999 in UTC',
    args: ['--issued-before', '9999-12-31T23:59:59-01:00', ...why],
    message: /--issued-before: allowed: a time/,
  },
  {
    name: 'another issuer',
    args: ['--key-id', 'a', ...why, '--issuer', 'partner'],
    message: /no such issuer in the config; allowed: core/,
  },
  { name: 'an undo of no id', args: ['--undo', 'abc'], message: /--undo: allowed: an id of 22 characters/ },
  {
    name: 'an undo for a time',
    args: ['--undo', 'A'.repeat(22), '--for', '1h'],
    message: /of no use with --list and --undo/,
  },
  { name: 'a list with a reason', args: ['--list', '--reason', 'x'], message: /of no use with --list/ },
];

t.test('wrong usage exits with 2', async (t) => {
  for (const { name, args, message } of usage) {
    const io = await revoke(t, args, { config: { store: { redis: { url: 'redis://127.0.0.1:1' } } } });
    t.equal(io.code(), 2, name);
    t.match(io.err(), message, name);
    t.equal(io.out(), '', name);
  }
});

t.test('a store that sends what is no reply is out of reach', async (t) => {
  const { port } = await startFakeRedis(t, () => '>1\r\n_\r\n');
  const config = { store: { redis: { url: `redis://127.0.0.1:${String(port)}` } } };
  for (const args of [['--list'], ['--subject', 'a', ...why]]) {
    const io = await revoke(t, args, { config });
    t.equal(io.code(), 3);
    t.equal(io.out(), '');
    t.match(io.err(), /^error: the store is out of reach: the server sends what is not RESP 2\n/);
  }
});

t.test('a list that is not answered has changed nothing', async (t) => {
  const beginning = ['select', 'info', 'auth', 'client'];
  const { port } = await startFakeRedis(t, ([name = '']) => {
    if (name === 'info') return bulk('redis_version:7.0.0\r\nrole:master\r\n');
    return beginning.includes(name) ? '+OK\r\n' : '$3\r\nodd\r\n';
  });
  const config = { store: { redis: { url: `redis://127.0.0.1:${String(port)}` } } };
  const io = await revoke(t, ['--list'], { config });
  t.equal(io.code(), 3);
  t.equal(io.err(), 'error: the store gave no answer: the server answers what was not asked\n');
});

t.test('a store that nobody else sees, that is not there, or that is full', async (t) => {
  const memory = await revoke(t, ['--list'], { config: { store: { memory: {} } } });
  t.equal(memory.code(), 2);
  t.match(memory.err(), /in the memory of the proxy: nobody else sees it\. Write `revoked` in the config instead/);
  t.match(await revoke(t, ['--list'], { config: {} }).then((io) => [io.code(), io.err()]), [2, /configures no store/]);
  const away = await revoke(t, ['--subject', 'a', ...why], {
    config: { store: { redis: { url: `redis://127.0.0.1:${String(await freePort())}` } } },
  });
  t.equal(away.code(), 3);
  t.match(away.err(), /^error: the store is out of reach: .*ECONNREFUSED/);
  const now = Date.now();
  const record = `1 ${String(now)} ${String(now + 600_000)} {"kind":"subject","value":"a","issuer":null,"reason":"x","author":"y"}`;
  const names = Array.from({ length: maxRevocationRecords }, (_, index) => `e:${String(index).padStart(22, 'A')}`);
  await redis.client.hset(key, Object.fromEntries(names.map((name) => [name, record])));
  const full = await revoke(t, ['--subject', 'a', ...why]);
  t.equal(full.code(), 1);
  t.match(full.err(), /holds 5000 revocations already/);
  await redis.client.del(key);
  await redis.client.set(key, 'theirs');
  for (const args of [['--list'], ['--subject', 'a', ...why], ['--undo', 'A'.repeat(22)]]) {
    const foreign = await revoke(t, args);
    t.equal(foreign.code(), 3, args.join(' '));
    t.match(foreign.err(), /WRONGTYPE/);
  }
});

t.test('a long list is printed in the order of its making', async (t) => {
  const now = Date.now();
  const numbers = Array.from({ length: 600 }, (_, index) => (index * 7) % 600);
  const fields = numbers.map((number) => {
    const value = JSON.stringify({
      kind: 'subject',
      value: `caller-${String(number)}`,
      issuer: null,
      reason: 'x',
      author: 'y',
    });
    return [
      `e:${String(number).padStart(22, 'A')}`,
      `1 ${String(now - 1_000 + number)} ${String(now + 600_000)} ${value}`,
    ] as const;
  });
  await redis.client.hset(key, Object.fromEntries(fields));
  const expected = numbers.map((_, index) => `caller-${String(index)}`);
  t.same(
    (await list(t)).revocations.map(({ value }) => value),
    expected,
  );
  t.same(
    [...(await revoke(t, ['--list'])).out().matchAll(/subject (caller-\d+);/g)].map(([, value]) => value),
    expected,
  );
});

t.test('what cannot be read is listed, whatever it is', async (t) => {
  await redis.client.hset(key, { 'e:\u001b[31mred': 'x', ['u:A']: 'y' });
  const io = await revoke(t, ['--list']);
  t.equal(io.code(), 0);
  t.notMatch(io.out(), /\u001b/);
  t.equal(
    io
      .out()
      .split('\n')
      .filter((line) => line.includes('cannot be read')).length,
    2,
  );
  t.equal((await list(t)).unreadable.length, 2);
});

t.test('a revocation that cannot be published counts all the same, with a warning', async (t) => {
  await redis.client.call('ACL', 'SETUSER', 'quiet', 'on', 'nopass', '~*', '+@all', 'resetchannels');
  const config = { store: { redis: { url: `redis://127.0.0.1:${String(redis.port)}`, username: 'quiet' } } };
  const io = await revoke(t, ['--subject', 'checkout', ...why], { config });
  t.equal(io.code(), 0, io.err());
  t.match(io.err(), /did not pass the news on/);
  t.equal((await list(t)).revocations.length, 1);
});
