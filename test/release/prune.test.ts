import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import t from 'tap';
import { projectDir } from '../support/project-dir.js';
import { tempDir } from '../support/temp-dir.js';

t.test('what no source compiles to any more is removed from dist, and nothing else', async (t) => {
  const loaded: unknown = await import(pathToFileURL(join(projectDir, '.release/prune.mjs')).href);
  const { prune } = loaded as { prune: (dist: string, src: string) => readonly string[] };
  const dir = tempDir(t);
  const [dist, src] = [join(dir, 'dist'), join(dir, 'src')];
  for (const folder of [src, join(dist, 'gone')]) mkdirSync(folder, { recursive: true });
  writeFileSync(join(src, 'kept.ts'), '');
  const files = [
    'kept.js',
    'kept.js.map',
    'kept.d.ts',
    'old.js',
    'old.js.map',
    'old.d.ts',
    '.tsbuildinfo',
    'notes.txt',
  ];
  for (const file of [...files, 'gone/a.js']) writeFileSync(join(dist, file), '');
  t.same(prune(dist, src), ['gone/a.js', 'old.d.ts', 'old.js', 'old.js.map']);
  t.same(readdirSync(dist).sort(), ['.tsbuildinfo', 'kept.d.ts', 'kept.js', 'kept.js.map', 'notes.txt']);
  t.same(prune(dist, src), []);
});
