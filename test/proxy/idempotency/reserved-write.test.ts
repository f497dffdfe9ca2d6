import t from 'tap';
import type { Reason } from '../../../src/decision/denial.js';
import type { Reserved } from '../../../src/decision/idempotency/record.js';
import { strangers } from '../../../src/proxy/exchange/concurrency.js';
import { responseMs, runBench, tick, upstreamMs, type RunBench, type RunOptions } from './run-bench.js';

/** A run that was sent; what was said until then is forgotten. */
async function dispatched(options?: RunOptions): Promise<RunBench> {
  const bench = runBench(options);
  await bench.begin();
  bench.events.length = 0;
  return bench;
}

/** One whose answer is passed on as it comes. */
async function streaming(options?: RunOptions): Promise<RunBench> {
  const bench = await dispatched(options);
  bench.sink().onHead(200, ['Content-Length', '11']);
  await tick();
  bench.events.length = 0;
  return bench;
}

t.test('what reserving comes to: nothing is sent unless the record was acquired', async (t) => {
  const response = { status: 201, headers: ['ETag', '"1"'], body: Buffer.from('kept') };
  const shown =
    'give 201 X-Request-Id r ETag "1" Cache-Control no-store Idempotency-Key "k" Idempotent-Replayed true kept true';
  const cases: readonly {
    readonly name: string;
    readonly reserved: Reserved | null;
    readonly options?: RunOptions;
    readonly expected: string;
  }[] = [
    { name: 'no answer', reserved: null, expected: 'refuse {"reason":"store_unavailable"}' },
    { name: 'another request', reserved: { kind: 'mismatch' }, expected: 'refuse unsent idempotency_key_reused body' },
    { name: 'in doubt', reserved: { kind: 'unknown' }, expected: 'refuse unsent idempotency_outcome_unknown body' },
    { name: 'kept', reserved: { kind: 'replayed', response }, expected: shown },
    {
      name: 'kept, without a key',
      reserved: { kind: 'replayed', response },
      options: { sentKey: null },
      expected: shown.replace('"k"', ''),
    },
    {
      name: 'damaged',
      reserved: { kind: 'replayed', response: { ...response, status: 199 } },
      expected: 'refuse {"reason":"store_unavailable"}',
    },
  ];
  for (const { name, reserved, options, expected } of cases) {
    for (const isGone of [false, true]) {
      const bench = runBench({ ...options, reserved });
      bench.isGone = isGone;
      await bench.begin();
      t.same(bench.events, isGone ? ['over'] : [expected, 'over'], name);
      t.same([bench.sent, bench.settled, bench.time.due()], [[], [], []]);
      bench.run.abort();
      bench.run.cancel();
      t.equal(bench.events.at(-1), 'over', 'and nothing comes after');
      t.equal(bench.events.filter((event) => event === 'over').length, 1);
    }
  }
});

t.test('until its turn nothing is asked of the store', async (t) => {
  const begin = async (): Promise<RunBench> => {
    const bench = runBench({ waits: true });
    await bench.begin();
    t.same([bench.events, bench.reserves, bench.time.due()], [[], 0, []]);
    return bench;
  };
  const ends: readonly {
    readonly name: string;
    readonly end: (bench: RunBench) => void;
    readonly expected: readonly string[];
  }[] = [
    {
      name: 'overload',
      end: ({ inLine }) => inLine?.onRefused({ reason: 'overloaded' }),
      expected: ['refuse unreserved overloaded'],
    },
    {
      name: 'time is up',
      end: ({ run }) => run.abort(),
      expected: ['leave the line', 'refuse unreserved shutting_down'],
    },
    {
      name: 'its caller left',
      end: ({ run }) => run.cancel(),
      expected: ['leave the line', 'refuse unreserved caller_gone'],
    },
  ];
  for (const { name, end, expected } of ends) {
    const bench = await begin();
    end(bench);
    t.same(bench.events, [...expected, 'over'], name);
    bench.run.abort();
    bench.run.cancel();
    await tick();
    t.same(bench.events, [...expected, 'over'], name);
    t.same([bench.reserves, bench.sent, bench.settled, bench.time.due()], [0, [], [], []], name);
  }
  const inTurn = await begin();
  await inTurn.turn();
  t.equal(inTurn.sent.length, 1);
});

