-- hold.lua follows clock.lua in every script: what is to know and to do about holds.

local HOLDER = {'token', 'since', 'asked', 'permits', unpack(DETAILS)}

-- The names of an owner's fields in holders or waiters.
local function fields(owner, names)
  local out = {}
  for i, name in ipairs(names) do
    out[i] = owner .. ':' .. name
  end
  return unpack(out)
end

local function holds(owner)
  if mutex then
    return holder == owner
  end
  local expiry = redis.call('ZSCORE', lock, owner)
  return expiry and tonumber(expiry) > now
end

-- Milliseconds until a permit can become free without a release; 0: never. Not
-- all that another program has written there is a number that can be passed on.
local function until_free()
  local left
  if mutex then
    left = redis.call('PTTL', lock) -- -2: it has ended while the script ran
  else
    local first = redis.call('ZRANGEBYSCORE', lock, '(' .. int(now), '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
    left = first[2] and tonumber(first[2]) - now or -1
  end
  return left == -1 and 0 or math.min(math.max(left, 0) + 1, HOUR)
end

local cleared = false -- there is nothing in holders

-- Ends a hold, or what is left of one. All that is in a mutex' holders is of one
-- that holds, or of dead ones.
local function drop_hold(owner)
  if mutex then
    redis.call('HLEN', holders) -- one of a wrong type ends it here, with the hold as it was
    redis.call('DEL', lock, holders)
    holder, cleared = false, true
  else
    redis.call('HDEL', holders, fields(owner, HOLDER))
    redis.call('ZREM', lock, owner)
    redis.call('ZREM', limits, owner)
  end
end

-- A semaphore's set outlives its members by an hour, and those that another
-- program has put there without an expiry, though not by more than a month. Its
-- expiry is never brought forward.
local function keep_lock()
  local left = redis.call('PTTL', lock)
  if left >= HOUR then
    return
  end
  local wanted = HOUR
  if left == -1 then
    local highest = redis.call('ZRANGE', lock, -1, -1, 'WITHSCORES')
    wanted = math.min(math.max(HOUR, tonumber(highest[2] or 0) - now), MONTH)
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
