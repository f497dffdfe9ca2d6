import t from 'tap';
import { answers } from '../../src/decision/denial.js';
import { blockThatBegins } from './fenced-blocks.js';
import { tableOf } from './pages.js';

const page = 'docs/http.md';

t.test('docs/http.md has each type of refusal with its statuses', (t) => {
  const statuses = new Map<string, Set<number>>();
  const entries = Object.entries(answers).filter(([reason]) => reason !== 'caller_gone').map(([, answer]) => answer);
  for (const { type, status } of entries) {
    const name = type === null ? 'about:blank' : `urn:sallyport:${type}`;
    statuses.set(name, (statuses.get(name) ?? new Set()).add(status));
  }
  const written = tableOf(page, 'types').map(([type = '', status = '']) => [type.replaceAll('`', ''), status.match(/\d{3}/g)?.map(Number)]);
  const expected = [...statuses].map(([type, set]) => [type, [...set].sort((a, b) => a - b)]);
  t.same([...written].sort(), [...expected].sort());
  const waits = new Set(entries.flatMap((answer) => ('retryAfterS' in answer ? [`urn:sallyport:${answer.type}`] : [])));
  for (const [type = '', status = ''] of tableOf(page, 'types')) {
    if (waits.has(type.replaceAll('`', ''))) t.match(status, /Retry-After/, type);
  }
  t.end();
});

t.test('the refusal that it shows is one', (t) => {
  const { type, title, status } = answers.body_too_large;
  t.same(JSON.parse(blockThatBegins(page, '{ "type"').text), { type: `urn:sallyport:${type}`, title, status });
  t.end();
});
