/**
 * The state machine of `decision/idempotency/record.ts` in Lua, so that one command reads, decides and writes at once.
 * The same suite drives both. KEYS[1] is the record (a hash), KEYS[2] the token's marker (a string); both carry the
 * principal's hash tag, so that a Redis Cluster runs the script where both live. Time is the server's: processes
 * disagree.
 *
 * Hash fields: v version, s state, fp fingerprint, o owner, f fence, c created, l lease end, to taken over (1), st
 * status, h headers (JSON), b body, t traceparent of the request that got them, r route, w whether there are
 * withdrawals, w:ATTEMPT when one ends. They live in the record, or where there is none in a hash of state `withdrawn`:
 * a key of their own would be a second one, which a Cluster refuses while it hands the slot over. Of a record whose key
 * was freed that hash keeps owner and fence, so that the next fence is higher; without one its fence is 0. Numbers are
 * decimal text; a Lua number would lose its last digits when turned into text by itself.
 *
 * Every script reads and decides before its first write: one that fails has written nothing.
 */
import { longestAheadMs, overtakingReleaseMs } from '../../../decision/idempotency/record.js';

/** `read` returns nothing, a record, or unexpected data: of another version, or damaged. */
const prelude = `
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local function text(number) return string.format('%.0f', number) end
local states = { pending = true, completed = true, tombstone = true, unknown = true, withdrawn = true }
local function read()
  local found = redis.call('HMGET', KEYS[1], 'v', 's', 'fp', 'o', 'f', 'l', 'st', 'w', 'to')
  if not found[1] and redis.call('EXISTS', KEYS[1]) == 0 then return nil end
  local record = { state = found[2], fingerprint = found[3], owner = found[4], fence = found[5], status = found[7] or '',
    withdrawals = found[8], takenOver = found[9] or '0' }
  record.lease = tonumber(found[6] or '')
  record.ours = found[1] == '1' and states[record.state or ''] and record.fingerprint and record.owner
    and tonumber(record.fence or '') and record.lease
  if record.ours and record.state == 'pending' and now >= record.lease then record.lapsed = true end
  return record
end
-- Fails, before there is a record, for a user without the right to it: that record would have no end.
local function bounded() redis.call('PEXPIRE', KEYS[1], '60000') end
local function standing(record)
  if record and record.ours and record.state == 'withdrawn' then return nil end
  return record
end
-- Whether ARGV is attempt and fence of its owner; of what is no longer pending the fence may be a later one.
local function owns(record)
  return record.owner == ARGV[1] and (record.state ~= 'pending' or record.fence == ARGV[2])
end
-- Frees the key, keeps those away that have withdrawn, and remembers the fence until the clock is past it.
local function free(record)
  local ahead = math.min(math.max(tonumber(record.fence) - now, 0), ${String(longestAheadMs)})
  redis.call('HSET', KEYS[1], 's', 'withdrawn')
  redis.call('PEXPIRE', KEYS[1], text(ahead + ${String(overtakingReleaseMs)}))
end
`;

/**
 * ARGV: attempt · has key · fingerprint · lease ms · retention ms · takes over · has marker · marker TTL ms · route.
 * Answers the server's time first: whoever asks compares it, before the reply counts, for a marker may have ended
 * early with a step of that clock.
 */
const reserve = `
local attempt = ARGV[1]
local marked = ARGV[7] == '1'
local function told(...) return { text(now), ... } end
if marked then
  local used = redis.call('GET', KEYS[2])
  if used and used ~= attempt then return told('token_replayed') end
end
local record = nil
local withdrawn = false
local lastFence = 0
if ARGV[2] == '1' then
  record = read()
  if record and not record.ours then return told('unsupported') end
  if record and record.withdrawals then
    local ends = redis.call('HMGET', KEYS[1], 'w:' .. attempt)[1]
    if ends and now < tonumber(ends) then return told('unsupported') end
  end
  withdrawn = record and record.state == 'withdrawn'
  if withdrawn then lastFence = tonumber(record.fence) end
  record = standing(record)
end
local fresh = marked and redis.call('SET', KEYS[2], attempt, 'PX', ARGV[8], 'NX')
-- What fails after all burns no token, and leaves no record without an end.
local function undo(failure)
  if fresh then redis.call('DEL', KEYS[2]) end
  if withdrawn then redis.call('HSET', KEYS[1], 's', 'withdrawn') elseif not record then redis.call('DEL', KEYS[1]) end
  return failure
end
local function failed(reply) return type(reply) == 'table' and reply.err end
if ARGV[2] == '0' then return told('acquired', text(now), '0') end
local takenOver = '0'
if record then
  if record.fingerprint ~= ARGV[3] then return told('mismatch') end
  if record.state == 'pending' and record.owner == attempt then return told('acquired', record.fence, record.takenOver) end
  -- Not written down: its owner may know yet that nothing was sent, and release it.
  if record.state == 'pending' and not record.lapsed then return told('in_progress', text(record.lease - now)) end
  if record.state == 'completed' then
    local kept = redis.call('HMGET', KEYS[1], 'h', 'b', 't')
    return told('replayed', record.status, kept[1] or '', kept[2] or '', kept[3] or '')
  end
  if record.state == 'tombstone' then return told('tombstone', record.status) end
  if ARGV[6] == '0' then return told('unknown') end
  lastFence = tonumber(record.fence)
  takenOver = '1'
end
local fence = text(math.max(lastFence + 1, now))
-- First, for a server out of memory denies a script its first write only, and would let this one pass after another.
local written = redis.pcall('HSET', KEYS[1], 'v', '1', 's', 'pending', 'fp', ARGV[3], 'o', attempt, 'f', fence, 'c', text(now),
  'l', text(now + tonumber(ARGV[4])), 'to', takenOver, 'r', ARGV[9])
if failed(written) then return undo(written) end
local bound = redis.pcall('PEXPIRE', KEYS[1], text(tonumber(ARGV[4]) + tonumber(ARGV[5])))
if failed(bound) then return undo(bound) end
return told('acquired', fence, takenOver)
`;

