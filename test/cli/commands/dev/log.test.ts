import t from 'tap';
import { devLog } from '../../../../src/cli/commands/dev/log.js';
import { memoryWarning } from '../../../../src/config/sections/store.js';

const request = {
  level: 'info',
  time: '2026-05-04T09:12:44.031Z',
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
  duration_ms: 1,
  upstream_ms: 1,
  record: null,
};

t.test('log lines as dev prints them', async (t) => {
  const cases = [
    { name: 'a request', line: request, expected: '200 GET /orders list-orders by checkout forwarded\n' },
    {
      name: 'a refusal, with its reason',
      line: { ...request, status: 401, subject: null, decision: 'denied', reason: 'token_expired' },
      expected: '401 GET /orders list-orders denied token_expired\n',
    },
    {
      name: 'controls shown as escapes',
      line: { ...request, path: '/a\u001b[31m\nb' },
      expected: '200 GET /a\\x1b[31m\\x0ab list-orders by checkout forwarded\n',
    },
    {
      name: 'a warning',
      line: { level: 'warn', time: 'now', msg: 'careful', issuer: 'core' },
      expected: 'warn: careful {"issuer":"core"}\n',
    },
    {
      name: 'an error',
      line: { level: 'error', time: 'now', msg: 'the config was not reloaded' },
      expected: 'error: the config was not reloaded {}\n',
    },
    {
      name: 'nothing of the store, which is dev’s own',
      line: { level: 'warn', msg: 'the config has a warning', warning: `x:1:1: warning: ${memoryWarning}; …` },
      expected: '',
    },
    {
      name: 'nothing of events that are as they should be',
      line: { level: 'info', time: 'now', msg: 'listening', port: 1 },
      expected: '',
    },
  ];
  for (const { name, line, expected } of cases) {
    let out = '';
    devLog((text) => {
      out += text;
    }).write(`${JSON.stringify(line)}\n`);
    t.equal(out, expected, name);
  }
});

t.test('a line that is no JSON object is passed over', async (t) => {
  for (const line of ['', 'text', '{', 'null', '5']) {
    let out = '';
    devLog((text) => {
      out += text;
    }).write(line);
    t.equal(out, '', line);
  }
});
