"""The Lua scripts of live captures. What `script` says holds for them too.

The keys of a live capture are those of `key_names.of_live`: live, buffer, marks, buffered.

What leads to accepted bytes being stored frees memory in the end, so it works if Redis is out of memory too:
Redis refuses no write of a script that has deleted something before, even if nothing was there.
"""

from __future__ import annotations

from typing import Final

from overspill_service.catalog.live import MARK_MILLISECONDS, MARKS_BY_AGE, NEWS_BYTES, UNKNOWN
from overspill_service.catalog.redis.script import WHOLE, Script

OPEN: Final = Script("""
-- KEYS: of_live, and perhaps the index of live captures
-- ARGV: producer, offset, now in ms, `reached`, and the position in that index
-- Returns 1, or 0 if there is a buffer, or the capture is not in the index.
if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
if KEYS[5] and not redis.call('ZSCORE', KEYS[5], ARGV[5]) then return 0 end
redis.call('HSET', KEYS[1], 'producer', ARGV[1], 'accepted', ARGV[2], 'durable', ARGV[2],
           'active', ARGV[3], 'began', ARGV[3], 'opened', ARGV[2], 'reached', ARGV[4])
return 1
""")

DOUBT: Final = Script(f"""
if redis.call('EXISTS', KEYS[1]) == 1 and tonumber(redis.call('HGET', KEYS[1], 'reached') or 0) == 0 then
    redis.call('HSET', KEYS[1], 'reached', {UNKNOWN})
end
return 1
""")

APPEND: Final = Script(f"""
-- ARGV: producer, offset, data, now in ms, the most of a buffer, the most of a tenant, channel
-- Returns a status, the accepted and the durable offset. An attempt whose answer was lost finds another
-- offset when it is repeated: that is what its sender needs to know too.
local held = redis.call('HMGET', KEYS[1], 'producer', 'accepted', 'durable', 'ending', 'marked', 'began',
                        'reached', 'active')
if not held[2] then return {{-1, 0, 0}} end
if held[1] ~= ARGV[1] then return {{-2, 0, 0}} end
local accepted, durable, size = tonumber(held[2]), tonumber(held[3]), #ARGV[3]
local reached, offset = tonumber(held[7] or 0), tonumber(ARGV[2])
local function answer(status) return {{status, accepted, durable}} end
if held[4] then return answer(-3) end
if offset ~= accepted then
    if reached ~= 0 and offset > math.max(accepted, reached) then
        redis.call('HSET', KEYS[1], 'reached', ARGV[2])
    end
    return answer(-4)
end
local now = tonumber(ARGV[4])
local active = now > tonumber(held[8]) and ARGV[4] or held[8]
local function hear()
    redis.call('HDEL', KEYS[1], 'active')
    redis.call('HSET', KEYS[1], 'active', active)
end
-- A producer that is refused because there is no room is there all the same.
local function refuse(status)
    hear()
    return answer(status)
end
if size > 0 then
    if accepted + size - durable > tonumber(ARGV[5]) then return refuse(-5) end
    local buffered = tonumber(redis.call('GET', KEYS[4]) or 0)
    if buffered + size > tonumber(ARGV[6]) then return refuse(-6) end
    local added = redis.pcall('APPEND', KEYS[2], ARGV[3])
    if type(added) == 'table' then  -- out of memory
        hear()
        return added
    end
    redis.call('INCRBY', KEYS[4], size)
    local marked, gap = tonumber(held[5] or 0), (now - tonumber(held[6])) / {MARKS_BY_AGE}
    if now - marked >= math.max({MARK_MILLISECONDS}, gap) then
        redis.call('APPEND', KEYS[3], struct.pack('>I8I8', now, accepted))
        redis.call('HSET', KEYS[1], 'marked', ARGV[4])
    end
    local shown = size <= {NEWS_BYTES} and ARGV[3] or ''
    redis.call('PUBLISH', ARGV[7], 'a' .. struct.pack('>I8', accepted) .. shown)
    accepted = accepted + size
end
if reached ~= 0 and accepted >= reached then redis.call('HDEL', KEYS[1], 'reached') end
if size == 0 then hear() else
    redis.call('HSET', KEYS[1], 'accepted', string.format('%.0f', accepted), 'active', active)
end
return answer(1)
""")

READ: Final = Script("""
-- ARGV: offset, most bytes. Returns the fields, in the order below, then the marks, then the bytes from the
-- offset, none if they are more.
local held = redis.call('HMGET', KEYS[1],
                        'producer', 'accepted', 'durable', 'active', 'cut', 'ending', 'opened', 'reached')
if not held[2] then return nil end
local skipped = math.max(0, tonumber(ARGV[1]) - tonumber(held[3]))
held[9] = redis.call('GET', KEYS[3]) or ''
held[10] = ''
if tonumber(held[2]) - tonumber(held[3]) - skipped <= tonumber(ARGV[2]) then
  held[10] = redis.call('GETRANGE', KEYS[2], skipped, -1)
end
return held
""")

