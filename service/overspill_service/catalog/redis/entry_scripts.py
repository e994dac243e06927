"""The Lua scripts of entries, of the totals and of who has read captures.

The keys are those of `key_names.of_entry`: capture, expiry, totals, reserved, tombstones, sizes, readers,
then the indexes of positions.
"""

from __future__ import annotations

from typing import Final

from overspill_service.catalog.redis.script import WHOLE, Script

_ROOM: Final = (
    WHOLE
    + """
local function now()
    local time = redis.call('TIME')
    return time[1] * 1000 + math.floor(time[2] / 1000)
end

-- Returns 1 if the tenant may hold this charge too, 0 if its totals are not known, or less the number of the
-- part of the charge that exceeds its limit. What other uploads have reserved counts.
-- complete: the complete state that the totals must be of ('': any). A limit of 0 is none.
local function room(totals, reserved, upload, complete, charge, limits)
    require_whole(totals)
    local held = redis.call('HMGET', totals, 'captures', 'size', 'stored', 'metadata', 'complete')
    if not held[1] or (complete ~= '' and held[5] ~= complete) then return 0 end
    for i = 1, 4 do held[i] = tonumber(held[i] or 0) + tonumber(charge[i]) end
    local moment, entries = now(), redis.call('HGETALL', reserved)
    for i = 1, #entries, 2 do
        local size, stored, ends, captures = string.match(entries[i + 1], '(%d+) (%d+) (%d+) ?(%d*)')
        local left = tonumber(ends) - moment
        -- None lasts an hour: one with more time left was made by a clock that was ahead.
        if left <= 0 or left > 3600000 then redis.call('HDEL', reserved, entries[i])
        elseif entries[i] ~= upload then
            held[1] = held[1] + (tonumber(captures) or 1)  -- replicas of an older version tell none
            held[2], held[3] = held[2] + tonumber(size), held[3] + tonumber(stored)
        end
    end
    for i = 1, 4 do
        local limit = tonumber(limits[i])
        if limit > 0 and held[i] > limit then return -i end
    end
    return 1
end
"""
)
"""The beginning of scripts that hold a tenant to its limits. The parts are those of `records.Charge`."""

COMMIT: Final = Script(
    _ROOM
    + """
-- ARGV: value, position, id, expires, upload, complete state as of `room`, the charge, the limits
-- Returns the stored entry, or the stored tombstone of this upload, or what `room` returns.
-- If an earlier attempt has stored this very entry and its answer was lost, the entry is returned: right too.
local stored = redis.call('GET', KEYS[1])
if stored and string.sub(stored, 1, 1) ~= 'T' then return stored end
-- A tombstone lists the keys of its objects, and each key contains /UPLOAD-: so this one is of this upload.
-- The last argument turns patterns off, because '-' is one.
if stored and string.find(stored, '/' .. ARGV[5] .. '-', 1, true) then return stored end
local charge = {ARGV[7], ARGV[8], ARGV[9], ARGV[10]}
local limits = {ARGV[11], ARGV[12], ARGV[13], ARGV[14]}
local answer = room(KEYS[3], KEYS[4], ARGV[5], ARGV[6], charge, limits)
if answer ~= 1 then return answer end
-- SET also removes the lifetime of a tombstone that it replaces.
redis.call('SET', KEYS[1], ARGV[1])
if stored then redis.call('ZREM', KEYS[5], ARGV[3]) end
redis.call('ZADD', KEYS[2], ARGV[4], ARGV[3])
redis.call('HINCRBY', KEYS[3], 'captures', 1)
redis.call('HINCRBY', KEYS[3], 'size', charge[2])
redis.call('HINCRBY', KEYS[3], 'stored', charge[3])
redis.call('HINCRBY', KEYS[3], 'metadata', charge[4])
redis.call('HDEL', KEYS[4], ARGV[5])
redis.call('ZADD', KEYS[6], charge[2], ARGV[3])
for i = 8, #KEYS do redis.call('ZADD', KEYS[i], 0, ARGV[2]) end
return 1
"""
)

