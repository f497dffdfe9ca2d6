import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import t from 'tap';
import { systemTimers } from '../../../src/adapters/system/clock.js';
import { createLogger, type Logger } from '../../../src/adapters/log/logger.js';
import type { LogLevel } from '../../../src/config/types.js';
import type { LogFields } from '../../../src/ports/system.js';
import type { RequestRecord } from '../../../src/ports/observability.js';
import { sh } from '../../support/sh.js';
import { mintToken } from '../../support/tokens.js';
import { rsaKey } from '../../support/keys.js';

const record: RequestRecord = {
  request_id: 'r-1',
  route: 'list-orders',
  method: 'GET',
  path: '/orders',
  decision: 'forwarded',
  reason: null,
  kind: 'service',
  issuer: 'core',
  subject: 'checkout',
  key_id: 'd-1',
  status: 200,
  duration_ms: 3.5,
  upstream_ms: 2.25,
  record: null,
  trace_id: null,
  protocol: 'HTTP/1.1',
  grpc_status: null,
  client_address: '203.0.113.7',
  user_agent: 'curl/8.5.0',
};

const settings = { refusalsPerSecond: null, clientAddress: true, userAgent: true };

interface Captured extends Logger {
  readonly lines: string[];
  readonly last: () => Record<string, unknown>;
}

function capture(level: LogLevel = 'info'): Captured {
  const lines: string[] = [];
  const logger = createLogger({
    ...settings,
    level,
    timers: systemTimers,
    destination: { write: (line) => lines.push(line) },
  });
  return { ...logger, lines, last: () => JSON.parse(lines.at(-1) ?? '') as Record<string, unknown> };
}

t.test('one JSON line per request, with these fields', (t) => {
  const { request, lines, last } = capture();
  request(record);
  t.equal(lines.length, 1);
  t.match(lines[0], /^[^\n]+\n$/);
  const { time, level, ...fields } = last();
  t.same(fields, record);
  t.equal(level, 'info');
  t.match(time, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/, 'RFC 3339 with milliseconds');
  t.end();
});

t.test('a request line holds nothing but its fields', (t) => {
  const { request, lines } = capture();
  request({ ...record, headers: { authorization: 'Bearer abc' }, body: 'secret' } as RequestRecord);
  t.notMatch(lines[0], /abc|secret|headers/);
  t.end();
});

t.test('events have a message and fields', (t) => {
  const { log, last } = capture('debug');
  for (const level of ['debug', 'info', 'warn', 'error'] as const) {
    log[level]('keys loaded', { issuer: 'core', keys: 2, usable: true, error: null, key_ids: ['d-1', 'd-2'] });
    t.match(last(), {
      level,
      msg: 'keys loaded',
      issuer: 'core',
      keys: 2,
      usable: true,
      error: null,
      key_ids: ['d-1', 'd-2'],
    });
    log[level]('without fields');
    t.match(last(), { level, msg: 'without fields' });
  }
  t.end();
});

t.test('the level decides what is written, and changes with the next line', (t) => {
  const { log, request, use, lines } = capture('warn');
  log.debug('no');
  log.info('no');
  request(record);
  t.equal(lines.length, 0);
  log.warn('yes');
  log.error('yes');
  t.equal(lines.length, 2);
  use({ ...settings, level: 'debug' });
  log.debug('yes');
  request(record);
  t.equal(lines.length, 4);
  use({ ...settings, level: 'error' });
  log.warn('no');
  t.equal(lines.length, 4);
  t.end();
});

