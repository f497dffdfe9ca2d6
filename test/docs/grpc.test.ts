import t from 'tap';
import { responseOf, reasons } from '../../src/decision/denial.js';
import { grpcCodeOf } from '../../src/decision/grpc/refusal.js';
import { grpcNumberOf } from '../../src/decision/grpc/status.js';
import { readProjectFile } from '../support/source-files.js';

t.test('docs/grpc.md names the code of every refusal, and the statuses that it stands for', (t) => {
  const [, table = ''] = /<!-- codes -->([^]*?)<!-- \/codes -->/.exec(readProjectFile('docs/grpc.md')) ?? [];
  const told = new Map(
    [...table.matchAll(/^\| (\d+ [A-Z_]+) \|([\d, ]*)\|/gm)].map(([, code = '', statuses = '']) => [
      code,
      statuses
        .split(',')
        .map((status) => status.trim())
        .filter((status) => status !== ''),
    ]),
  );
  const expected = new Map<string, Set<string>>();
  for (const reason of reasons) {
    const code = grpcCodeOf(reason);
    const name = `${grpcNumberOf(code)} ${code}`;
    const statuses = expected.get(name) ?? new Set();
    // Nobody is there to be told a status.
    if (reason !== 'caller_gone') statuses.add(String(responseOf(reason).status));
    expected.set(name, statuses);
  }
  t.same(
    [...told].map(([code, statuses]) => [code, statuses.toSorted()]).sort(),
    [...expected].map(([code, statuses]) => [code, [...statuses].sort()]).sort(),
  );
  t.end();
});
