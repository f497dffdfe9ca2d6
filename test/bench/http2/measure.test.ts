/** What is measured over HTTP/2 still runs: every pair, for a fraction of a second. */
import t from 'tap';
import { readH2load } from '../../support/h2load.js';
import { http2CpuTable, http2Table, measureHttp2, missingForHttp2 } from './measure.js';

t.test('every pair is answered with success by all that take part', async (t) => {
  t.same(missingForHttp2(), []);
  const printed: string[] = [];
  const measured = await measureHttp2(t, {
    seconds: 0.3,
    rounds: 1,
    connections: 16,
    onRun: (text) => printed.push(text),
  });
  const names = ['Sallyport', 'HAProxy, jwt_verify', 'naive proxy of Node.js', 'node:http2, answers by itself'];
  t.same(
    measured.map(({ title, entrants }) => [title, entrants.map(({ name }) => name)]),
    [
      ['HTTP/2 → HTTP/1.1', names],
      ['HTTP/2 → HTTP/2', names],
      ['gRPC, unary, HTTP/2 → HTTP/2', names],
    ],
  );
  t.equal(printed.length, 12);
  const row = String.raw`\| HTTP/2 → HTTP/2 \| Sallyport \|`;
  t.match(http2Table(measured), new RegExp(String.raw`${row} \d+\.\d\d \| \d+\.\d\d \| \d+\.\d\d \|`));
  t.match(http2CpuTable(measured), new RegExp(String.raw`${row} \d+\.\d \| \d+ \|`));
});

t.test('a response counts as right where it is a success and has its body', (t) => {
  const output = (codes: string, data: number, failed = 0): string =>
    [
      `requests: 10 total, 12 started, 10 done, ${String(10 - failed)} succeeded, ${String(failed)} failed, 0 errored, 0 timeout`,
      `status codes: ${codes} 2xx, 0 3xx, 0 4xx, 0 5xx`,
      `traffic: 9.8KB (10000) total, 1KB (1000) headers (space savings 90.00%), 0.4KB (${String(data)}) data`,
    ].join('\n');
  const read = (text: string): unknown => readH2load(text, { seconds: 2, answerBytes: 37 });
  t.same(read(output('10', 370)), { requests: 10, wrong: 0, seconds: 2 });
  t.match(read(output('10', 0)), { wrong: 10 }, 'a refusal in gRPC’s form is a 200 without a message');
  t.match(read(output('7', 370)), { wrong: 3 }, 'another status');
  t.match(read(output('10', 370, 1)), { wrong: 2 }, 'a stream that failed');
  t.match(read('nothing was listening'), { requests: 0, wrong: 0 });
  t.end();
});
