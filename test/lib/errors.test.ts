import t from 'tap';
import { messageOf, networkFailure, writeFailure } from '../../src/lib/errors.js';

function withCode(code: string): Error {
  return Object.assign(new Error('what was received'), { code });
}

t.test('an error is told by its code, never by its message', async (t) => {
  const cases = [
    { error: withCode('ECONNREFUSED'), says: 'the connection was refused (ECONNREFUSED)' },
    { error: withCode('HPE_INVALID_CONSTANT'), says: 'the response is not HTTP (HPE_INVALID_CONSTANT)' },
    { error: withCode('E_OTHER'), says: 'the request failed (E_OTHER)' },
    {
      error: new AggregateError([withCode('EHOSTUNREACH'), withCode('ECONNREFUSED')]),
      says: 'the host cannot be reached (EHOSTUNREACH)',
    },
    { error: new TypeError('x', { cause: withCode('ECONNRESET') }), says: 'the connection broke (ECONNRESET)' },
    { error: new DOMException('what was received', 'TimeoutError'), says: 'the request failed (TimeoutError)' },
    { error: new TypeError('what was received'), says: 'the request failed (TypeError)' },
    { error: 'what was received', says: 'the request failed (unknown error)' },
    { error: undefined, says: 'the request failed (unknown error)' },
  ];
  for (const { error, says } of cases) t.equal(networkFailure(error), says);
});

t.test('an error of ours is told by its message', async (t) => {
  t.equal(messageOf(new Error('it is closed')), 'it is closed');
  t.equal(messageOf('what was received'), 'unknown error');
});

t.test('why a file cannot be written is said in words', async (t) => {
  const cases = [
    { code: 'ENOENT', says: 'its folder does not exist' },
    { code: 'EACCES', says: 'may not be written by this user' },
    { code: 'EPERM', says: 'may not be written by this user' },
    { code: 'EISDIR', says: 'cannot be written (EISDIR)' },
  ];
  for (const { code, says } of cases) t.equal(writeFailure(withCode(code)), says);
});