/** ARGV: attempt · fence · fingerprint · state · status · headers · body · retention ms · traceparent, or nothing. */
const complete = `
local record = standing(read())
if record and not record.ours then return 'unsupported' end
if record and not owns(record) then return 'fenced' end
if record and (record.state == 'completed' or record.state == 'tombstone') then return 'completed' end
if not record then
  bounded()
  redis.call('HSET', KEYS[1], 'v', '1', 'fp', ARGV[3], 'o', ARGV[1], 'f', ARGV[2], 'c', text(now), 'l', text(now), 'to', '0', 'r', '')
end
local traced = ARGV[9] ~= '' and { 't', ARGV[9] } or {}
redis.call('HSET', KEYS[1], 's', ARGV[4], 'st', ARGV[5], 'h', ARGV[6], 'b', ARGV[7], unpack(traced))
redis.call('PEXPIRE', KEYS[1], ARGV[8])
if record then return 'completed' end
return 'repaired'
`;

/** ARGV: attempt. */
const release = `
local record = read()
if record and not record.ours then return 'unsupported' end
if record and record.owner == ARGV[1] and record.state == 'pending' then
  if record.takenOver == '1' then
    redis.call('HSET', KEYS[1], 's', 'unknown')
    return 'kept'
  end
  free(record)
  return 'released'
end
if not record then
  bounded()
  redis.call('HSET', KEYS[1], 'v', '1', 's', 'withdrawn', 'fp', '', 'o', ARGV[1], 'f', '0', 'c', text(now), 'l', text(now))
end
redis.call('HSET', KEYS[1], 'w', '1', 'w:' .. ARGV[1], text(now + ${String(overtakingReleaseMs)}))
if redis.call('PTTL', KEYS[1]) < ${String(overtakingReleaseMs)} then redis.call('PEXPIRE', KEYS[1], '${String(overtakingReleaseMs)}') end
if standing(record) then return 'kept' end
return 'released'
`;

/** ARGV: attempt · fence · fingerprint · route · retention ms. */
const mark = `
local found = read()
if found and not found.ours then return 'unsupported' end
local record = standing(found)
if not record then
  local fence = ARGV[2]
  if found then
    if found.owner == ARGV[1] and tonumber(found.fence) >= tonumber(fence) then return 'kept' end
    if tonumber(found.fence) > tonumber(fence) then fence = found.fence end
  end
  bounded()
  redis.call('HSET', KEYS[1], 'v', '1', 's', 'unknown', 'fp', ARGV[3], 'o', ARGV[1], 'f', fence, 'c', text(now), 'l', text(now),
    'to', '0', 'r', ARGV[4])
  redis.call('PEXPIRE', KEYS[1], ARGV[5])
  return 'repaired'
end
if not owns(record) then return 'fenced' end
if record.state ~= 'pending' and record.state ~= 'unknown' then return 'kept' end
redis.call('HSET', KEYS[1], 's', 'unknown')
return 'unknown'
`;

/** ARGV: `committed` or `not-applied`. */
const resolve = `
local record = standing(read())
if not record then return 'absent' end
if not record.ours then return 'unsupported' end
if record.state ~= 'unknown' and not record.lapsed then return 'not_in_doubt' end
if ARGV[1] == 'not-applied' then
  free(record)
else
  redis.call('HSET', KEYS[1], 's', 'tombstone', 'st', '0', 'h', '[]', 'b', '')
end
return 'resolved'
`;

/** No ARGV. The server's time, and where there is a record its fields and the milliseconds it has left. */
const show = `
if not standing(read()) then return { text(now) } end
local fields = redis.call('HMGET', KEYS[1], 'v', 's', 'fp', 'o', 'f', 'c', 'l', 'st', 'h', 'b', 'to', 'r')
table.insert(fields, 1, text(now))
table.insert(fields, text(redis.call('PTTL', KEYS[1])))
return fields
`;

