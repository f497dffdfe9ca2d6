/**
 * The Lua scripts beside the decision functions, on a real `redis-server`: for every content of the store that an
 * exploration came to, in every form in which the scripts leave it, each command is run and has to give the same answer
 * and the same content.
 */
import { deepStrictEqual } from 'node:assert/strict';
import { Redis } from 'ioredis';
import {
  readCompleted,
  readMarked,
  readReleased,
  readReserved,
  readReserveTime,
  readResolved,
} from '../../src/adapters/redis/scripts/replies.js';
import { completeValues, markValues, reserveValues } from '../../src/adapters/redis/reservation-store.js';
import { scripts } from '../../src/adapters/redis/scripts/reservation.js';
import type { ReservationRecord, RecordSlot } from '../../src/decision/idempotency/record.js';
import { startRedis } from '../support/redis-server.js';
import type { Scope } from '../support/scope.js';
import { nowMs, textOf } from './model.js';
import type { ModelStore, StoreReply, StoreCommand, Transition } from './store.js';

type ScriptName = StoreCommand['kind'];

/**
 * What a server holds of one scope: the fields of the record's hash, the marker, and when both end; -1 where they never
 * do.
 */
interface Held {
  readonly fields: Readonly<Record<string, string>> | null;
  readonly endsAtMs: number;
  readonly marker: string | null;
  readonly markerEndsAtMs: number;
}

export interface Lockstep {
  /** Different runs of scripts. */
  readonly runs: number;
  /** What the scripts did otherwise than the decision functions. */
  readonly differences: readonly string[];
}

/** What an exploration leaves: the contents of the store, and how often time passed or went back at most. */
export interface Explored {
  readonly store: ModelStore;
  readonly timeSteps: number;
}

/** A guard that is taken out of a script. */
export interface LuaCut {
  readonly script: ScriptName;
  readonly find: string;
  readonly replace: string;
}

const nothing: Held = { fields: null, endsAtMs: -1, marker: null, markerEndsAtMs: -1 };
const batch = 400;

/** Ready to hold explorations to the scripts; the server ends with the test. */
export async function startLockstep(
  t: Scope,
  cuts: readonly LuaCut[] = [],
): Promise<(explored: Explored) => Promise<Lockstep>> {
  const server = await startRedis(t, ['--appendonly', 'no']);
  const redis = new Redis({ host: '127.0.0.1', port: server.port, protocol: 2, disconnectTimeout: 50 });
  t.teardown(() => redis.disconnect());
  const bodies = Object.entries(scripts).map(
    ([name, { body }]) =>
      [
        name,
        without(
          body,
          cuts.filter(({ script }) => script === name),
        ),
      ] as const,
  );
  const sha = String(await redis.script('LOAD', harness(Object.fromEntries(bodies))));

  return async ({ store, timeSteps }) => {
    const out = new Map<number, Transition[]>();
    for (const transition of store.transitions()) {
      out.set(transition.from, [...(out.get(transition.from) ?? []), transition]);
    }
    /** After how few steps of time each was reached: without a bound what nobody looks at would grow older for ever. */
    const seen = new Map<string, number>();
    const differences: string[] = [];
    let waiting: Place[] = [];
    let runs = 0;
    reach({ content: store.empty, held: nothing, steps: 0 });
    while (waiting.length > 0 && differences.length === 0) {
      const jobs = waiting.flatMap((place) =>
        (out.get(place.content) ?? []).map((transition): Job => ({ place, transition })),
      );
      waiting = [];
      for (let from = 0; from < jobs.length; from += batch) await runAll(jobs.slice(from, from + batch));
    }
    return { runs, differences };

    async function runAll(jobs: readonly Job[]): Promise<void> {
      const commands = jobs.filter(({ transition: { what } }) => what.kind !== 'time');
      const asked = JSON.stringify(
        commands.map(({ place: { held }, transition: { what } }) => ({
          held: { ...held, fields: held.fields ?? {} },
          script: what.kind,
          values: what.kind === 'time' ? [] : valuesOf(what),
          now: nowMs,
        })),
      );
      const replies = JSON.parse(
        String(await redis.evalsha(sha, 2, 'explored:{e}:i', 'explored:{e}:t', asked)),
      ) as readonly Reply[];
      runs += commands.length;
      commands.forEach(({ place, transition }, index) => {
        const reply = replies[index];
        if (reply !== undefined) compare(transition, place, reply);
      });
      for (const {
        place: { held, steps },
        transition: { what, to },
      } of jobs) {
        if (what.kind === 'time' && steps < timeSteps) {
          reach({ content: to, held: later(held, what.byMs), steps: steps + 1 });
        }
      }
    }

    function compare({ from, what, reply: answer, to }: Transition, place: Place, reply: Reply): void {
      const held = heldOf(reply);
      try {
        deepStrictEqual(answerOf(what.kind as ScriptName, reply.answer), plainAnswer(answer), 'another answer');
        deepStrictEqual(slotOf(held), plainSlot(store.slot(to)), 'another content');
        for (const [what, ends] of [
          ['the record', held.endsAtMs],
          ['the marker', held.markerEndsAtMs],
        ] as const) {
          if (ends === -1 && (what === 'the record' ? held.fields : held.marker) !== null) {
            throw new Error(`${what} has no end`);
          }
        }
      } catch (error) {
        const answered = error instanceof Error ? error.message : String(error);
        differences.push(`${textOf(what)} at ${textOf(store.slot(from))}, held as ${textOf(place.held)}: ${answered}`);
        return;
      }
      reach({ content: to, held, steps: place.steps });
    }

    function reach(place: Place): void {
      const key = `${place.content} ${textOf(place.held)}`;
      if ((seen.get(key) ?? Infinity) <= place.steps) return;
      seen.set(key, place.steps);
      waiting.push(place);
    }
  };
}

