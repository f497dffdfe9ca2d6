/**
 * Guards that are taken out, one at a time, of the decision functions, the scripts or the proxy's part; and which
 * exploration finds each.
 */
import type { LuaCut } from './lockstep.js';
import type { Cut } from './machine.js';
import type { Lapse } from './steps.js';

export interface Fault {
  readonly name: string;
  /** Name of the preset that finds it. */
  readonly foundBy: string;
  readonly cuts?: readonly Cut[];
  readonly lua?: readonly LuaCut[];
  readonly lapses?: readonly Lapse[];
}

const decisions = (find: string, replace: string): Pick<Fault, 'cuts'> => ({
  cuts: [{ file: 'record', find, replace }],
});
const lua = (script: LuaCut['script'], find: string, replace: string): Pick<Fault, 'lua'> => ({
  lua: [{ script, find, replace }],
});

/** In the decision functions and in the proxy's part: a promise breaks. */
export const decisionFaults: readonly Fault[] = [
  {
    name: 'the fingerprint is not compared',
    foundBy: 'plain, another request',
    ...decisions('record.fingerprint !== command.fingerprint', 'false'),
  },
  {
    name: 'a pending record is free',
    foundBy: 'plain, messages',
    ...decisions(
      'if (record.fingerprint !== command.fingerprint)',
      "if (record.state === 'pending' && record.owner !== command.attempt) return acquire(command, nowMs, record.fence, false);\n    if (false)",
    ),
  },
  {
    name: 'a lease that is over is not looked at',
    foundBy: 'plain, crashes',
    ...decisions("record.state === 'pending' && nowMs >= record.leaseEndsAtMs", 'false'),
  },
  { name: 'what is in doubt is run again', foundBy: 'plain, messages', ...decisions('command.takesOver ?', 'true ?') },
  {
    name: 'a release does not look whose the record is',
    foundBy: 'plain, three at once',
    ...decisions("record?.owner === command.attempt && record.state === 'pending'", "record?.state === 'pending'"),
  },
  {
    name: 'a release leaves no withdrawal',
    foundBy: 'plain, messages',
    ...decisions('withdrawals: [...others, { attempt: command.attempt, expiresAtMs }]', 'withdrawals: others'),
  },
  {
    name: 'a withdrawal keeps nobody away',
    foundBy: 'plain, messages',
    ...decisions('slot.withdrawals.some(({ attempt }) => attempt === command.attempt)', 'false'),
  },
  {
    name: 'a release forgets what was taken over',
    foundBy: 'deduplicates, another request',
    ...decisions('if (record.takenOver)', 'if (false)'),
  },
  {
    name: 'a freed key forgets its fence',
    foundBy: 'deduplicates, clocks',
    ...decisions('slot.freed?.fence ?? 0, false', '0, false'),
  },
  {
    name: 'a fence does not grow',
    foundBy: 'deduplicates, clocks',
    ...decisions('Math.max(lastFence + 1, nowMs)', 'nowMs'),
  },
  {
    name: 'a token is not marked',
    foundBy: 'plain, single use',
    ...decisions('slot.marker ?? { attempt: command.attempt, expiresAtMs: nowMs + command.markerTtlMs }', 'null'),
  },
  {
    name: 'a used token passes',
    foundBy: 'plain, single use',
    ...decisions('slot.marker.attempt !== command.attempt', 'false'),
  },
  {
    name: 'a mark overwrites a resolution',
    foundBy: 'plain, resolved',
    ...decisions("if (record.state !== 'pending' && record.state !== 'unknown')", 'if (false)'),
  },
  {
    name: 'a resolution frees what is kept',
    foundBy: 'plain, crashes',
    ...decisions("if (record.state !== 'unknown')", 'if (false)'),
  },
  { name: 'no status counts as not applied', foundBy: 'plain, messages', lapses: ['doubt'] },
  {
    name: 'a refusal after a takeover frees the key',
    foundBy: 'deduplicates, another request',
    cuts: [
      { file: 'settlement', find: "takenOver ? 'mark' : 'release'", replace: "'release'" },
      { file: 'record', find: 'if (record.takenOver)', replace: 'if (false)' },
    ],
  },
  {
    name: 'the word of a receiver does not count',
    foundBy: 'deduplicates, clocks',
    cuts: [{ file: 'settlement', find: "rules.trustsOutcome && outcome === 'not-applied'", replace: 'false' }],
  },
  {
    name: 'replicas do not count',
    foundBy: 'plain, fail-over',
    cuts: [{ file: 'dispatch-check', find: '!(moment.confirmedReplicas >= moment.neededReplicas)', replace: 'false' }],
  },
  {
    name: 'an attempt that slept is sent on',
    foundBy: 'plain, resolved',
    cuts: [
      { file: 'dispatch-check', find: 'moment.sinceReserveMs + moment.upstreamMs >= moment.leaseMs', replace: 'false' },
    ],
  },
  { name: 'tokens from before a fail-over pass', foundBy: 'plain, single use, forgets', lapses: ['floor'] },
  {
    name: 'the time in the answer to a reserve is not looked at',
    foundBy: 'plain, single use, clock jumps',
    lapses: ['clock'],
  },
  { name: 'what was settled is not offered again after a fail-over', foundBy: 'plain, forgets', lapses: ['offering'] },
  { name: 'a mark is given up with its lease', foundBy: 'plain, forgets', lapses: ['patience'] },
  {
    name: 'the owner is not compared',
    foundBy: 'plain, forgets',
    ...decisions('record.owner === command.attempt && (record.state', '(record.state'),
  },
];

