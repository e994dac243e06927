"""The Lua scripts of statistics: sums in buckets of time, and what was made of them."""

from __future__ import annotations

from typing import Final

from overspill_service.catalog.redis.script import Script

ADD_SUMS: Final = Script("""
-- KEYS: batches, then for each length a bucket and the sizes of all buckets. ARGV: batch, moment in µs,
-- memory in ms, most batches, most cells, the highest sum, bytes of a cell beside its name; then for each
-- length: the bucket's start, the first start that is kept, the lifetime in seconds, and the room of all and
-- of each; then for each sum: field, the same of other tools, amount.
-- Returns 1, or 0 if another caller has added the batch. Its moment tells an earlier attempt of this call.
local stored, oldest = redis.call('ZSCORE', KEYS[1], ARGV[1]), ARGV[2] - ARGV[3] * 1000
if stored and tonumber(stored) > oldest then
    if tonumber(stored) == tonumber(ARGV[2]) then return 1 end
    return 0
end
redis.call('ZADD', KEYS[1], ARGV[2], ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', oldest)
redis.call('ZREMRANGEBYRANK', KEYS[1], 0, -ARGV[4] - 1)
redis.call('PEXPIRE', KEYS[1], ARGV[3])
local function sizes_of(key, start, first)
    local size = redis.call('HGET', key, start)
    if size then return tonumber(size), tonumber(redis.call('HGET', key, 'all')) end
    local all, total = redis.call('HGETALL', key), 0  -- a new bucket: expired ones take nothing
    for i = 1, #all, 2 do
        local each = tonumber(all[i])
        if each and each < first then redis.call('HDEL', key, all[i])
        elseif each then total = total + all[i + 1] end
    end
    return 0, total
end
local lengths = (#KEYS - 1) / 2
for length = 1, lengths do
    local key, sizes, at = KEYS[2 * length], KEYS[2 * length + 1], 3 + 5 * length
    local start, together, each = ARGV[at], tonumber(ARGV[at + 3]), tonumber(ARGV[at + 4])
    local size, all = sizes_of(sizes, start, tonumber(ARGV[at + 1]))
    local cells = tonumber(ARGV[5]) - redis.call('HLEN', key)
    for i = 8 + 5 * lengths, #ARGV, 3 do
        local field = ARGV[i]
        local bytes = #field + ARGV[7]
        local fits = cells > 0 and (all + bytes <= together or size + bytes <= each)
        if not fits and redis.call('HEXISTS', key, field) == 0 then field = ARGV[i + 1] end
        local sum = redis.pcall('HINCRBY', key, field, ARGV[i + 2])
        if type(sum) == 'table' then
            if not string.find(sum.err, 'overflow', 1, true) then return sum end
            redis.call('HSET', key, field, ARGV[6])
        elseif sum == tonumber(ARGV[i + 2]) then
            bytes = #field + ARGV[7]
            cells, size, all = cells - 1, size + bytes, all + bytes
        end
    end
    redis.call('HSET', sizes, start, size, 'all', all)
    redis.call('EXPIRE', sizes, ARGV[at + 2])
    redis.call('EXPIRE', key, ARGV[at + 2])
end
return 1
""")

EXISTING: Final = Script("""
-- KEYS: buckets. Returns the places, from 1, of those that exist.
local found = {}
for place = 1, #KEYS do
    if redis.call('EXISTS', KEYS[place]) == 1 then found[#found + 1] = place end
end
return found
""")

BUCKET: Final = Script("""
-- KEYS: a bucket. ARGV: '', or a part of the fields that are wanted. Returns fields and sums in turn, packed:
-- a client takes long over thousands of answers.
local all = redis.call('HGETALL', KEYS[1])
if ARGV[1] == '' then return cmsgpack.pack(all) end
local found = {}
for i = 1, #all, 2 do
    if string.find(all[i], ARGV[1], 1, true) then
        found[#found + 1], found[#found + 2] = all[i], all[i + 1]
    end
end
return cmsgpack.pack(found)
""")

KEEP_ROLLUP: Final = Script("""
-- KEYS: a tenant's roll-ups. ARGV: name, value, lifetime of all in ms.
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1
""")