interface Place {
  readonly content: number;
  readonly held: Held;
  readonly steps: number;
}

interface Job {
  readonly place: Place;
  readonly transition: Transition;
}

interface Reply {
  readonly answer: unknown;
  readonly fields: readonly string[] | Readonly<Record<string, never>>;
  readonly ends: number;
  readonly marker: string | false;
  readonly markerEnds: number;
}

/**
 * Runs scripts as they are, many in one call: each finds what was held, and a clock that stands. What they ask the
 * server of time is answered here, for a server's own goes on while they run; everything else the server answers.
 */
function harness(bodies: Readonly<Record<string, string>>): string {
  const functions = (['reserve', 'complete', 'release', 'mark', 'resolve'] as const)
    .map((name) => `bodies['${name}'] = function(KEYS, ARGV, redis)\n${bodies[name] ?? ''}\nend`)
    .join('\n');
  return `
local real = redis
local bodies = {}
${functions}
local out = {}
for place, job in ipairs(cjson.decode(ARGV[1])) do
  local ends = {}
  local function ask(call, name, key, ...)
    local word = string.upper(name)
    if word == 'TIME' then return { string.format('%.0f', math.floor(job.now / 1000)), string.format('%.0f', (job.now % 1000) * 1000) } end
    if word == 'PTTL' then
      if real.call('EXISTS', key) == 0 then return -2 end
      return ends[key] and ends[key] - job.now or -1
    end
    if word == 'PEXPIRE' then
      if call(name, key, ...) == 1 then ends[key] = job.now + tonumber((...)) return 1 end
      return 0
    end
    local reply = call(name, key, ...)
    if word == 'DEL' then ends[key] = nil end
    if word == 'SET' and reply then
      local given = { ... }
      ends[key] = nil
      for at, word in ipairs(given) do if word == 'PX' then ends[key] = job.now + tonumber(given[at + 1]) end end
    end
    return reply
  end
  local shown = { call = function(...) return ask(real.call, ...) end, pcall = function(...) return ask(real.pcall, ...) end }
  real.call('DEL', KEYS[1], KEYS[2])
  for field, value in pairs(job.held.fields) do real.call('HSET', KEYS[1], field, value) end
  if job.held.endsAtMs ~= -1 then ends[KEYS[1]] = job.held.endsAtMs end
  if type(job.held.marker) == 'string' then real.call('SET', KEYS[2], job.held.marker) ends[KEYS[2]] = job.held.markerEndsAtMs end
  local answer = bodies[job.script](KEYS, job.values, shown)
  out[place] = {
    answer = answer, fields = real.call('HGETALL', KEYS[1]), ends = ends[KEYS[1]] or -1, marker = real.call('GET', KEYS[2]), markerEnds = ends[KEYS[2]] or -1,
  }
end
real.call('DEL', KEYS[1], KEYS[2])
return cjson.encode(out)
`;
}

function without(body: string, cuts: readonly LuaCut[]): string {
  return cuts.reduce((text, { find, replace }) => {
    if (!text.includes(find)) throw new Error(`no script has ${find}`);
    return text.replaceAll(find, replace);
  }, body);
}