TOTALS: Final = Script("""
-- KEYS: the index of live captures, buffered. Returns how many there are, and the bytes in their buffers.
return {redis.call('ZCARD', KEYS[1]), redis.call('GET', KEYS[2]) or 0}
""")

CUT: Final = Script("""
-- ARGV: end. Returns where the next segment ends, nothing if there is no buffer.
if redis.call('EXISTS', KEYS[1]) == 0 then return nil end
local cut = redis.call('HGET', KEYS[1], 'cut')
if cut then return cut end
redis.call('HDEL', KEYS[1], 'cut')
redis.call('HSET', KEYS[1], 'cut', ARGV[1])
return ARGV[1]
""")

END: Final = Script("""
-- ARGV: offset, ending. Returns 1 if the capture ends there.
local held = redis.call('HMGET', KEYS[1], 'accepted', 'ending')
if not held[1] or tonumber(held[1]) ~= tonumber(ARGV[1]) then return 0 end
if held[2] then return 1 end
redis.call('HDEL', KEYS[1], 'ending')
redis.call('HSET', KEYS[1], 'ending', ARGV[2])
return 1
""")

_FORGET: Final = """
local function forget(live, buffer, marks, buffered)
    local size = redis.call('STRLEN', buffer)
    redis.call('DEL', live, buffer, marks)
    if size > 0 and redis.call('DECRBY', buffered, size) <= 0 then redis.call('DEL', buffered) end
end
"""

REPLACE: Final = Script(
    WHOLE
    + _FORGET
    + """
-- KEYS: capture, expiry, totals, index of the old state, of_live, sizes, reserved, and the index of the new
--       state, if any
-- ARGV: value, new value, id, expires, size, then what the totals grow by: size, stored size, metadata, then
--       position, what is new (grown: it is still live; ended: it is in another state; moved: in the same),
--       channel, the old upload
-- Returns 1, or what is stored instead of the value.
local stored = redis.call('GET', KEYS[1])
if stored ~= ARGV[1] and stored ~= ARGV[2] then return stored end
if stored ~= ARGV[2] then
    if ARGV[10] == 'grown' then
        local told = redis.call('HMGET', KEYS[5], 'ending', 'accepted')
        if told[1] and tonumber(told[2]) < tonumber(ARGV[5]) then return stored end
    end
    require_whole(KEYS[3])
    redis.call('ZREM', KEYS[2], ARGV[3])
    redis.call('SET', KEYS[1], ARGV[2])
    redis.call('ZADD', KEYS[2], ARGV[4], ARGV[3])
    redis.call('ZADD', KEYS[9], ARGV[5], ARGV[3])
    redis.call('HINCRBY', KEYS[3], 'size', ARGV[6])
    redis.call('HINCRBY', KEYS[3], 'stored', ARGV[7])
    redis.call('HINCRBY', KEYS[3], 'metadata', ARGV[8])
end
if ARGV[10] == 'grown' then
    local held = redis.call('HMGET', KEYS[5], 'durable', 'accepted')
    if held[1] and tonumber(held[1]) <= tonumber(ARGV[5]) then
        local trimmed = math.max(0, tonumber(ARGV[5]) - tonumber(held[1]))
        local before = redis.call('STRLEN', KEYS[6])
        local rest = redis.call('GETRANGE', KEYS[6], trimmed, -1)
        redis.call('DEL', KEYS[6])
        if rest ~= '' then redis.call('SET', KEYS[6], rest) end
        if before > #rest then redis.call('DECRBY', KEYS[8], before - #rest) end
        if tonumber(held[2]) < tonumber(ARGV[5]) then redis.call('HSET', KEYS[5], 'accepted', ARGV[5]) end
        redis.call('HSET', KEYS[5], 'durable', ARGV[5])
        redis.call('HDEL', KEYS[5], 'cut')
    end
elseif ARGV[10] == 'ended' then
    redis.call('ZREM', KEYS[4], ARGV[9])
    if KEYS[11] then redis.call('ZADD', KEYS[11], 0, ARGV[9]) end
    redis.call('HDEL', KEYS[10], ARGV[12])
    forget(KEYS[5], KEYS[6], KEYS[7], KEYS[8])
end
redis.call('PUBLISH', ARGV[11], 's')
return 1
"""
)

FORGET_LIVE: Final = Script(
    _FORGET
    + """
forget(KEYS[1], KEYS[2], KEYS[3], KEYS[4])
redis.call('PUBLISH', ARGV[1], 's')
return 1
"""
)

SCHEDULE: Final = Script("""
-- ARGV: member, when (empty: never)
redis.call('ZREM', KEYS[1], ARGV[1])
if ARGV[2] ~= '' then redis.call('ZADD', KEYS[1], ARGV[2], ARGV[1]) end
return 1
""")