t.test('its place goes with the request, with the time that it waited, and else is given back', async (t) => {
  const sent = runBench({ waits: true });
  await sent.begin();
  sent.time.advance(30);
  const turn = sent.turn();
  t.equal(sent.places, 1, 'before the store answered');
  await turn;
  t.equal(sent.places, 1);
  t.equal(sent.sent[0]?.waitedMs, 30);
  sent.sent[0]?.place?.();
  t.equal(sent.places, 0);
  for (const reserved of [null, { kind: 'unknown' }, { kind: 'in_progress', retryAfterMs: 1 }] as const) {
    const bench = runBench({ reserved });
    await bench.begin();
    t.equal(bench.places, 0, reserved?.kind ?? 'no answer');
  }
  const refused = runBench({ replicas: 1 });
  await refused.begin();
  t.equal(refused.places, 0, 'by the gate');
});

t.test('what the gate refuses is released before the caller hears of it', async (t) => {
  const cases: readonly {
    name: string;
    options?: RunOptions;
    change?: (bench: RunBench) => void;
    expected: readonly string[];
  }[] = [
    { name: 'its caller left', change: (bench) => (bench.isGone = true), expected: [] },
    { name: 'too few replicas', options: { replicas: 1 }, expected: ['refuse unsent store_unavailable body'] },
    {
      name: 'the process ends',
      options: { onReserve: ({ run }) => run.abort() },
      expected: ['refuse unsent shutting_down body'],
    },
  ];
  for (const { name, options, change, expected } of cases) {
    const bench = runBench({ ...options, holdsSettling: true });
    change?.(bench);
    await bench.begin();
    t.same(bench.events, ['settle release'], name);
    await bench.settle();
    t.same(bench.events, ['settle release', ...expected, 'over'], name);
    t.same(bench.sent, []);
  }
});

t.test(
  'what is sent: the headers that go on, the length of the whole body however it came, the record and its fence',
  async (t) => {
    const record = ['Idempotency-Record', 'p.o', 'Idempotency-Fence', '7'];
    const cases: readonly {
      readonly name: string;
      readonly options: RunOptions;
      readonly headers: readonly string[];
      readonly body: string | null;
    }[] = [
      { name: 'with a length', options: { contentLength: '4' }, headers: record, body: 'body' },
      { name: 'in chunks', options: { chunked: true }, headers: ['Content-Length', '4', ...record], body: 'body' },
      {
        name: 'in no chunks',
        options: { chunked: true, body: '' },
        headers: ['Content-Length', '0', ...record],
        body: null,
      },
      { name: 'no body', options: { body: '' }, headers: record, body: null },
      { name: 'a length of 0', options: { body: '', contentLength: '0' }, headers: record, body: null },
      {
        name: 'neither length nor chunks',
        options: { body: 'x' },
        headers: ['Content-Length', '1', ...record],
        body: 'x',
      },
      {
        name: 'a token alone',
        options: { contentLength: '4', recordId: null },
        headers: ['Idempotency-Record', 'p.t', 'Idempotency-Fence', '7'],
        body: 'body',
      },
    ];
    for (const { name, options, headers, body } of cases) {
      const bench = runBench(options);
      await bench.begin();
      t.same(bench.events, ['asked'], name);
      const [request] = bench.sent;
      t.match(request, { holder: strangers, method: 'POST', target: '/orders?a=1', responseTimeoutMs: responseMs });
      t.same(request?.headers, ['Host', 'h', ...headers], name);
      t.same(request?.body, body === null ? null : Buffer.from(body), name);
      t.equal(request?.lateRefusal?.(), null);
      t.same(bench.time.due(), [upstreamMs], 'the receiver has as long as both connects and the answer may take');
      bench.time.advance(10_000);
      t.match(request?.lateRefusal?.(), { reason: 'store_unavailable' }, 'the gate is asked once more');
    }
  },
);