RESERVE: Final = Script(
    _ROOM
    + """
-- KEYS: totals, reserved. ARGV: upload, lifetime in ms, complete state, the charge, the limits
-- Returns what `room` returns.
local charge = {ARGV[4], ARGV[5], ARGV[6], ARGV[7]}
local limits = {ARGV[8], ARGV[9], ARGV[10], ARGV[11]}
local answer = room(KEYS[1], KEYS[2], ARGV[1], ARGV[3], charge, limits)
if answer ~= 1 then return answer end
local value = string.format('%.0f %.0f %.0f %.0f', charge[2], charge[3], now() + ARGV[2], charge[1])
-- A renewed reservation takes no more memory, so it is renewed even if Redis is out of memory.
if redis.call('HEXISTS', KEYS[2], ARGV[1]) == 1 then redis.call('HDEL', KEYS[2], ARGV[1]) end
redis.call('HSET', KEYS[2], ARGV[1], value)
if redis.call('PTTL', KEYS[2]) < tonumber(ARGV[2]) then redis.call('PEXPIRE', KEYS[2], ARGV[2]) end
return 1
"""
)

RESTORE: Final = Script("""
-- ARGV: the damaged value, value, position, id, expires, size. Returns 1, or 0 if another value is stored.
-- The totals stay: the damaged entry was counted when it was committed.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2])
redis.call('ZADD', KEYS[2], ARGV[5], ARGV[4])
redis.call('ZADD', KEYS[6], ARGV[6], ARGV[4])
for i = 8, #KEYS do redis.call('ZADD', KEYS[i], 0, ARGV[3]) end
return 1
""")

REMOVE: Final = Script(
    WHOLE
    + """
-- ARGV: value, position, id, tombstone, its lifetime in ms (0: none is kept), -size, -stored size, -metadata,
--       how many tombstones are kept, the bytes of a readers' key
-- Returns what is stored instead of the value, or a list: the ids of the oldest tombstones beyond those that
-- are kept. The tombstone has a nonce, so an equal one is an earlier attempt of this call, and the totals
-- were changed by it.
local stored = redis.call('GET', KEYS[1])
if stored == ARGV[4] then return {} end
if stored ~= ARGV[1] then return stored end
require_whole(KEYS[3])
-- What frees memory comes first: then Redis lets the rest of the script write even if it is out of memory.
local readers = redis.call('STRLEN', KEYS[7])
redis.call('DEL', KEYS[7])
redis.call('ZREM', KEYS[2], ARGV[3])
redis.call('ZREM', KEYS[6], ARGV[3])
if readers > 0 then redis.call('HINCRBY', KEYS[3], 'readers', -readers - ARGV[10]) end
if ARGV[5] == '0' then redis.call('DEL', KEYS[1])
else redis.call('SET', KEYS[1], ARGV[4], 'PX', ARGV[5]) end
redis.call('HINCRBY', KEYS[3], 'captures', -1)
redis.call('HINCRBY', KEYS[3], 'size', ARGV[6])
redis.call('HINCRBY', KEYS[3], 'stored', ARGV[7])
redis.call('HINCRBY', KEYS[3], 'metadata', ARGV[8])
for i = 8, #KEYS do redis.call('ZREM', KEYS[i], ARGV[2]) end
if ARGV[5] == '0' then return {} end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[5], '-inf', now)
redis.call('ZADD', KEYS[5], now + ARGV[5], ARGV[3])
redis.call('PEXPIRE', KEYS[5], ARGV[5])
local surplus = redis.call('ZCARD', KEYS[5]) - ARGV[9]
if surplus <= 0 then return {} end
return redis.call('ZRANGE', KEYS[5], 0, math.min(surplus, 16) - 1)
"""
)

FORGET: Final = Script("""
-- KEYS: tombstones, then captures. ARGV: the ids of the captures. Forgets those that are tombstones.
for i, id in ipairs(ARGV) do
    local stored = redis.call('GET', KEYS[i + 1])
    if stored and string.sub(stored, 1, 1) == 'T' then redis.call('DEL', KEYS[i + 1]) end
    redis.call('ZREM', KEYS[1], id)
end
return 1
""")

AMEND: Final = Script("""
-- KEYS: capture, expiry. ARGV: value, new value, id, expires
-- Compare and set. Returns 1, or what is stored instead of the value.
local stored = redis.call('GET', KEYS[1])
if stored == ARGV[2] then return 1 end
if stored ~= ARGV[1] then return stored end
-- What takes no more memory is possible even if Redis is out of memory, such as the end of a hold.
if #ARGV[2] <= #stored then redis.call('ZREM', KEYS[2], ARGV[3]) end
redis.call('SET', KEYS[1], ARGV[2])
redis.call('ZADD', KEYS[2], ARGV[4], ARGV[3])
return 1
""")

