-- lock.lua starts every script: the keys, who calls.
--
-- KEYS  1 the lock   2 fence   3 queue   4 waiters   5 heartbeats
--       6 the lock of the other kind of the same name
--       7 holders    8 limits: a semaphore's; a mutex has none of the two
-- ARGV  1 the caller's owner id
--
-- A script reads a key before it changes anything, so that a key of a wrong
-- type ends it with everything as it was; only a renewal may then have prolonged
-- its own hold. And its first write is one that Redis allows when it is out of
-- memory (DEL, PEXPIRE, ZREM) wherever a hold is to be kept or given up: after
-- that one, the others are allowed too.
--
-- After milliseconds of rest Redis runs a script cold, and then what a script
-- defines costs more than what it does. So what happens most comes first, in
-- parts that define nothing: free, unwanted, pass, kept and permit.lua.

local call, match = redis.call, string.match
local lock, fence, queue, waiters, heartbeats, other, holders, limits = unpack(KEYS)
local mutex, me = not holders, ARGV[1]

local MINUTE = 60 * 1000
local HOUR = 60 * MINUTE -- expiry of all but lock and fence; no TTL is near it
local MONTH = '2592000000' -- 30 days, expiry of the fence; text, since it is only passed on most often
local OFFER = 3000 -- ms to answer an offer

-- What keys.go calls a grant and a claim, taken apart.
local GRANT = '^(%d+) (%S+) ?(.*)$' -- token, owner, who
local PERMIT = '^(%d+) ?(.*)$' -- token, who
local CLAIM = '^(%d+) (%d+) (%d+) (%d) ?(.*)$' -- expiry, ttl, permits, offered, who
