/** The script of the store, which runs in Redis. */

import { ENTRY_BYTES } from "../../execute/durable/mod.ts";

/**
 * The Redis keys of a shard, all with one hash tag: the values by key, the sorted keys, the times
 * of expiry, the times from which entries are due, the bytes of each owner, and the last revision.
 */
export const KEYS: readonly string[] = ["values", "keys", "expires", "due", "owners", "revision"];

/**
 * Runs an action (`ARGV[1]`) on a shard. Returns the server's time in microseconds, and the result.
 *
 * The script has no line `#!lua`, so that a full server can still read and delete. A full server
 * must reject the first write of a creation, because an error after it would not undo this write.
 * Entries do not use the expiry of Redis, which would not update the owner's bytes.
 */
export const SCRIPT = `
local values, keys, expires, due, owners, last = unpack(KEYS)
local action, deadline, key = ARGV[1], tonumber(ARGV[2]), ARGV[3]
local time = redis.call('TIME')
local micros = time[1] * 1000000 + time[2]
local now = micros / 1000

-- tostring() has 14 digits only.
local function text(number) return string.format('%.17g', number) end
local function owner_of(name) return string.match(name, '^[^.]*%.([^.]*)') or '' end

local function read(name)
  local stored = redis.call('HGET', values, name)
  if not stored then return nil end
  local revision, ends = struct.unpack('<dd', stored)
  return stored, revision, ends
end

local function weigh(owner, more)
  if redis.call('HINCRBY', owners, owner, text(more)) == 0 then redis.call('HDEL', owners, owner) end
end

local function forget(name, stored)
  redis.call('HDEL', values, name)
  for _, index in ipairs({keys, expires, due}) do redis.call('ZREM', index, name) end
  weigh(owner_of(name), 16 - ${ENTRY_BYTES} - #name - #stored)
end

local function sweep(count)
  local expired = redis.call('ZRANGEBYSCORE', expires, '-inf', text(now), 'LIMIT', 0, count)
  for _, name in ipairs(expired) do forget(name, (read(name))) end
end

local function set_time(index, at)
  if at == '' then redis.call('ZREM', index, key) else redis.call('ZADD', index, at, key) end
end

local actions = {}
function actions.time() return true end

function actions.info()
  local info = redis.call('INFO')
  local function field(name) return string.match(info, '%c' .. name .. ':([^%c]*)') or '' end
  return {field('role'), field('maxmemory_policy'), field('aof_enabled')}
end

function actions.get()
  local stored, _, ends = read(key)
  return stored and ends > now and stored or false
end

function actions.put()
  local expected, ends, most = tonumber(ARGV[4]), tonumber(ARGV[5]) or math.huge, tonumber(ARGV[7])
  local value, owner = ARGV[8], owner_of(key)
  local stored, revision, had_ends = read(key)
  if stored and had_ends <= now then
    forget(key, stored)
    stored, revision = nil, nil
  end
  if revision ~= expected then return false end
  sweep(16)
  local more = stored and 16 + #value - #stored or ${ENTRY_BYTES} + #key + #value
  local function exceeds()
    return more > 0 and (tonumber(redis.call('HGET', owners, owner)) or 0) + more > most
  end
  if exceeds() then sweep(1000) end
  if exceeds() then return 'quota' end
  -- At least the time: revisions do not fall on a server that has lost its data.
  local next = math.max((tonumber(redis.call('GET', last)) or 0) + 1, micros)
  redis.call('HSET', values, key, struct.pack('<dd', next, ends) .. value)
  redis.call('SET', last, text(next))
  redis.call('ZADD', keys, 0, key)
  set_time(expires, ARGV[5])
  set_time(due, ARGV[6])
  weigh(owner, more)
  return next
end

function actions.delete()
  local stored, revision, ends = read(key)
  if not stored or ends <= now or revision ~= tonumber(ARGV[4]) then return false end
  forget(key, stored)
  return true
end

-- Returns the entries from one key to another: at most 128, and 1 MiB and one.
function actions.list()
  local found, bytes = {}, 0
  for _, name in ipairs(redis.call('ZRANGEBYLEX', keys, key, ARGV[4], 'LIMIT', 0, 128)) do
    if bytes > 1048576 then break end
    local stored = read(name)
    for _, part in ipairs({name, '', stored}) do table.insert(found, part) end
    bytes = bytes + #stored
  end
  return found
end

-- Returns true if a key is after another one. "<" compares by the locale of the server.
local function is_after(name, other)
  for at = 1, math.min(#name, #other) do
    local a, b = string.byte(name, at), string.byte(other, at)
    if a ~= b then return a > b end
  end
  return #name > #other
end

-- Returns the keys, times and values of the first entries of a kind.
function actions.due()
  sweep(128)
  local found, begin, limit = {}, key .. '.', 3 * tonumber(ARGV[5])
  local first, last = ARGV[6], ARGV[7]
  for from = 0, math.huge, 128 do
    local page = redis.call(
      'ZRANGEBYSCORE', due, first, ARGV[4], 'WITHSCORES', 'LIMIT', from, 128)
    for at = 1, #page, 2 do
      if #found == limit then return found end
      local is_next = tonumber(page[at + 1]) ~= tonumber(first) or is_after(page[at], last)
      if is_next and string.sub(page[at], 1, #begin) == begin then
        local stored, _, ends = read(page[at])
        if ends > now then
          for _, part in ipairs({page[at], page[at + 1], stored}) do table.insert(found, part) end
        end
      end
    end
    if #page < 256 then return found end
  end
end

if deadline and now > deadline and (action == 'put' or action == 'delete') then
  return {micros, false, 1}
end
return {micros, actions[action]()}
`;
