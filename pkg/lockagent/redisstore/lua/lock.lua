-- lock.lua starts every script: the keys, the time, who holds.
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
local HOLDER = {'token', 'since', 'asked', 'permits', unpack(DETAILS)}

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

-- The names of an owner's fields in holders or waiters.
local function fields(owner, names)
  local out = {}
  for i, name in ipairs(names) do
    out[i] = owner .. ':' .. name
  end
  return unpack(out)
end

-- The only clock there is. It moves while a script runs (before 7.2): read once.
local clock = redis.call('TIME')
local micros = tonumber(clock[1]) * 1000000 + tonumber(clock[2])
local now = math.floor(micros / 1000)

local last = tonumber(redis.call('GET', fence) or 0)
assert(last and last < 2 ^ 53 - 1, 'WRONGTYPE the fence is not a counter of this lock')

local holder = mutex and redis.call('GET', lock) -- false: nobody

local function holds(owner)
  if mutex then
    return holder == owner
  end
  local expiry = redis.call('ZSCORE', lock, owner)
  return expiry and tonumber(expiry) > now
end

-- Milliseconds until a permit can become free without a release; 0: never.
local function until_free()
  local left
  if mutex then
    left = redis.call('PTTL', lock)
  else
    local first = redis.call('ZRANGEBYSCORE', lock, '(' .. int(now), '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
    left = first[2] and tonumber(first[2]) - now or -1
  end
  return left < 0 and 0 or left + 1
end

-- Ends a hold, or what is left of one.
local function drop_hold(owner)
  redis.call('HDEL', holders, fields(owner, HOLDER))
  if mutex then
    redis.call('DEL', lock)
    holder = false
  else
    redis.call('ZREM', lock, owner)
    redis.call('ZREM', limits, owner)
  end
end

-- A semaphore's set outlives its members by an hour, and those that another
-- program has put there without an expiry. Its expiry is never brought forward.
local function keep_lock()
  local left = redis.call('PTTL', lock)
  if left >= HOUR then
    return
  end
  local wanted = HOUR
  if left == -1 then
    local highest = redis.call('ZRANGE', lock, -1, -1, 'WITHSCORES')
    wanted = math.max(HOUR, tonumber(highest[2] or 0) - now)
  end
  redis.call('PEXPIRE', lock, int(wanted))
end

-- Tells whether it is a minute since the holders' keys were extended. All keys of
-- a lock but the lock itself and the fence expire an hour after that, whoever
-- calls, so that nobody's short TTL shortens another's keys.
local function stale()
  return redis.call('PTTL', holders) <= HOUR - MINUTE
end

-- Extends what belongs to holders.
local function keep_holders()
  redis.call('PEXPIRE', holders, HOUR)
  if not mutex then
    redis.call('PEXPIRE', limits, HOUR)
    keep_lock()
  end
end

-- Extends all that belongs to the lock.
local function keep()
  if stale() then
    keep_holders()
    for _, key in ipairs({queue, waiters, heartbeats}) do
      redis.call('PEXPIRE', key, HOUR)
    end
    redis.call('PEXPIRE', fence, int(MONTH))
  end
end

-- The next fencing token. The time makes it greater than every earlier one even
-- if the counter is lost, or went back with a lossy fail-over.
local function next_token()
  last = math.max(last + 1, micros)
  redis.call('SET', fence, int(last), 'PX', int(MONTH))
  return last
end

-- The token of a hold, and 1 if its owner is asked to yield, else 0. Raises a
-- fence that has fallen behind.
local function token_of(owner)
  local entry = redis.call('HMGET', holders, owner .. ':token', owner .. ':asked')
  local token = tonumber(entry[1] or '')
  if not token then
    token = next_token()
    redis.call('HSET', holders, owner .. ':token', int(token))
  elseif last < token then
    last = token
    redis.call('SET', fence, int(token), 'PX', int(MONTH))
  end
  return token, entry[2] and 1 or 0
end
