"""The Lua scripts: each changes several keys in one atomic step. For Redis 6.2 and later, and Valkey.

The keys are those of `key_names.of_entry`: capture, expiry, totals, then the indexes of positions. Every
script may be repeated after a lost answer: it finds its own work and gives the same answer.
"""

from __future__ import annotations

import hashlib
from typing import Final


class Script:
    """A script, and the SHA-1 by which a server knows it (EVALSHA)."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.sha = hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()


UNREGISTERED: Final = 0
"""The totals do not exist, or are of another complete state than the caller's."""
DONE: Final = 1
TOO_MANY: Final = -1
TOO_LARGE: Final = -2

COMMIT: Final = Script("""
-- ARGV: value, position, id, expires, size, stored size, most stored, most captures (0: no limit), upload,
--       complete state that the totals must be of ('': any)
-- Returns the stored entry, or the stored tombstone of this upload, or a number.
-- If an earlier attempt has stored this very entry and its answer was lost, the entry is returned: right too.
local stored = redis.call('GET', KEYS[1])
if stored and string.sub(stored, 1, 1) ~= 'T' then return stored end
-- A tombstone lists the keys of its objects, and each key contains /UPLOAD-: so this one is of this upload.
-- The last argument turns patterns off, because '-' is one.
if stored and string.find(stored, '/' .. ARGV[9] .. '-', 1, true) then return stored end
local totals = redis.call('HMGET', KEYS[3], 'captures', 'stored', 'complete')
if not totals[1] or (ARGV[10] ~= '' and totals[3] ~= ARGV[10]) then return 0 end
local most_stored, most_captures = tonumber(ARGV[7]), tonumber(ARGV[8])
if most_captures > 0 and tonumber(totals[1]) + 1 > most_captures then return -1 end
if most_stored > 0 and tonumber(totals[2] or 0) + tonumber(ARGV[6]) > most_stored then return -2 end
-- SET also removes the lifetime of a tombstone that it replaces.
redis.call('SET', KEYS[1], ARGV[1])
redis.call('ZADD', KEYS[2], ARGV[4], ARGV[3])
redis.call('HINCRBY', KEYS[3], 'captures', 1)
redis.call('HINCRBY', KEYS[3], 'size', ARGV[5])
redis.call('HINCRBY', KEYS[3], 'stored', ARGV[6])
for i = 4, #KEYS do redis.call('ZADD', KEYS[i], 0, ARGV[2]) end
return 1
""")

RESTORE: Final = Script("""
-- ARGV: the damaged value, value, position, id, expires. Returns 1, or 0 if another value is stored.
-- The totals stay: the damaged entry was counted when it was committed.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2])
redis.call('ZADD', KEYS[2], ARGV[5], ARGV[4])
for i = 4, #KEYS do redis.call('ZADD', KEYS[i], 0, ARGV[3]) end
return 1
""")

REMOVE: Final = Script("""
-- ARGV: value, position, id, tombstone, its lifetime in ms (0: none is kept), -size, -stored size
-- Returns 1, or what is stored instead of the value. The tombstone has a nonce, so an equal one is an earlier
-- attempt of this call, and the totals were changed by it.
local stored = redis.call('GET', KEYS[1])
if stored == ARGV[4] then return 1 end
if stored ~= ARGV[1] then return stored end
-- What frees memory comes first: then Redis lets the rest of the script write even if it is out of memory.
redis.call('ZREM', KEYS[2], ARGV[3])
if ARGV[5] == '0' then redis.call('DEL', KEYS[1])
else redis.call('SET', KEYS[1], ARGV[4], 'PX', ARGV[5]) end
redis.call('HINCRBY', KEYS[3], 'captures', -1)
redis.call('HINCRBY', KEYS[3], 'size', ARGV[6])
redis.call('HINCRBY', KEYS[3], 'stored', ARGV[7])
for i = 4, #KEYS do redis.call('ZREM', KEYS[i], ARGV[2]) end
return 1
""")

AMEND: Final = Script("""
-- KEYS: capture, expiry. ARGV: value, new value, id, expires
-- Compare and set. Returns 1, or what is stored instead of the value.
local stored = redis.call('GET', KEYS[1])
if stored == ARGV[2] then return 1 end
if stored ~= ARGV[1] then return stored end
redis.call('SET', KEYS[1], ARGV[2])
redis.call('ZADD', KEYS[2], ARGV[4], ARGV[3])
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

TOTALS: Final = Script("""
-- KEYS: totals, created. Returns captures, size, stored, and the oldest position or nothing.
local totals = redis.call('HMGET', KEYS[1], 'captures', 'size', 'stored')
local oldest = redis.call('ZRANGE', KEYS[2], 0, 0)
return {totals[1] or 0, totals[2] or 0, totals[3] or 0, oldest[1]}
""")

ADD_SUMS: Final = Script("""
-- KEYS: batch, then a bucket of each length. ARGV: nonce, memory in ms, most cells, the highest sum, then the
-- lifetime in seconds for each bucket, then for each sum: field, the same of other tools, amount.
-- Returns 1, or 0 if another caller has added the batch. Its nonce tells an earlier attempt of this call.
local stored = redis.call('GET', KEYS[1])
if stored then
    if stored == ARGV[1] then return 1 end
    return 0
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
for bucket = 2, #KEYS do
    local key, room = KEYS[bucket], tonumber(ARGV[3]) - redis.call('HLEN', KEYS[bucket])
    for i = #KEYS + 4, #ARGV, 3 do
        local field = ARGV[i]
        if room <= 0 and redis.call('HEXISTS', key, field) == 0 then field = ARGV[i + 1] end
        local sum = redis.pcall('HINCRBY', key, field, ARGV[i + 2])
        if type(sum) == 'table' then
            if not string.find(sum.err, 'overflow', 1, true) then return sum end
            redis.call('HSET', key, field, ARGV[4])
        elseif sum == tonumber(ARGV[i + 2]) then
            room = room - 1
        end
    end
    redis.call('EXPIRE', key, ARGV[bucket + 3])
end
return 1
""")

LEASE: Final = Script("""
-- ARGV: holder, lifetime in ms. Returns 1 if the holder has the lease now, else 0.
local stored = redis.call('GET', KEYS[1])
if stored and stored ~= ARGV[1] then return 0 end
redis.call('DEL', KEYS[1])  -- it frees memory, so SET may follow even if Redis is out of memory
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
""")

RELEASE: Final = Script("""
-- ARGV: holder
if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end
return 1
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


def milliseconds(seconds: float) -> int:
    """Return seconds as Redis takes lifetimes: whole milliseconds, at least one."""
    return max(1, round(seconds * 1000))
