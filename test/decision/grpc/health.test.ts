import t from 'tap';
import { healthResponse, isHealthPath } from '../../../src/decision/grpc/health.js';
import { frameMessage } from '../../../src/decision/grpc/messages.js';

const check = '/grpc.health.v1.Health/Check';
const whole = frameMessage(new Uint8Array());
const ofService = frameMessage(Buffer.from('\x0a\x06orders'));

t.test('health-checking.md: Check is answered by readiness', (t) => {
  t.same(healthResponse(check, whole, true), {
    headers: ['content-type', 'application/grpc'],
    body: Buffer.from([0, 0, 0, 0, 2, 8, 1]),
    trailers: ['grpc-status', '0'],
  });
  t.same(healthResponse(check, whole, false).body, Buffer.from([0, 0, 0, 0, 2, 8, 2]));
  t.end();
});

const failures: readonly (readonly [string, string, Uint8Array, string])[] = [
  ['of a service by its name nothing is said', check, ofService, '5'],
  ['a body that is no message', check, Buffer.from([0]), '13'],
  ['a message that is too long', check, frameMessage(Buffer.alloc(513)), '13'],
  ['Watch is not there', '/grpc.health.v1.Health/Watch', whole, '12'],
  ['List is not there', '/grpc.health.v1.Health/List', whole, '12'],
  ['paths count to the letter', '/grpc.health.v1.Health/check', whole, '12'],
];

for (const [name, path, body, status] of failures) {
  t.test(name, (t) => {
    t.same(healthResponse(path, body, true), {
      headers: ['content-type', 'application/grpc', 'grpc-status', status],
      body: new Uint8Array(),
      trailers: [],
    });
    t.end();
  });
}

t.test('what is a path of the health service', (t) => {
  t.ok(isHealthPath(check));
  t.notOk(isHealthPath('/grpc.health.v1.health/Check'));
  t.notOk(isHealthPath('/grpc.health.v1.HealthX/Check'));
  t.end();
});
