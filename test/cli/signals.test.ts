import t from 'tap';
import type { Signal } from '../../src/cli/io.js';
import { createSignalQueue } from '../../src/cli/signals.js';
import { captureIo } from './captured-io.js';

t.test('signals that come before anybody takes them are kept, in order', (t) => {
  const io = captureIo();
  const queue = createSignalQueue(io);
  io.signal('SIGHUP');
  io.signal('SIGTERM');
  const taken: Signal[] = [];
  queue.take((signal) => taken.push(signal));
  t.same(taken, ['SIGHUP', 'SIGTERM']);
  io.signal('SIGHUP');
  t.same(taken, ['SIGHUP', 'SIGTERM', 'SIGHUP']);
  t.equal(io.endedNow(), null);
  queue.close();
  t.notOk(io.isListening());
  t.end();
});

t.test('the second signal that asks for the end ends the process at once', (t) => {
  const rows: readonly { signals: readonly Signal[]; code: number | null }[] = [
    { signals: ['SIGHUP', 'SIGHUP', 'SIGTERM'], code: null },
    { signals: ['SIGTERM', 'SIGTERM'], code: 143 },
    { signals: ['SIGTERM', 'SIGHUP', 'SIGINT'], code: 130 },
  ];
  for (const { signals, code } of rows) {
    const io = captureIo();
    createSignalQueue(io).take(() => undefined);
    for (const signal of signals) io.signal(signal);
    t.equal(io.endedNow(), code, signals.join(' '));
  }
  t.end();
});

t.test('Ctrl-C at a terminal prints how to stop at once; SIGTERM, or no terminal, prints nothing', (t) => {
  const rows: readonly { signal: Signal; columns: number | null; says: RegExp }[] = [
    {
      signal: 'SIGINT',
      columns: 80,
      says: /^stopping once requests under way have ended; Ctrl-C again stops at once\n$/,
    },
    { signal: 'SIGINT', columns: null, says: /^$/ },
    { signal: 'SIGTERM', columns: 80, says: /^$/ },
  ];
  for (const { signal, columns, says } of rows) {
    const io = captureIo();
    createSignalQueue({ ...io, columns: () => columns });
    io.signal(signal);
    io.signal('SIGINT');
    t.match(io.err(), says, `${signal}, ${String(columns)} columns`);
  }
  t.end();
});
