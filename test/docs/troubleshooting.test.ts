import t from 'tap';
import { answers, type Reason } from '../../src/decision/denial.js';
import { readProjectFile } from '../support/source-files.js';
import { codeSpans } from './pages.js';

const page = readProjectFile('docs/troubleshooting.md');

function isReason(text: string): text is Reason {
  return text in answers;
}

/** The reasons of the table below a heading: the first cell of each row names some. */
function reasonsBelow(heading: string): readonly Reason[] {
  const [, text = ''] = page.split(`\n## ${heading}\n`);
  const [section = ''] = text.split('\n## ');
  const named = [...section.matchAll(/^\| (`[^|]*`) \|/gm)]
    .flatMap(([, cell = '']) => codeSpans(cell))
    .filter((name) => name !== 'reason');
  return named.filter((name): name is Reason => {
    t.ok(isReason(name), `${heading}: ${name} is a reason`);
    return isReason(name);
  });
}

const sections: readonly (readonly [string, (status: number) => boolean])[] = [
  ['401', (status) => status === 401],
  ['403', (status) => status === 403],
  ['400', (status) => status === 400],
  ['502, 503 and 504', (status) => status >= 502 && status <= 504],
];

t.test('docs/troubleshooting.md names reasons where their status is', (t) => {
  for (const [heading, holds] of sections) {
    const reasons = reasonsBelow(heading);
    t.ok(reasons.length > 3, heading);
    for (const reason of reasons) t.ok(holds(answers[reason].status), `${heading}: ${reason}`);
  }
  t.end();
});
