/** Draws docs/trace.svg from what a collector gets of one write: `npm run trace`. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { projectDir } from '../support/project-dir.js';
import { drawTrace } from './draw-trace.js';
import { traceOneWrite } from './services.js';

t.test('the picture of a trace', async (t) => {
  writeFileSync(join(projectDir, 'docs/trace.svg'), drawTrace(await traceOneWrite(t, '2')));
});
