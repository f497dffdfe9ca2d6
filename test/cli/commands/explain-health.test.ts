/** Probes of gRPC that Sallyport answers itself, as `explain` and `test` tell of them. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { run } from '../../../src/cli/program.js';
import { tempDir } from '../../support/temp-dir.js';
import { baseConfig } from '../../support/proxy-process.js';
import { captureIo } from '../captured-io.js';
import { explain, post } from './run-explain.js';

const check = '/grpc.health.v1.Health/Check';
const grpc = ['--header', 'Content-Type: application/grpc'];
const answers = { listen: { http2: true, grpc_health: 'answer' } };

t.test('explain says that Sallyport answers it', async (t) => {
  const io = await explain(t, [...post(check), ...grpc], { config: answers });
  t.equal(io.code(), 0, io.err());
  t.match(io.out(), /request +ok +POST, 2 headers\n +listen\.grpc_health is answer: Sallyport answers it itself/);
  t.match(io.out(), /allowed: answered by Sallyport\n$/);
  const json = await explain(t, [...post(check), ...grpc, '--json'], { config: answers });
  t.match(JSON.parse(json.out()), { decision: 'allowed', status: 200, reason: null, route: null, headers: null });
});

t.test('explain says of anything else what becomes of it', async (t) => {
  const others = [
    { words: [...post(check), ...grpc], config: { listen: { http2: true } } },
    { words: post(check), config: answers },
    { words: [...post('/grpc.health.v1.Other/Check'), ...grpc], config: answers },
    { words: ['--method', 'GET', '--path', check, ...grpc], config: answers },
  ];
  for (const { words, config } of others) {
    const io = await explain(t, words, { config });
    t.equal(io.code(), 1, words.join(' '));
    t.match(io.out(), /denied: 401 credential_missing/, words.join(' '));
  }
});

t.test('policy tests expect of a probe what it is answered', async (t) => {
  const cwd = tempDir(t);
  const suite = `config: ./sallyport.yaml
cases:
  - { name: a probe, request: { grpc: grpc.health.v1.Health/Check }, expect: { status: 200, reason: null, reservation: none } }
`;
  writeFileSync(join(cwd, 'probes.test.yaml'), suite);
  for (const [config, code] of [
    [answers, 0],
    [{ listen: { http2: true } }, 1],
  ] as const) {
    writeFileSync(join(cwd, 'sallyport.yaml'), baseConfig(config));
    const io = captureIo({ cwd });
    await run(['test', 'probes.test.yaml'], io);
    t.equal(io.code(), code, io.out() + io.err());
  }
});
