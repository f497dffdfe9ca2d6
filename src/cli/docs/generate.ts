/**
 * Writes `docs/cli.md` below the working folder. With `--check` it writes nothing, and fails where the page is not what
 * it would write.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { processIo } from '../process-io.js';
import { commandNames, createProgram } from '../program.js';
import { commandReference } from './reference.js';

const path = 'docs/cli.md';
const text = commandReference(await createProgram(commandNames, processIo(null)));
if (!process.argv.includes('--check')) writeFileSync(path, text);
else if (readFileSync(path, 'utf8') !== text) {
  process.stderr.write(`${path} is not what the commands say; npm run generate\n`);
  process.exitCode = 1;
}
