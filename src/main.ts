#!/usr/bin/env node
import { endOfLifeNotice } from './cli/node-release.js';
import { processIo } from './cli/process-io.js';
import { commandNames, run } from './cli/program.js';

const io = processIo();
const argv = process.argv.slice(2);

// A bug: its message, without the stack, which would tell readers of a container's log no more than where we failed.
process.on('uncaughtException', (error: unknown) => {
  io.stderr(`sallyport: ${error instanceof Error ? error.message : 'unknown error'}\n`);
  io.exitNow(1);
});

// `serve` says it in its log, which has to stay JSON, line for line.
const notice = endOfLifeNotice(process.versions.node, Date.now());
const command = argv[0] ?? '';
if (notice !== null && command !== 'serve' && commandNames.includes(command)) io.stderr(`sallyport: ${notice}\n`);

await run(argv, io);
