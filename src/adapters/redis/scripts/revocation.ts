/**
 * Revocations in one hash, so that one command sees all of them and they live on one slot of a Cluster. Fields: `e:ID`
 * a revocation, `u:ID` that it was undone, `rev` a name for this state of the hash. A value is `1 BEGIN END JSON`, both
 * times the server's in milliseconds: a script has to tell what is over without reading JSON that somebody else may
 * have written. KEYS[1] is the hash.
 */
import { maxRevocationMs } from '../../../decision/revocation/record.js';
import type { Script } from './reservation.js';

const time = `
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local function text(number) return string.format('%.0f', number) end
`;

const writing = `${time}
local longest = ${String(maxRevocationMs)}
local function tell(channel)
  local told = redis.pcall('PUBLISH', channel, '')
  if type(told) == 'table' and told.err then return '0' end
  return '1'
end
local function ends(value)
  local last = value and tonumber(string.match(value, '^1 %d+ (%d+) '))
  return last and math.min(last, now + longest)
end
-- Before anything is written: a user without the right to it would leave a hash without an end.
local function bounded()
  local left = redis.call('PTTL', KEYS[1])
  if left < 60000 then redis.call('PEXPIRE', KEYS[1], left == -1 and text(longest) or '60000') end
end
-- Drops what is over; answers how many are left, and when the last of them ends.
local function prune()
  local left, latest = 0, now
  local all = redis.call('HGETALL', KEYS[1])
  for index = 1, #all, 2 do
    local last = ends(all[index + 1])
    if all[index] ~= 'rev' and last and last <= now then redis.call('HDEL', KEYS[1], all[index])
    elseif all[index] ~= 'rev' then
      left = left + 1
      latest = math.max(latest, last or now)
    end
  end
  return left, latest
end
local function keepUntil(last) redis.call('PEXPIRE', KEYS[1], text(last - now)) end
local function isHuge(most) return redis.call('HLEN', KEYS[1]) > 10 * tonumber(most) end
`;

/** ARGV: the version that is known, `*` for none · most fields · most bytes of a value. */
const revocations = `${time}
local version = redis.call('HMGET', KEYS[1], 'rev')[1] or ''
if ARGV[1] ~= '*' and version == ARGV[1] then return { 'same' } end
if redis.call('HLEN', KEYS[1]) > tonumber(ARGV[2]) then return { 'too_many' } end
local reply = { 'list', text(now), string.sub(version, 1, 64) }
local all = redis.call('HGETALL', KEYS[1])
for index = 1, #all, 2 do
  if all[index] ~= 'rev' then
    table.insert(reply, string.sub(all[index], 1, 64))
    table.insert(reply, #all[index + 1] <= tonumber(ARGV[3]) and all[index + 1] or '')
  end
end
return reply
`;

/** ARGV: id · JSON · how long it holds, ms · most records · channel. */
const revoke = `${writing}
if isHuge(ARGV[4]) then return { 'full' } end
bounded()
local left, latest = prune()
if left >= tonumber(ARGV[4]) then return { 'full' } end
local last = now + tonumber(ARGV[3])
redis.call('HSET', KEYS[1], 'e:' .. ARGV[1], '1 ' .. text(now) .. ' ' .. text(last) .. ' ' .. ARGV[2], 'rev', ARGV[1])
keepUntil(math.max(last, latest))
return { 'revoked', text(now), text(last), tell(ARGV[5]) }
`;

/**
 * ARGV: id · JSON · version · most records · channel. What the end of a revocation is that cannot be read, nobody
 * knows: the longest.
 */
const undo = `${writing}
if isHuge(ARGV[4]) then return { 'full' } end
local found = redis.call('HMGET', KEYS[1], 'e:' .. ARGV[1], 'u:' .. ARGV[1])
local before = ends(found[2])
bounded()
local left, latest = prune()
if not found[1] and not before and left >= tonumber(ARGV[4]) then return { 'full' } end
local last = math.max(ends(found[1]) or before or now + longest, now + 60000)
redis.call('HSET', KEYS[1], 'u:' .. ARGV[1], '1 ' .. text(now) .. ' ' .. text(last) .. ' ' .. ARGV[2], 'rev', ARGV[3])
redis.call('HDEL', KEYS[1], 'e:' .. ARGV[1])
keepUntil(math.max(last, latest))
return { found[1] and 'undone' or before and 'already' or 'unknown', tell(ARGV[5]) }
`;

/** ARGV: channel. */
const announce = `${writing}
return tell(ARGV[1])
`;

/** They free, or keep little, and matter most when things go wrong: they run while Redis is out of memory. */
export const revocationScripts = {
  revocations: { name: 'revocations', body: revocations, allowsOom: true },
  revoke: { name: 'revoke', body: revoke, allowsOom: true },
  undo: { name: 'undo', body: undo, allowsOom: true },
  announce: { name: 'announce', body: announce, allowsOom: true },
} as const satisfies Readonly<Record<string, Script>>;