t.test('store before replying: a whole response is kept, then given', async (t) => {
  for (const isGone of [false, true]) {
    const bench = await dispatched({ holdsSettling: true });
    const sink = bench.sink();
    sink.onHead(201, ['ETag', '"1"', 'X-Other', 'o']);
    t.equal(sink.onData(Buffer.from('12345')), true);
    t.equal(sink.onData(Buffer.from('67890')), true, 'up to the limit');
    sink.onEnd(null);
    t.same(bench.time.due(), [], 'the receiver is done');
    await tick();
    t.same(bench.events, ['answered', 'settle completed 201']);
    t.match(bench.settled[0]?.write.command, {
      response: { headers: ['ETag', '"1"'], body: Buffer.from('1234567890') },
    });
    bench.isGone = isGone;
    bench.run.abort();
    await bench.settle();
    t.same(
      bench.events.slice(2),
      isGone ? ['over'] : ['give 201 X-Request-Id r ETag "1" X-Other o 1234567890 false', 'over'],
    );
    t.equal(sink.onData(Buffer.from('more')), true, 'what comes after counts for nothing');
    sink.onEnd(null);
    sink.onError({ reason: 'upstream_failed' });
    await tick();
    t.same(
      bench.events.filter((event) => event !== 'answered').slice(1),
      isGone ? ['over'] : [bench.events[2], 'over'],
    );
  }
});

t.test('fields that are too long to be kept: the status is kept, and the response given', async (t) => {
  const bench = await dispatched();
  const long = 'x'.repeat(9_000);
  bench.sink().onHead(201, ['Link', long]);
  bench.sink().onEnd(null);
  await tick();
  t.same(bench.events, ['answered', 'settle tombstone 201', `give 201 X-Request-Id r Link ${long}  false`, 'over']);
});

t.test('a response that announces more than is kept turns into a stream, one to HEAD has no body', async (t) => {
  const cases: readonly {
    readonly name: string;
    readonly options?: RunOptions;
    readonly length: string | null;
    readonly turns: boolean;
  }[] = [
    { name: 'no length', length: null, turns: false },
    { name: 'the limit', length: '10', turns: false },
    { name: 'more', length: '11', turns: true },
    { name: 'more, to HEAD', options: { method: 'HEAD' }, length: '11', turns: false },
    { name: 'no record', options: { recordId: null }, length: '1', turns: true },
  ];
  for (const { name, options, length, turns } of cases) {
    const bench = await dispatched(options);
    bench.sink().onHead(200, length === null ? [] : ['Content-Length', length]);
    await tick();
    t.equal(
      bench.events.some((event) => event.startsWith('begin 200')),
      turns,
      name,
    );
    t.equal(bench.events.includes('settle tombstone 200'), turns && options?.recordId !== null);
    t.equal(bench.events.includes('resume'), turns);
  }
});

t.test('a response that grows beyond what is kept: the status is written down, then all of it goes on', async (t) => {
  for (const flows of [true, false]) {
    const bench = await dispatched({ holdsSettling: true });
    const sink = bench.sink();
    sink.onHead(200, []);
    t.equal(sink.onData(Buffer.from('1234567890')), true);
    t.equal(sink.onData(Buffer.from('a')), false, 'over the limit');
    t.equal(sink.onData(Buffer.from('b')), false, 'the receiver waits');
    t.same(bench.events, ['settle tombstone 200']);
    bench.flows = flows;
    await bench.settle();
    const begun = ['settle tombstone 200', 'begin 200 X-Request-Id r', 'write 1234567890ab'];
    t.same(bench.events, flows ? [...begun, 'resume'] : begun, 'where the caller keeps up it goes on');
    t.equal(sink.onData(Buffer.from('c')), flows);
    bench.events.length = 0;
    bench.run.resume();
    t.same(bench.events, ['resume']);
    sink.onEnd(null);
    t.same(bench.events, ['resume', 'answered', 'end', 'over']);
    t.same(bench.time.due(), []);
    bench.run.cancel();
    t.equal(bench.events.length, 4, 'it is over');
    await tick();
    t.equal(bench.settled.length, 1);
  }
});

