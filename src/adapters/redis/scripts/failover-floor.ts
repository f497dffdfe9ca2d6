/**
 * What a store remembers of its fail-overs. KEYS[1] is a hash on the primary that it is about: v version, id which
 * primary it was when it was last looked at, e a name for this state of the store, at since when single-use tokens are
 * good, by the clock of the proxy that wrote it, t when somebody looked last, by the server's clock. A primary that was
 * replaced or restarted is another one; one that was emptied has no hash, and gets one with another name.
 *
 * Where the server's clock is ahead of what it should say by more than a marker outlives its token, markers of tokens
 * that are good still may have ended. A proxy that has read that clock before knows what it should say. One that has
 * not goes by when somebody looked last: either nobody did for so long, or the clock has stepped just now, and the one
 * cannot be told from the other.
 */
import { markerMarginMs } from '../../../decision/idempotency/dispatch-check.js';
import { numberOf, textOf, UnexpectedReply } from './replies.js';
import type { Script } from './reservation.js';

/** How long it stays after the last look, milliseconds: tokens live for hours. */
export const floorLastsMs = 31 * 86_400_000;

/**
 * ARGV: identity of the primary · a new name · now by our clock, ms · since when we know tokens to be good, ms · how
 * long it stays, ms · the server's time as we expect it, ms, or nothing.
 */
const body = `
local time = redis.call('TIME')
local now = string.format('%.0f', tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000))
local left = redis.call('PTTL', KEYS[1])
local found = redis.call('HMGET', KEYS[1], 'v', 'id', 'e', 'at', 't')
if found[1] and found[1] ~= '1' then return { 'unsupported' } end
local epoch, at, ahead = found[3], found[4], 0
if not found[1] or found[2] ~= ARGV[1] or not epoch or not tonumber(at or '') then
  epoch, at, left = ARGV[2], ARGV[3], -1
  -- Fails, before there is a key, for a user without the right to it: that key would have no end.
  redis.call('PEXPIRE', KEYS[1], ARGV[5])
  redis.call('HSET', KEYS[1], 'v', '1', 'id', ARGV[1], 'e', epoch, 'at', at, 't', now)
else
  local since = tonumber(ARGV[4])
  ahead = math.max(0, tonumber(now) - (tonumber(ARGV[6]) or tonumber(found[5] or '') or tonumber(now)))
  if ahead <= ${String(markerMarginMs)} then ahead = 0 else since = math.max(since, tonumber(ARGV[3])) end
  if since > tonumber(at) then
    at = string.format('%.0f', since)
    redis.call('HSET', KEYS[1], 'at', at)
  end
  -- Redis 6.2 takes no such write while it is out of memory. Without it who starts then refuses more, and what stands here is read all the same.
  redis.pcall('HSET', KEYS[1], 't', now)
end
if left < tonumber(ARGV[5]) - 86400000 then redis.call('PEXPIRE', KEYS[1], ARGV[5]) end
return { 'seen', epoch, at, now, string.format('%.0f', ahead) }
`;

export const floorScript: Script = { name: 'floor', body, allowsOom: true };

/** What the store remembers. */
export interface SeenState {
  /** A name for this state of the store. */
  readonly epoch: string;
  /** Milliseconds since the epoch: single-use tokens issued before may have been used. */
  readonly atMs: number;
  /** The clock of the server, milliseconds. */
  readonly serverMs: number;
  /** How far it is ahead of what it should say; 0 where that is too little to matter. */
  readonly aheadMs: number;
}

export function readSeenState(reply: unknown): SeenState {
  const parts: readonly unknown[] = Array.isArray(reply) ? reply : [];
  if (textOf(parts[0]) !== 'seen') throw new UnexpectedReply('floor');
  return {
    epoch: textOf(parts[1]),
    atMs: numberOf(parts[2]),
    serverMs: numberOf(parts[3]),
    aheadMs: numberOf(parts[4]),
  };
}