t.test('no secret is written, even where a caller of the logger forgot', (t) => {
  const token = mintToken({ key: rsaKey() });
  const [head = '', payload = ''] = token.split('.');
  const rows: { name: string; fields: LogFields; leaked: string }[] = [
    { name: 'a field named authorization', fields: { Authorization: 'Bearer abc' }, leaked: 'abc' },
    { name: 'a cookie', fields: { set_cookie: 'sAccessToken=abc' }, leaked: 'abc' },
    { name: 'a password', fields: { redis_password: 'abc' }, leaked: 'abc' },
    { name: 'an api key', fields: { api_key: 'abc' }, leaked: 'abc' },
    { name: 'a token', fields: { token: 'abc' }, leaked: 'abc' },
    { name: 'a query', fields: { query: 'a=abc' }, leaked: 'abc' },
    { name: 'a token in a text', fields: { error: `not accepted: ${token}!` }, leaked: payload },
    { name: 'a token without its signature', fields: { error: `${head}.${payload}.` }, leaked: payload },
    { name: 'a token behind other characters', fields: { error: `a-b.x${token}` }, leaked: payload },
    { name: 'a token in a list', fields: { errors: ['x', token] }, leaked: payload },
    { name: 'the user of a URL', fields: { url: 'redis://user:abc@redis:6379/0' }, leaked: 'abc' },
    { name: 'an object', fields: { req: { x: 'abc' } } as unknown as LogFields, leaked: 'abc' },
  ];
  const { log, lines, request } = capture('debug');
  for (const { name, fields, leaked } of rows) {
    log.error('failed', fields);
    t.notOk(lines.at(-1)?.includes(leaked), name);
    t.ok(lines.at(-1)?.includes('[redacted]'), name);
  }
  log.error(`failed with ${token}`);
  t.notOk(lines.at(-1)?.includes(payload), 'in the message');
  request({ ...record, path: `/orders/${token}/x` });
  t.match(JSON.parse(lines.at(-1) ?? ''), { path: '/orders/[redacted]/x' });
  request({ ...record, user_agent: `agent/1 (${token})` });
  t.match(JSON.parse(lines.at(-1) ?? ''), { user_agent: 'agent/1 ([redacted])' });
  t.end();
});

t.test('a path made to look like a thousand tokens costs no more than another', (t) => {
  const { log, lines } = capture();
  const odd = 'eyJ'.repeat(400_000);
  // Read anew from each `eyJ` it would take minutes.
  const startedMs = performance.now();
  log.info(odd);
  log.info(`${odd}.x`);
  t.ok(performance.now() - startedMs < 10_000);
  t.match(lines[0], odd);
  t.match(lines[1], '"msg":"[redacted]"');
  t.end();
});

t.test('no character breaks or disguises a line', (t) => {
  const { log, request, lines, last } = capture();
  const odd = 'a\r\nb\u0000\u001b[31m\u007f\u0085\u009b\u2028\u2029\u200e\u202e\u2066c"\\\ud800';
  log.info(odd, { value: odd });
  request({ ...record, path: odd, method: odd, key_id: odd });
  for (const line of lines) {
    t.match(line, /^[\x20-\x7e]+\n$/, 'one line of visible ASCII');
    t.doesNotThrow(() => JSON.parse(line) as unknown);
  }
  t.equal(last()['path'], odd, 'and nothing is lost');
  log.info('Zo\u00eb', { subject: '\u{1f600}' });
  t.match(lines.at(-1), /Zo\u00eb/);
  t.match(lines.at(-1), /\u{1f600}/u);
  t.end();
});

t.test('standard output has every line when the process ends', async (t) => {
  const module = JSON.stringify(new URL('../../../src/adapters/log/logger.js', import.meta.url).href);
  const script = (end: string): string => `import { createLogger } from ${module};
    const { log, flush } = createLogger({ level: 'info', ...${JSON.stringify(settings)}, timers: { after: () => () => undefined } });
    for (let i = 0; i < 500; i += 1) log.info('line', { i });
    ${end}`;
  const ends = {
    'by itself': '',
    'after a flush': 'flush(); flush(); process.exit();',
    'by exit': 'process.exit();',
    'by a bug': 'throw new Error("bug");',
  };
  await Promise.all(
    Object.entries(ends).map(async ([name, end]) => {
      const run = promisify(execFile)(process.execPath, ['--input-type=module', '--eval', script(end)]);
      const stdout = await run.then(
        (done) => done.stdout,
        (error: unknown) => (error as { stdout: string }).stdout,
      );
      const lines = stdout
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line) as { i: number });
      t.same(
        lines.map(({ i }) => i),
        Array.from({ length: 500 }, (_, i) => i),
        name,
      );
    }),
  );
});

t.test('a reader of standard output that leaves does not end the process', async (t) => {
  const module = JSON.stringify(new URL('../../../src/adapters/log/logger.js', import.meta.url).href);
  const script = `import { createLogger } from ${module};
    const { log, flush } = createLogger({ level: 'info', ...${JSON.stringify(settings)}, timers: { after: () => () => undefined } });
    let rounds = 0;
    const timer = setInterval(() => {
      for (let i = 0; i < 1000; i += 1) log.info('line', { i, text: 'x'.repeat(100) });
      flush();
      rounds += 1;
      if (rounds < 20) return;
      clearInterval(timer);
      process.stderr.write('went on');
    }, 5);`;
  const command = '"$0" --input-type=module --eval "$1" | head -n 1 >/dev/null';
  const { stderr } = await promisify(execFile)(sh, ['-c', command, process.execPath, script]);
  t.equal(stderr, 'went on');
});