/**
 * `takeRequest` of `decision/route/rate-limit.ts`, in microseconds. KEYS[1] is when the bucket is full, and ends then.
 * ARGV: microseconds for each request · burst. Answers how long to wait, 0 where the request is counted.
 */
const limit = `
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
local interval = tonumber(ARGV[1])
local depth = interval * tonumber(ARGV[2])
local kept = tonumber(redis.call('GET', KEYS[1]) or '') or now
local full = math.min(math.max(kept, now), now + depth)
local wait = full + interval - depth - now
local counted = wait <= 0.5
if counted then full = full + interval end
if counted or kept > full then
  redis.call('SET', KEYS[1], string.format('%.0f', full), 'PX', string.format('%.0f', math.ceil((full - now) / 1000)))
end
if counted then return '0' end
return string.format('%.0f', wait)
`;

/**
 * Counts what is kept of one caller. KEYS[1] is a hash: n the hour up to which what ended was taken off, t bytes in
 * all, and a ring of hours with the bytes that end in each. ARGV: share · bytes without the response · bytes with it ·
 * retention ms. Nothing to add only asks. Answers whether the response fits, and bytes in all.
 */
const keep = `
local function text(number) return string.format('%.0f', number) end
local hours, hourMs = 1024, 3600000
local time = redis.call('TIME')
local hour = math.floor(tonumber(time[1]) / 3600)
local found = redis.call('HMGET', KEYS[1], 'n', 't')
local seen, total = tonumber(found[1] or '') or hour, tonumber(found[2] or '') or 0
local fields, ended = {}, {}
for past = math.max(seen, hour - hours) + 1, hour do
  local field = 'h' .. text(past % hours)
  total = total - (tonumber(redis.call('HMGET', KEYS[1], field)[1] or '') or 0)
  ended[field] = true
  table.insert(fields, field)
  table.insert(fields, '0')
end
local share, least, all = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local fits = total + all <= share
local added = fits and all or least
if added > 0 then
  -- Rounded up: what began at the end of this hour ends that much later.
  local ends = math.ceil(tonumber(ARGV[4]) / hourMs) + 1
  local field = 'h' .. text((hour + ends) % hours)
  -- After a long silence this hour may be one of those that have ended.
  local there = not ended[field] and tonumber(redis.call('HMGET', KEYS[1], field)[1] or '') or 0
  table.insert(fields, field)
  table.insert(fields, text(there + added))
  total = total + added
  local lasts = math.max(redis.call('PTTL', KEYS[1]), (ends + 1) * hourMs)
  redis.call('PEXPIRE', KEYS[1], text(lasts))
  redis.call('HSET', KEYS[1], 'n', text(hour), 't', text(total), unpack(fields))
  redis.call('PEXPIRE', KEYS[1], text(lasts))
end
return { fits and '1' or '0', text(total) }
`;

/** A script, and whether it may run while Redis is out of memory: what settles frees or keeps little. */
export interface Script {
  readonly name:
    | 'reserve'
    | 'complete'
    | 'release'
    | 'mark'
    | 'resolve'
    | 'show'
    | 'limit'
    | 'keep'
    | 'revocations'
    | 'revoke'
    | 'undo'
    | 'announce'
    | 'floor'
    | 'rights';
  readonly body: string;
  readonly allowsOom: boolean;
}

export const scripts = {
  reserve: { name: 'reserve', body: prelude + reserve, allowsOom: false },
  complete: { name: 'complete', body: prelude + complete, allowsOom: true },
  release: { name: 'release', body: prelude + release, allowsOom: true },
  mark: { name: 'mark', body: prelude + mark, allowsOom: true },
  resolve: { name: 'resolve', body: prelude + resolve, allowsOom: true },
  show: { name: 'show', body: prelude + show, allowsOom: true },
  limit: { name: 'limit', body: limit, allowsOom: false },
  keep: { name: 'keep', body: keep, allowsOom: true },
} as const satisfies Readonly<Record<string, Script>>;

/**
 * The text to load on a server. Flags came with Redis 7.0; 6.2 takes the same script without them and refuses a settle
 * while out of memory, which is then retried.
 */
export function scriptText(script: Script, majorVersion: number): string {
  return script.allowsOom && majorVersion >= 7 ? `#!lua flags=allow-oom\n${script.body}` : script.body;
}

/** The same, with one ARGV more, the last: what is answered is that one, and behind it what the script answers. */
export function echoingText(script: Script, majorVersion: number): string {
  const body = `local function run()
${script.body}
end
local reply = run()
if type(reply) == 'table' and reply.err then return reply end
return { ARGV[#ARGV], reply }
`;
  return scriptText({ ...script, body }, majorVersion);
}
