/**
 * The state machine of `decision/reservation.ts` in Lua, so that one command reads, decides and writes at once. The same
 * suite drives both. KEYS[1] is the record (a hash), KEYS[2] the token's marker (a string); both carry the principal's
 * hash tag, so that a Redis Cluster runs the script where both live. Time is the server's: processes disagree.
 *
 * Hash fields: v version, s state, fp fingerprint, o owner, f fence, c created, l lease end, st status, h headers (JSON),
 * b body. Numbers are decimal text; a Lua number would lose its last digits when turned into text by itself.
 */

const prelude = `
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local function text(number) return string.format('%.0f', number) end
local function read()
  local fields = redis.call('HMGET', KEYS[1], 'v', 's', 'fp', 'o', 'f', 'l', 'st', 'h', 'b')
  if not fields[1] then
    if redis.call('EXISTS', KEYS[1]) == 0 then return nil end
    return { version = '' }
  end
  local record = { version = fields[1], state = fields[2], fingerprint = fields[3], owner = fields[4], fence = fields[5],
    lease = tonumber(fields[6] or '0'), status = fields[7] or '0', headers = fields[8] or '[]', body = fields[9] or '' }
  if record.state == 'pending' and now >= record.lease then record.lapsed = true end
  return record
end
local function supported(record) return record.version == '1' end
`;

/** ARGV: attempt · has key · fingerprint · lease ms · retention ms · takes over · has marker · marker TTL ms. */
const reserve = `
local attempt = ARGV[1]
local marked = ARGV[7] == '1'
if marked then
  local used = redis.call('GET', KEYS[2])
  if used and used ~= attempt then return { 'token_replayed' } end
end
local record = nil
if ARGV[2] == '1' then
  record = read()
  if record and not supported(record) then return { 'unsupported' } end
end
if marked then redis.call('SET', KEYS[2], attempt, 'PX', ARGV[8], 'NX') end
if ARGV[2] == '0' then return { 'acquired', text(now), '0' } end
local lastFence = 0
local takenOver = '0'
if record then
  if record.fingerprint ~= ARGV[3] then return { 'mismatch' } end
  if record.state == 'pending' and record.owner == attempt then return { 'acquired', record.fence, '0' } end
  if record.lapsed then redis.call('HSET', KEYS[1], 's', 'unknown') record.state = 'unknown' end
  if record.state == 'pending' then return { 'in_progress', text(record.lease - now) } end
  if record.state == 'completed' then return { 'replayed', record.status, record.headers, record.body } end
  if record.state == 'tombstone' then return { 'tombstone', record.status } end
  if record.state ~= 'unknown' then return { 'unsupported' } end
  if ARGV[6] == '0' then return { 'unknown' } end
  lastFence = tonumber(record.fence)
  takenOver = '1'
end
local fence = text(math.max(lastFence + 1, now))
redis.call('DEL', KEYS[1])
redis.call('HSET', KEYS[1], 'v', '1', 's', 'pending', 'fp', ARGV[3], 'o', attempt, 'f', fence, 'c', text(now),
  'l', text(now + tonumber(ARGV[4])))
redis.call('PEXPIRE', KEYS[1], text(tonumber(ARGV[4]) + tonumber(ARGV[5])))
return { 'acquired', fence, takenOver }
`;

/** ARGV: attempt · fence · fingerprint · state · status · headers · body · retention ms. */
const complete = `
local record = read()
if record and not supported(record) then return 'unsupported' end
if record and (record.owner ~= ARGV[1] or record.fence ~= ARGV[2]) then return 'fenced' end
if record and (record.state == 'completed' or record.state == 'tombstone') then return 'completed' end
if not record then
  redis.call('HSET', KEYS[1], 'v', '1', 'fp', ARGV[3], 'o', ARGV[1], 'f', ARGV[2], 'c', text(now), 'l', text(now))
end
redis.call('HSET', KEYS[1], 's', ARGV[4], 'st', ARGV[5], 'h', ARGV[6], 'b', ARGV[7])
redis.call('PEXPIRE', KEYS[1], ARGV[8])
if record then return 'completed' end
return 'repaired'
`;

/** ARGV: attempt. */
const release = `
local record = read()
if not record then return 'released' end
if not supported(record) then return 'unsupported' end
if record.owner ~= ARGV[1] or record.state ~= 'pending' or record.lapsed then return 'kept' end
redis.call('DEL', KEYS[1])
return 'released'
`;

/** ARGV: attempt · fence. */
const mark = `
local record = read()
if not record then return 'kept' end
if not supported(record) then return 'unsupported' end
if record.owner ~= ARGV[1] or record.fence ~= ARGV[2] then return 'kept' end
if record.state ~= 'pending' and record.state ~= 'unknown' then return 'kept' end
redis.call('HSET', KEYS[1], 's', 'unknown')
return 'unknown'
`;

/** ARGV: `committed` or `not-applied`. */
const resolve = `
local record = read()
if not record then return 'absent' end
if not supported(record) then return 'unsupported' end
if record.state ~= 'unknown' and not record.lapsed then return 'not_in_doubt' end
if ARGV[1] == 'not-applied' then
  redis.call('DEL', KEYS[1])
else
  redis.call('HSET', KEYS[1], 's', 'tombstone', 'st', '0', 'h', '[]', 'b', '')
end
return 'resolved'
`;

/** No ARGV. The server's time, and where there is a record its fields and the milliseconds it has left. */
const show = `
if redis.call('EXISTS', KEYS[1]) == 0 then return { text(now) } end
local fields = redis.call('HMGET', KEYS[1], 'v', 's', 'fp', 'o', 'f', 'c', 'l', 'st', 'h', 'b')
table.insert(fields, 1, text(now))
table.insert(fields, text(redis.call('PTTL', KEYS[1])))
return fields
`;

/** A script, and whether it may run while Redis is out of memory: what settles frees or keeps little. */
export interface Script {
  readonly name: 'reserve' | 'complete' | 'release' | 'mark' | 'resolve' | 'show';
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
} as const satisfies Record<Script['name'], Script>;

/**
 * The text to load on a server. Flags came with Redis 7.0; 6.2 takes the same script without them and refuses a settle
 * while out of memory, which is then retried.
 */
export function scriptText(script: Script, majorVersion: number): string {
  return script.allowsOom && majorVersion >= 7 ? `#!lua flags=allow-oom\n${script.body}` : script.body;
}
