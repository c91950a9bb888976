-- lock.lua starts every script: the keys, who calls.
--
-- KEYS  1 the lock   2 fence   3 queue   4 waiters   5 heartbeats   6 holders
--       7 limits     8 the lock of the other kind of the same name
-- ARGV  1 "mutex" or "semaphore"   2 the caller's owner id
--
-- A script reads a key before it changes anything, so that a key of a wrong
-- type ends it with everything as it was. And its first write is one that Redis
-- allows when it is out of memory (DEL, PEXPIRE, ZREM) wherever a hold is to be
-- kept or given up: after that one, the others are allowed too.

local lock, fence, queue, waiters = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local heartbeats, holders, limits, other = KEYS[5], KEYS[6], KEYS[7], KEYS[8]
local mutex, me = ARGV[1] == 'mutex', ARGV[2]

local MINUTE = 60 * 1000
local HOUR = 60 * MINUTE -- expiry of all but lock and fence; no TTL is near it
local MONTH = 30 * 24 * HOUR -- expiry of the fence

local DETAILS = {'pod', 'namespace', 'node', 'workload', 'replicaset', 'revision'}

-- Numbers go to Redis as text: ".." and tostring round what is above 10^14.
local function int(n)
  return string.format('%.0f', n)
end

-- PEXPIRE with zero or less would delete the key.
local function millis(text)
  local n = math.floor(tonumber(text) or 0)
  assert(n >= 1 and n < HOUR / 2, 'a time to live must be from 1 ms to 30 min')
  return n
end
