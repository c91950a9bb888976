-- queue.lua follows hold.lua in every script: the waiters and their order.

local WAITER = {'expiry', 'ttl', 'permits', 'offered', unpack(DETAILS)}
local FEW, MANY = 4, 64 -- waiters read at once: at first, and at most
local VISITS = 100 -- waiters looked at closely in one call
local PENDING = 1000 -- waiters with an unanswered offer passed over in one call

local function forget(owner)
  redis.call('ZREM', heartbeats, owner)
  redis.call('HDEL', waiters, fields(owner, WAITER))
end

local function drop_waiter(owner)
  redis.call('ZREM', queue, owner)
  forget(owner)
end

-- Takes the owner out of the queue, if it is there. Always writes, and a write
-- that is allowed when memory is full.
local function leave(owner)
  if redis.call('ZREM', queue, owner) == 1 then
    forget(owner)
  end
end

-- Gives the caller's hold a full ttl, which also answers an offer. False if the
-- hold ended while the script ran.
local function prolong(ttl)
  if mutex then
    if redis.call('PEXPIRE', lock, ttl) == 0 then
      holder = false
      return false
    end
    leave(me)
  else
    leave(me)
    redis.call('ZADD', lock, 'XX', int(now + ttl), me)
  end
  return true
end

-- Tells whether a waiter has called within its ttl.
local function alive(owner)
  return tonumber(redis.call('HGET', waiters, owner .. ':expiry') or 0) > now
end

-- What a waiter asked for, or nil if it has not called within its ttl.
local function waiter(owner)
  local claim = {}
  for i, value in ipairs(redis.call('HMGET', waiters, fields(owner, WAITER))) do
    claim[WAITER[i]] = value
  end
  if tonumber(claim.expiry or 0) <= now then
    return nil
  end
  claim.ttl, claim.permits = tonumber(claim.ttl), tonumber(claim.permits)
  return claim
end

-- Calls visit(owner, read(owner)) for the live waiters in order until it returns
-- true, leaving out those that have an offer already. read is alive or waiter.
-- Drops the dead ones on its way.
local function walk(read, visit)
  local rank, visits, pending, size = 0, 0, 0, FEW
  while visits < VISITS and pending < PENDING do
    local chunk = redis.call('ZRANGE', queue, rank, rank + size - 1)
    size = math.min(2 * size, MANY)
    if #chunk == 0 then
      return
    end
    local expiries = mutex and {} or redis.call('ZMSCORE', lock, unpack(chunk))
    for i, owner in ipairs(chunk) do
      if owner == holder or tonumber(expiries[i] or 0) > now then
        pending, rank = pending + 1, rank + 1
      else
        local seen = read(owner)
        visits = visits + 1
        if not seen then
          drop_waiter(owner)
        elseif visit(owner, seen) then
          return
        else
          rank = rank + 1
        end
      end
    end
  end
end

-- Sends to an owner's own channel. False if nobody listens there.
local function publish(owner, message)
  return redis.call('PUBLISH', lock .. ':wake:' .. owner, message) > 0
end

-- Tells a waiter that it is the next one, and when to look by itself.
local function tell_next(owner)
  return publish(owner, 'next ' .. int(until_free()))
end