t.test(
  'at the end of a drain what is streamed ends, kept or not, also where its status is being written down',
  async (t) => {
    for (const options of [{}, { recordId: null }, { holdsSettling: true }]) {
      const bench = await dispatched(options);
      bench.sink().onHead(200, ['Content-Length', '11']);
      await tick();
      bench.events.length = 0;
      bench.run.cutOff();
      if ('holdsSettling' in options) await bench.settle();
      t.same(bench.events, ['cancel', 'over']);
      bench.sink().onEnd(null);
      t.same(
        bench.events.filter((event) => event !== 'answered'),
        ['cancel', 'over'],
      );
      t.same(bench.time.due(), []);
    }
  },
);

t.test('what the upstream does while the status is written down comes after what it said before', async (t) => {
  const begun = ['begin 200 X-Request-Id r Content-Length 11', 'write a'];
  for (const [ending, expected] of [
    ['end', 'end'],
    ['failure', 'refuse {"reason":"upstream_failed"}'],
  ] as const) {
    const bench = await dispatched({ holdsSettling: true });
    const sink = bench.sink();
    sink.onHead(200, ['Content-Length', '11']);
    sink.onData(Buffer.from('a'));
    if (ending === 'end') sink.onEnd(null);
    else sink.onError({ reason: 'upstream_failed' });
    t.same(bench.events, ['settle tombstone 200', 'answered']);
    await bench.settle();
    t.same(bench.events.slice(2), [...begun, expected, 'over']);
  }
});

t.test('a stream that breaks off breaks off for its caller', async (t) => {
  for (const isGone of [false, true]) {
    const bench = await streaming({ recordId: null });
    bench.isGone = isGone;
    bench.sink().onError({ reason: 'upstream_failed' });
    t.same(bench.events, isGone ? ['answered', 'over'] : ['answered', 'refuse {"reason":"upstream_failed"}', 'over']);
    t.same(bench.settled, []);
  }
  const kept = await streaming();
  kept.sink().onError({ reason: 'upstream_failed' });
  kept.run.cancel();
  t.same(kept.events, ['answered', 'refuse {"reason":"upstream_failed"}', 'over'], 'it is over');
});

t.test('nobody wants the rest of a response whose status is kept; one that was not kept goes on', async (t) => {
  const kept = await streaming();
  kept.run.cancel();
  t.same(kept.events, ['cancel', 'over']);
  t.same(kept.time.due(), []);
  kept.run.cancel();
  t.equal(kept.sink().onData(Buffer.from('late')), true);
  t.equal(kept.events.length, 2, 'it is over');
  const tokenOnly = await streaming({ recordId: null });
  tokenOnly.run.cancel();
  t.same(tokenOnly.events, []);
  const collecting = await dispatched();
  collecting.run.cancel();
  t.same(collecting.events, []);

  for (const recordId of ['p.o', null]) {
    const turning = await dispatched({ recordId, holdsSettling: true });
    turning.sink().onHead(200, ['Content-Length', '11']);
    turning.run.cancel();
    turning.isGone = true;
    await turning.settle();
    t.same(
      turning.events,
      recordId === null
        ? ['begin 200 X-Request-Id r Content-Length 11', 'resume']
        : ['settle tombstone 200', 'cancel', 'over'],
    );
  }
});