NOTE_READERS: Final = Script("""
-- KEYS: totals, then of each note: capture, readers
-- ARGV: the most bytes of the tenant's readers (0: any), the most readers of a capture, and their bytes, the
--       bytes of each besides its name, the bytes of a key, then of each note: upload, name, whether on the
--       page, when. As `readers.noted` does it.
-- An entry begins with E, and names its upload near its beginning.
local most, most_readers, most_bytes = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local taken = tonumber(redis.call('HGET', KEYS[1], 'readers') or 0)
local before = taken
local function is_stored(capture, upload)
    local beginning = redis.call('GETRANGE', capture, 0, 511)
    return string.sub(beginning, 1, 1) == 'E' and string.find(beginning, upload, 1, true)
end
local function with(stored, own)
    local all, kept, size = {own}, {}, 0
    for _, each in ipairs(stored and cmsgpack.unpack(stored) or {}) do
        if each[1] ~= own[1] or each[2] ~= own[2] then all[#all + 1] = each
        else own[3], own[4] = math.min(own[3], each[3]), math.max(own[4], each[4]) end
    end
    table.sort(all, function(one, other) return one[4] > other[4] end)
    for _, each in ipairs(all) do
        size = size + #each[1] + ARGV[4]
        if #kept == most_readers or size > most_bytes then break end
        kept[#kept + 1] = each
    end
    return cmsgpack.pack(kept)
end
for i = 2, #KEYS, 2 do
    local at = 4 + i * 2
    if is_stored(KEYS[i], ARGV[at - 2]) then
        local stored, moment = redis.call('GET', KEYS[i + 1]), tonumber(ARGV[at + 1])
        local own = {ARGV[at - 1], ARGV[at] == '1', moment, moment}
        local is_whole, value = pcall(with, stored, own)
        if not is_whole then value = cmsgpack.pack({own}) end
        local growth = #value - (stored and #stored or -ARGV[5])
        if growth <= 0 or most == 0 or taken + growth <= most then
            redis.call('SET', KEYS[i + 1], value)
            taken = taken + growth
        end
    end
end
if taken ~= before then redis.call('HINCRBY', KEYS[1], 'readers', taken - before) end
return 1
""")

PAGE: Final = Script("""
-- KEYS: indexes that all contain the wanted entries. ARGV: highest, lowest, count
-- Returns positions from the shortest index, highest first. The caller checks the other conditions on the
-- entries: an intersection would cost the length of the indexes for every page.
local shortest, fewest = KEYS[1], redis.call('ZCARD', KEYS[1])
for i = 2, #KEYS do
    local length = redis.call('ZCARD', KEYS[i])
    if length < fewest then shortest, fewest = KEYS[i], length end
end
return redis.call('ZREVRANGEBYLEX', shortest, ARGV[1], ARGV[2], 'LIMIT', 0, ARGV[3])
""")

TOTALS: Final = Script(
    WHOLE
    + """
-- KEYS: totals, created.
-- Returns 1, or 0 if the totals are damaged, then captures, size, stored and metadata, then the oldest
-- position or nothing.
local is_whole = pcall(require_whole, KEYS[1])
local totals = redis.call('HMGET', KEYS[1], 'captures', 'size', 'stored', 'metadata')
local oldest = redis.call('ZRANGE', KEYS[2], 0, 0)
return {is_whole and 1 or 0, totals[1] or 0, totals[2] or 0, totals[3] or 0, totals[4] or 0, oldest[1]}
"""
)

RECOUNT: Final = Script(
    WHOLE
    + """
-- KEYS: totals. ARGV: captures, size, stored, metadata: the sums over all entries.
-- Damaged totals have kept all entries as they were counted. Those that are whole may have changed meanwhile.
if pcall(require_whole, KEYS[1]) then return 1 end
redis.call('HSET', KEYS[1], 'captures', ARGV[1], 'size', ARGV[2], 'stored', ARGV[3], 'metadata', ARGV[4])
return 1
"""
)
