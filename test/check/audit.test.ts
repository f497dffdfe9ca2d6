import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import t from 'tap';
import { projectDir } from '../support/project-dir.js';

interface Found {
  readonly name: string;
  readonly severity: string;
  readonly titles: readonly string[];
}

t.test('what npm audit says is read; what a registry that does not answer says is no finding', async (t) => {
  const loaded: unknown = await import(pathToFileURL(join(projectDir, 'test/check/audit.mjs')).href);
  const { readAudit } = loaded as { readAudit: (output: string) => readonly Found[] | null };
  const cases: readonly { name: string; output: string; expected: readonly Found[] | null }[] = [
    { name: 'nothing', output: '', expected: null },
    { name: 'no JSON', output: 'npm error network', expected: null },
    {
      name: 'a registry that does not know the question',
      output: '{"message":"405 Method Not Allowed","error":{"summary":"","detail":""}}',
      expected: null,
    },
    { name: 'none found, after a warning', output: 'npm warn x\n{"vulnerabilities":{},"metadata":{}}\n', expected: [] },
    {
      name: 'one, and one through it',
      output: JSON.stringify({
        vulnerabilities: {
          a: { name: 'a', severity: 'high', via: [{ title: 'ReDoS in a' }] },
          b: { name: 'b', severity: 'low', via: ['a'] },
        },
      }),
      expected: [
        { name: 'a', severity: 'high', titles: ['ReDoS in a'] },
        { name: 'b', severity: 'low', titles: ['through a'] },
      ],
    },
  ];
  for (const { name, output, expected } of cases) t.same(readAudit(output), expected, name);
});
