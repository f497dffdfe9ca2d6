/** docs/contract.md: its tables and lists are those of the code and of the pages that it links. */
import t from 'tap';
import { responses, type RefusalResponse } from '../../src/decision/denial.js';
import { readProjectFile } from '../support/source-files.js';
import { codeSpans, tableOf } from './pages.js';

const page = 'docs/contract.md';
const text = readProjectFile(page);

t.test('every response has a row with its statuses and its error, and there is no other row', (t) => {
  const promised = new Map<string, Set<string>>();
  for (const answer of Object.values<RefusalResponse>(responses)) {
    const row = `${answer.type === null ? 'about:blank' : `urn:sallyport:${answer.type}`} ${answer.error}`;
    // Those that tell nothing have a row for each status.
    const key = answer.type === null ? `${row} ${answer.status}` : row;
    promised.set(key, (promised.get(key) ?? new Set()).add(String(answer.status)));
  }
  const rows = tableOf(page, 'answers').map(([type = '', status = '', error = '']) => {
    const name = `${codeSpans(type).join()} ${codeSpans(error).join()}`;
    return [name.startsWith('about:blank') ? `${name} ${status}` : name, status.split(', ')] as const;
  });
  t.same(rows.map(([name]) => name).toSorted(), [...promised.keys()].toSorted());
  for (const [name, statuses] of rows) t.same(statuses.toSorted(), [...(promised.get(name) ?? [])].toSorted(), name);
  t.end();
});

t.test('whoever may come again is promised a Retry-After', (t) => {
  for (const [type = '', , , promises = ''] of tableOf(page, 'answers')) {
    const asks = Object.values<RefusalResponse>(responses).some(
      (answer) => answer.retryAfterS !== undefined && type.includes(`urn:sallyport:${answer.type}\``),
    );
    // How long a first attempt still takes is known by its lease, not by the table of answers.
    const expected = asks || type.includes('idempotency-in-progress');
    t.equal(promises.includes('`Retry-After`'), expected, type);
  }
  t.end();
});

t.test('its commands are those of docs/cli.md', (t) => {
  const commands = tableOf(page, 'commands').map(([name = '']) => codeSpans(name)[0]);
  const documented = [...readProjectFile('docs/cli.md').matchAll(/^## (\w+)$/gm)].map(([, name]) => name);
  t.same(commands.toSorted(), documented.toSorted());
  t.end();
});

t.test('its metrics are those that docs/operations.md explains', (t) => {
  const [, list = ''] = /<!-- metrics -->\n([^]*?)<!-- \/metrics -->/.exec(text) ?? [];
  const [, explained = ''] = /\n## Metrics\n([^]*?)\n### /.exec(readProjectFile('docs/operations.md')) ?? [];
  const rows = explained.split('\n').flatMap((line) => codeSpans(/^\| (`sallyport_.*?) \|/.exec(line)?.[1] ?? ''));
  t.ok(rows.length > 30);
  t.same(codeSpans(list).toSorted(), rows.toSorted());
  t.end();
});

t.test('its sections keep their numbers', (t) => {
  const numbers = [...text.matchAll(/^#{2,3} (\d(?:\.\d)?)\.? /gm)].map(([, number]) => number);
  t.same(numbers, [
    '1',
    '2',
    '3',
    '3.1',
    '3.2',
    '3.3',
    '3.4',
    '3.5',
    '3.6',
    '3.7',
    '3.8',
    '3.9',
    '4',
    '4.1',
    '4.2',
    '4.3',
    '5',
    '6',
    '7',
    '8',
    '9',
  ]);
  t.end();
});
