import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { run } from '../../../src/cli/program.js';
import { projectDir } from '../../support/project-dir.js';
import { captureIo } from '../captured-io.js';

t.test('the schema that is printed is the one that is shipped', async (t) => {
  const io = captureIo();
  await run(['schema'], io);
  t.equal(io.code() ?? 0, 0);
  t.equal(io.out(), readFileSync(join(projectDir, 'config.schema.json'), 'utf8'));
  t.equal(io.err(), '');
});
