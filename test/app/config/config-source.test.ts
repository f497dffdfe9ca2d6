import { writeFileSync } from 'node:fs';
import t from 'tap';
import { fileSource } from '../../../src/app/config/config-source.js';
import { maxConfigBytes } from '../../../src/config/load/yaml.js';
import { tempDir } from '../../support/temp-dir.js';

t.test('a config is read up to the size that is parsed, and no further', async (t) => {
  t.equal(maxConfigBytes, 1024 * 1024);
  const path = `${tempDir(t)}/sallyport.yaml`;
  writeFileSync(path, '#'.repeat(maxConfigBytes));
  t.ok((await fileSource(path).read()).ok);
  writeFileSync(path, '#'.repeat(maxConfigBytes + 1));
  t.same(await fileSource(path).read(), { ok: false, error: 'is larger than 1048576 bytes' });
});
