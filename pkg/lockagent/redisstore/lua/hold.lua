-- hold.lua follows record.lua: what is to know and to do about holds.

local function holds(owner)
  if mutex then
    return holder == owner
  end
  local expiry = call('ZSCORE', lock, owner)
  return expiry and tonumber(expiry) > now
end

-- Milliseconds until a permit can become free without a release; 0: never. Not
-- all that another program has written there is a number that can be passed on.
local function until_free()
  local left
  if mutex then
    left = call('PTTL', lock) -- -2: it has ended while the script ran
  else
    local first = call('ZRANGEBYSCORE', lock, '(' .. int(now), '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
    left = first[2] and tonumber(first[2]) - now or -1
  end
  return left == -1 and 0 or math.min(math.max(left, 0) + 1, HOUR)
end

-- Ends a hold, or what is left of one.
local function drop_hold(owner)
  if mutex then
    call('DEL', lock)
    holder = false
  else
    call('HDEL', holders, owner)
    call('ZREM', lock, owner)
    call('ZREM', limits, owner)
  end
end

-- A semaphore's set outlives its members by an hour, and those that another
-- program has put there without an expiry, though not by more than a month. Its
-- expiry is never brought forward.
local function keep_lock()
  local left = call('PTTL', lock)
  if left >= HOUR then
    return
  end
  local wanted = HOUR
  if left == -1 then
    local highest = call('ZRANGE', lock, -1, -1, 'WITHSCORES')
    wanted = math.min(math.max(HOUR, tonumber(highest[2] or 0) - now), MONTH)
  end
  call('PEXPIRE', lock, int(wanted))
end

-- Tells whether it is a minute since the keys of holders were extended. All keys
-- of a lock but the lock itself and the fence expire an hour after that, whoever
-- calls, so that nobody's short TTL shortens another's keys.
local function stale()
  if mutex then
    return call('PTTL', fence) <= MONTH - MINUTE
  end
  return call('PTTL', holders) <= HOUR - MINUTE
end

-- Extends what belongs to a semaphore's holders.
local function keep_holders()
  call('PEXPIRE', holders, HOUR)
  call('PEXPIRE', limits, HOUR)
  keep_lock()
end

-- Extends all that belongs to the lock.
local function keep()
  if not stale() then
    return
  end
  if not mutex then
    keep_holders()
  end
  for _, key in ipairs({queue, waiters, heartbeats}) do
    call('PEXPIRE', key, HOUR)
  end
  call('PEXPIRE', fence, MONTH)
end

-- The token of a hold, and who has it; nothing where another program holds.
local function grant_of(owner)
  local token, of, who
  if mutex then
    token, of, who = match(latest, GRANT)
    token = of == owner and token
  else
    token, who = match(call('HGET', holders, owner) or '', PERMIT)
  end
  if token then
    return tonumber(token), who
  end
end

-- The token of the caller's hold. Writes down anew what is missing: with the token
-- that the caller knows, 0 for none, if that can be its own, and with who that is.
-- Raises a fence that has fallen behind.
local function token_of_mine(known, who)
  local token = grant_of(me)
  if token then
    if last < token then
      raise(token)
    end
    return token
  end
  if known < 1 or known >= 2 ^ 53 - 1 or mutex and known < last then
    known = next_token()
  end
  record(me, known, who)
  return known
end