t.test('the upstream’s time is up, or the process’s: released where nothing was sent, else in doubt', async (t) => {
  const late = 'refuse {"reason":"upstream_timeout","record":"p.o"}';
  for (const isProcess of [false, true]) {
    const end = ({ time, run }: RunBench): void => {
      if (isProcess) run.abort();
      else time.advance(upstreamMs);
    };
    const unsent = await dispatched({ mayBeSent: false });
    end(unsent);
    await tick();
    const why = `refuse unsent ${isProcess ? 'shutting_down' : 'upstream_unreachable'} body`;
    t.same(unsent.events, ['cancel', 'answered', 'settle release', why, 'over']);

    const doubtful = await dispatched({ mayBeSent: true });
    end(doubtful);
    await tick();
    t.same(doubtful.events, ['cancel', 'answered', 'settle mark', late, 'over']);
    t.same(doubtful.time.due(), []);

    const begun = await dispatched();
    begun.sink().onHead(201, []);
    end(begun);
    await tick();
    t.same(begun.events, ['cancel', 'answered', 'settle tombstone 201', late, 'over']);

    const tokenOnly = await dispatched({ recordId: null });
    end(tokenOnly);
    await tick();
    t.same(
      tokenOnly.events,
      ['cancel', 'answered', 'refuse {"reason":"upstream_timeout"}', 'over'],
      'there is no record to name',
    );
  }
  const failed = await dispatched({ holdsSettling: true });
  failed.sink().onError({ reason: 'upstream_failed' });
  failed.run.abort();
  await failed.settle();
  t.same(
    failed.events,
    ['answered', 'settle mark', 'refuse {"reason":"upstream_failed","record":"p.o"}', 'over'],
    'what has failed fails once',
  );
  const passing = await streaming();
  passing.run.abort();
  t.same(passing.events, [], 'a stream is ended by its connection');
});

t.test('only what certainly was not sent frees the key', async (t) => {
  const unsent: readonly Reason[] = [
    'upstream_unreachable',
    'header_too_large_for_http2',
    'overloaded',
    'shutting_down',
    'store_unavailable',
    'token_expired',
    'key_revoked',
    'subject_revoked',
    'token_revoked',
    'issue_time_revoked',
  ];
  for (const reason of [...unsent, 'upstream_failed', 'upstream_timeout', 'caller_gone', 'internal'] as const) {
    const bench = await dispatched();
    bench.sink().onError({ reason });
    await tick();
    const isUnsent = unsent.includes(reason);
    t.same(bench.events, [
      'answered',
      isUnsent ? 'settle release' : 'settle mark',
      isUnsent ? `refuse unsent ${reason} body` : `refuse {"reason":"${reason}","record":"p.o"}`,
      'over',
    ]);
    const begun = await dispatched();
    begun.sink().onHead(200, []);
    begun.sink().onError({ reason });
    await tick();
    t.same(
      begun.events,
      ['answered', 'settle tombstone 200', `refuse {"reason":"${reason}","record":"p.o"}`, 'over'],
      'a status came',
    );
  }
});

t.test('a bug ends the request: the upstream is let go, the caller is told, nothing is left', async (t) => {
  const bench = runBench({
    caller: {
      onHead: () => {
        throw new Error('a bug');
      },
    },
  });
  await bench.begin();
  bench.events.length = 0;
  bench.sink().onHead(200, ['Content-Length', '11']);
  await tick();
  t.same(bench.events, ['settle tombstone 200', 'cancel', 'fail Error: a bug', 'over']);
  t.same(bench.time.due(), []);
  t.equal(bench.sink().onData(Buffer.from('late')), true);
  t.equal(bench.events.length, 4, 'what comes after counts for nothing');
  const early = runBench({
    caller: {
      upstreamAsked: () => {
        throw new Error('a bug');
      },
    },
  });
  await early.begin();
  t.same(early.events, ['fail Error: a bug', 'over']);
  t.same(early.time.due(), []);
});
