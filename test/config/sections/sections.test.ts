import t from 'tap';
import { sections } from '../../../src/config/sections/index.js';
import { projectFiles } from '../../support/source-files.js';

/** The sections that a file declares. */
async function declaredIn(path: string): Promise<readonly object[]> {
  const module: unknown = await import(`../../../../${path.replace('src/', '.build/src/').replace(/\.ts$/, '.js')}`);
  return Object.values(module as object).filter(
    (value: unknown): value is object =>
      typeof value === 'object' && value !== null && Object.hasOwn(value, 'schema') && Object.hasOwn(value, 'compile'),
  );
}

t.test('each section stands in the file of its name, and each that a file declares is in the list', async (t) => {
  const names = new Map<object, string>(Object.entries(sections).map(([name, section]) => [section, name]));
  const files = projectFiles('src/config/sections').filter((path) => !path.endsWith('/index.ts'));
  for (const path of files) {
    for (const section of await declaredIn(path)) {
      const name = names.get(section);
      t.equal(path.slice(path.lastIndexOf('/') + 1), `${String(name).replaceAll('_', '-')}.ts`);
      names.delete(section);
    }
  }
  t.same([...names.values()], [], 'sections of the list without a file');
});
