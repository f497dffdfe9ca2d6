/**
 * Finds out which rights the user of a store lacks, by calling what scripts call on a key that nobody has. It leaves
 * nothing behind.
 */
import type { Script } from './reservation.js';
import type { ScriptCall, ScriptReply } from './run-script.js';
import { textOf, UnexpectedReply } from './replies.js';

/** Answers the commands that a script may not call. The one that writes is undone at once, where that is allowed. */
const body = `
local key = KEYS[1]
local calls = { { 'get', key }, { 'set', key, '', 'xx' }, { 'hmget', key, 'v' }, { 'exists', key }, { 'pexpire', key, '1' },
  { 'pttl', key }, { 'del', key }, { 'hset', key, 'v', '' } }
local missing = {}
for _, call in ipairs(calls) do
  if call[1] ~= 'hset' or missing[#missing] ~= 'del' then
    local reply = redis.pcall(unpack(call))
    local why = type(reply) == 'table' and reply.err or ''
    if string.find(why, 'The user executing the script', 1, true) or string.find(why, 'ACL failure in script', 1, true) then
      table.insert(missing, call[1])
    elseif call[1] == 'hset' then redis.call('del', key) end
  end
end
return missing
`;

const rightsScript: Script = { name: 'rights', body, allowsOom: true };

/**
 * Returns the names of the commands that reservations need and the user may not run.
 *
 * @param ask runs a script on the server.
 * @throws what `runScript` throws: the user may not run scripts, say, or the key lies on another node.
 */
export async function missingRights(
  ask: (call: ScriptCall) => Promise<ScriptReply>,
  prefix: string,
): Promise<readonly string[]> {
  const call = { script: rightsScript, keys: [`${prefix}:{doctor}:i:rights`], values: [], replicas: 0 };
  const { reply } = await ask({ ...call, deadlineMs: 3_000 });
  if (!Array.isArray(reply)) throw new UnexpectedReply('rights');
  return reply.map(textOf);
}
