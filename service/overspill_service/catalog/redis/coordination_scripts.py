"""The Lua scripts by which replicas agree: leases, figures, epochs, and the server's clock."""

from __future__ import annotations

from typing import Final

from overspill_service.catalog.redis.script import Script

LEASE: Final = Script("""
-- ARGV: holder, lifetime in ms. Returns 1 if the holder has the lease now, else 0.
-- Redis keeps the instant at which a key ends. A lease that ends more than ten minutes later than this one
-- would was taken by a clock that was ahead, and is free. Holders may ask for lifetimes that differ: for one
-- live capture, by five minutes.
local stored = redis.call('GET', KEYS[1])
local is_timely = redis.call('PTTL', KEYS[1]) <= ARGV[2] + 600000
if stored and stored ~= ARGV[1] and is_timely then return 0 end
redis.call('DEL', KEYS[1])  -- it frees memory, so SET may follow even if Redis is out of memory
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
""")

RELEASE: Final = Script("""
-- ARGV: holder
if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end
return 1
""")

TELL: Final = Script("""
-- ARGV: holder, figure, lifetime in ms. Returns the sum of the others' figures as text, with its fraction.
local time = redis.call('TIME')
local now, sum = time[1] * 1000 + math.floor(time[2] / 1000), 0
redis.call('HDEL', KEYS[1], ARGV[1])  -- as in LEASE: limits hold even if Redis is out of memory
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2] .. ' ' .. string.format('%.0f', now + ARGV[3]))
local entries = redis.call('HGETALL', KEYS[1])
for i = 1, #entries, 2 do
    local figure, ends = string.match(entries[i + 1], '(%S+) (%d+)')
    local left = tonumber(ends) - now
    -- One with more time left than all others have was told by a clock that was ahead.
    if left <= 0 or left > ARGV[3] + 60000 then redis.call('HDEL', KEYS[1], entries[i])
    elseif entries[i] ~= ARGV[1] then sum = sum + tonumber(figure) end
end
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return tostring(sum)
""")

NEW_EPOCH: Final = Script("""
-- ARGV: word, the prefix of an epoch of eviction, the prefix of the new epoch.
-- An epoch of eviction is followed by another one, because single keys are missing until the next rebuild.
-- If there is no epoch it may have been evicted, so only an epoch of eviction may replace it.
local stored = redis.call('GET', KEYS[1])
local beginning = ARGV[3]
if not stored and beginning ~= ARGV[2] then return 1 end
if stored and string.sub(stored, 1, #ARGV[2]) == ARGV[2] then beginning = ARGV[2] end
redis.call('SET', KEYS[1], beginning .. ARGV[1])
return 1
""")

NOW: Final = Script("""
-- KEYS: any; it chooses the server of a cluster. Returns the server's clock: seconds and microseconds.
return redis.call('TIME')
""")
