import { closeSync, constants, openSync, readFileSync, readSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { createLogStream } from '../../../src/adapters/log/log-stream.js';
import type { Scope } from '../../support/scope.js';
import { makeFifo } from '../../support/sh.js';
import { tempDir } from '../../support/temp-dir.js';
import { until } from '../../support/until.js';

function open(t: Scope, path: string, flags: number): number {
  const descriptor = openSync(path, flags);
  t.teardown(() => {
    closeSync(descriptor);
  });
  return descriptor;
}

/** A pipe that never blocks, with both ends in one descriptor. */
function pipe(t: Scope): { readonly descriptor: number; readonly drain: () => string } {
  const path = makeFifo(join(tempDir(t), 'pipe'));
  const descriptor = open(t, path, constants.O_RDWR | constants.O_NONBLOCK);
  const buffer = Buffer.alloc(1024 * 1024);
  const drain = (): string => {
    try {
      return buffer.toString('utf8', 0, readSync(descriptor, buffer));
    } catch {
      return '';
    }
  };
  return { descriptor, drain };
}

t.test('lines arrive in order: a few after a moment, many at once', async (t) => {
  const path = join(tempDir(t), 'log');
  const stream = createLogStream(open(t, path, constants.O_WRONLY | constants.O_CREAT | constants.O_APPEND));
  stream.write('one\n');
  await until('the first line', () => readFileSync(path, 'utf8') === 'one\n');
  const lines = Array.from({ length: 20_000 }, (_, i) => `line ${String(i)} \u00e9\n`);
  for (const line of lines) stream.write(line);
  await until('the last line', () => readFileSync(path, 'utf8').endsWith(lines.at(-1) ?? ''));
  t.equal(readFileSync(path, 'utf8'), `one\n${lines.join('')}`);
});

t.test('a line that is longer than what is written at once keeps its place', async (t) => {
  const path = join(tempDir(t), 'log');
  const stream = createLogStream(open(t, path, constants.O_WRONLY | constants.O_CREAT | constants.O_APPEND));
  const lengths = [1, 21_844, 21_845, 21_846, 30_000, 65_535, 65_536, 70_000, 3];
  const lines = ['x', '\u00e9', '\u20ac', '\u{1f511}'].flatMap((character, at) =>
    lengths.map((length) => `${String(at)} ${character.repeat(length)}\n`),
  );
  for (const line of lines) stream.write(line);
  await until('the last line', () => readFileSync(path, 'utf8').endsWith(lines.at(-1) ?? ''));
  t.ok(readFileSync(path, 'utf8') === lines.join(''));
});

t.test('a flush writes what is waiting before it returns', (t) => {
  const path = join(tempDir(t), 'log');
  const stream = createLogStream(open(t, path, constants.O_WRONLY | constants.O_CREAT | constants.O_APPEND));
  stream.flush();
  t.equal(readFileSync(path, 'utf8'), '');
  stream.write('one\n');
  stream.write('two\n');
  stream.flush();
  t.equal(readFileSync(path, 'utf8'), 'one\ntwo\n');
  t.end();
});

t.test('a reader who is slow gets every line', async (t) => {
  const { descriptor, drain } = pipe(t);
  const stream = createLogStream(descriptor);
  const lines = Array.from({ length: 5_000 }, (_, i) => `line ${String(i)} ${'x'.repeat(100)}\n`);
  for (const line of lines) stream.write(line);
  let text = '';
  await until('every line', () => {
    text += drain();
    return text.length >= lines.join('').length;
  });
  t.ok(text === lines.join(''));
});

t.test('of a reader who stopped, lines are dropped at 8 MiB and counted', async (t) => {
  const { descriptor, drain } = pipe(t);
  const stream = createLogStream(descriptor);
  const line = `${'x'.repeat(1023)}\n`;
  const written = 20 * 1024;
  for (let i = 0; i < written; i += 1) stream.write(line);
  stream.flush();
  let text = '';
  await until('the notice', () => {
    text += drain();
    stream.write('y\n');
    return text.includes('dropped');
  });
  const notice = text.split('\n').find((part) => part.startsWith('{')) ?? '';
  t.match(JSON.parse(notice), { level: 'warn', msg: 'log lines were dropped', lines: Number });
  t.ok(text.split(line).length - 1 <= 9 * 1024, 'no more than could wait');
});

t.test('a reader who stays behind is told what was dropped all the same', async (t) => {
  const { descriptor, drain } = pipe(t);
  const stream = createLogStream(descriptor);
  const line = `${'x'.repeat(1023)}\n`;
  for (let i = 0; i < 10 * 1024; i += 1) stream.write(line);
  let drained = 0;
  let isTold = false;
  await until('the notice', () => {
    const text = drain();
    drained += text.length;
    isTold ||= text.includes('log lines were dropped');
    // As much comes as leaves.
    for (let i = 0; i < text.length / line.length; i += 1) stream.write(line);
    return isTold || drained > 20 * 1024 * 1024;
  });
  t.ok(isTold, `in ${String(drained)} bytes`);
});

t.test('of a reader who stopped, refusals are dropped first: they leave room to what was let through', async (t) => {
  const { descriptor, drain } = pipe(t);
  const stream = createLogStream(descriptor);
  const refusal = `r${'x'.repeat(1022)}\n`;
  const write = `w${'x'.repeat(1022)}\n`;
  for (let i = 0; i < 20 * 1024; i += 1) stream.write(refusal, true);
  for (let i = 0; i < 3 * 1024; i += 1) stream.write(write);
  let text = '';
  await until('the last of them', () => {
    text += drain();
    return text.includes('dropped') && text.split('\nw').length > 3 * 1024;
  });
  t.equal(text.split('\nw').length - 1, 3 * 1024, 'every line of a request that was let through');
  t.ok(text.split('\nr').length - 1 <= 5 * 1024);
});