/** The arguments that the adapter gives. */
function valuesOf(what: StoreCommand): readonly string[] {
  switch (what.kind) {
    case 'reserve':
      return reserveValues(what.command);
    case 'complete':
      return completeValues(what.command).map(String);
    case 'release':
      return [what.command.attempt];
    case 'mark':
      return markValues(what.command);
    case 'resolve':
      return [what.command];
  }
}

/** As the adapter reads it: from bytes. */
function answerOf(kind: ScriptName, reply: unknown): unknown {
  const bytes = Array.isArray(reply)
    ? reply.map((part: unknown) => Buffer.from(String(part)))
    : Buffer.from(String(reply));
  switch (kind) {
    case 'reserve':
      deepStrictEqual(readReserveTime(bytes), nowMs, 'another time');
      return plainAnswer(readReserved(bytes));
    case 'complete':
      return readCompleted(bytes);
    case 'release':
      return readReleased(bytes);
    case 'mark':
      return readMarked(bytes);
    case 'resolve':
      return readResolved(bytes);
  }
}

function plainAnswer(answer: StoreReply | null): unknown {
  return JSON.parse(textOf(answer));
}

function heldOf({ fields, ends, marker, markerEnds }: Reply): Held {
  const found = Array.isArray(fields) ? (fields as readonly string[]) : [];
  const pairs = found
    .flatMap((name, at): [string, string][] => (at % 2 === 0 ? [[name, found[at + 1] ?? '']] : []))
    .sort(([one], [two]) => (one < two ? -1 : 1));
  return {
    fields: pairs.length === 0 ? null : Object.fromEntries(pairs),
    endsAtMs: pairs.length === 0 ? -1 : ends,
    marker: marker === false ? null : marker,
    markerEndsAtMs: marker === false ? -1 : markerEnds,
  };
}

const timeFields = /^(?:c|l|f|w:.+)$/;

/** The same, when the server's clock has gone on: all its times are shifted, and what has ended is gone. */
function later({ fields, endsAtMs, marker, markerEndsAtMs }: Held, ms: number): Held {
  const [ends, markerEnds] = [endsAtMs - ms, markerEndsAtMs - ms];
  const isThere = fields !== null && (endsAtMs === -1 || ends > nowMs);
  const isUsed = marker !== null && (markerEndsAtMs === -1 || markerEnds > nowMs);
  return {
    fields: isThere
      ? Object.fromEntries(
          Object.entries(fields).map(([name, value]) => [
            name,
            timeFields.test(name) && value !== '0' ? String(Number(value) - ms) : value,
          ]),
        )
      : null,
    endsAtMs: isThere && endsAtMs !== -1 ? ends : -1,
    marker: isUsed ? marker : null,
    markerEndsAtMs: isUsed && markerEndsAtMs !== -1 ? markerEnds : -1,
  };
}

/** What a server's fields mean. */
function slotOf({ fields, endsAtMs, marker, markerEndsAtMs }: Held): unknown {
  const field = (name: string): string => fields?.[name] ?? '';
  const hasRecord = fields !== null && field('s') !== 'withdrawn';
  const record: ReservationRecord | null = hasRecord
    ? {
        version: Number(field('v')),
        state: field('s') as ReservationRecord['state'],
        fingerprint: field('fp'),
        route: field('r') === '' ? null : field('r'),
        owner: field('o'),
        fence: Number(field('f')),
        takenOver: field('to') === '1',
        createdAtMs: Number(field('c')),
        leaseEndsAtMs: Number(field('l')),
        response:
          fields['st'] === undefined
            ? null
            : {
                status: Number(field('st')),
                headers: JSON.parse(field('h')) as string[],
                body: Buffer.from(field('b')),
              },
        expiresAtMs: endsAtMs,
      }
    : null;
  const withdrawals = Object.entries(fields ?? {})
    .filter(([name, value]) => name.startsWith('w:') && Number(value) > nowMs)
    .map(([name, value]) => ({ attempt: name.slice(2), expiresAtMs: Number(value) }))
    .sort((a, b) => (a.attempt < b.attempt ? -1 : 1));
  const isFreed = fields !== null && !hasRecord && field('f') !== '0';
  const freed = isFreed ? { attempt: field('o'), fence: Number(field('f')), expiresAtMs: endsAtMs } : null;
  return plainSlot({
    record,
    freed,
    marker: marker === null ? null : { attempt: marker, expiresAtMs: markerEndsAtMs },
    withdrawals,
  });
}

function plainSlot(slot: RecordSlot): unknown {
  return JSON.parse(textOf(slot));
}