/** In the scripts: they no longer do as the decision functions say. */
export const scriptFaults: readonly Fault[] = [
  {
    name: 'reserve: the fingerprint is not compared',
    foundBy: 'plain, another request',
    ...lua('reserve', 'record.fingerprint ~= ARGV[3]', 'false'),
  },
  {
    name: 'reserve: a withdrawal keeps nobody away',
    foundBy: 'plain, messages',
    ...lua('reserve', "if ends and now < tonumber(ends) then return told('unsupported') end", ''),
  },
  {
    name: 'reserve: a lease that is over is not looked at',
    foundBy: 'plain, crashes',
    ...lua('reserve', 'now >= record.lease', 'false'),
  },
  {
    name: 'reserve: what is in doubt is run again',
    foundBy: 'plain, messages',
    ...lua('reserve', "if ARGV[6] == '0' then return told('unknown') end", ''),
  },
  {
    name: 'reserve: the fence is the time alone',
    foundBy: 'deduplicates, clocks',
    ...lua('reserve', 'math.max(lastFence + 1, now)', 'now'),
  },
  {
    name: 'reserve: a freed key forgets its fence',
    foundBy: 'plain, clocks',
    ...lua('reserve', 'if withdrawn then lastFence', 'if false then lastFence'),
  },
  {
    name: 'reserve: the token is not marked',
    foundBy: 'plain, single use',
    ...lua('reserve', "marked and redis.call('SET', KEYS[2], attempt, 'PX', ARGV[8], 'NX')", 'false'),
  },
  {
    name: 'reserve: the time is not told',
    foundBy: 'plain, single use, clock jumps',
    ...lua('reserve', '{ text(now), ... }', "{ '0', ... }"),
  },
  { name: 'reserve: a used token passes', foundBy: 'plain, single use', ...lua('reserve', 'used ~= attempt', 'false') },
  {
    name: 'reserve: the marker has no end',
    foundBy: 'plain, single use',
    ...lua('reserve', "attempt, 'PX', ARGV[8], 'NX'", "attempt, 'NX'"),
  },
  {
    name: 'reserve: the record has no end',
    foundBy: 'plain, messages',
    ...lua('reserve', "redis.pcall('PEXPIRE', KEYS[1], text(tonumber(ARGV[4]) + tonumber(ARGV[5])))", '1'),
  },
  {
    name: 'complete: neither owner nor fence is compared',
    foundBy: 'deduplicates, messages',
    ...lua('complete', 'not owns(record)', 'false'),
  },
  {
    name: 'complete: a result overwrites a result',
    foundBy: 'plain, crashes',
    ...lua('complete', "record.state == 'completed' or record.state == 'tombstone'", 'false'),
  },
  {
    name: 'complete: the owner is not compared',
    foundBy: 'plain, forgets',
    ...lua('complete', 'record.owner == ARGV[1] and (record.state', '(record.state'),
  },
  {
    name: 'release: the owner is not compared',
    foundBy: 'plain, messages',
    ...lua('release', 'record.owner == ARGV[1] and ', ''),
  },
  {
    name: 'release: what was settled is freed',
    foundBy: 'plain, doubled',
    ...lua('release', " and record.state == 'pending'", ''),
  },
  {
    name: 'release: what was taken over is freed',
    foundBy: 'deduplicates, messages',
    ...lua('release', "record.takenOver == '1'", 'false'),
  },
  { name: 'release: no withdrawal is left', foundBy: 'plain, messages', ...lua('release', "'w:' .. ARGV[1]", "'x'") },
  {
    name: 'mark: neither owner nor fence is compared',
    foundBy: 'deduplicates, messages',
    ...lua('mark', 'not owns(record)', 'false'),
  },
  {
    name: 'mark: a resolution is overwritten',
    foundBy: 'plain, resolved',
    ...lua('mark', "record.state ~= 'pending' and record.state ~= 'unknown'", 'false'),
  },
  {
    name: 'mark: a key that was freed is taken again',
    foundBy: 'plain, crashes',
    ...lua('mark', "if found.owner == ARGV[1] and tonumber(found.fence) >= tonumber(fence) then return 'kept' end", ''),
  },
  {
    name: 'resolve: what is not in doubt is resolved',
    foundBy: 'plain, crashes',
    ...lua('resolve', "record.state ~= 'unknown' and not record.lapsed", 'false'),
  },
];
