-- queue.lua follows hold.lua: the waiters and their order.

local SHARE = 10 ^ 13 -- of the scores, for each priority; more than ms since 1970
local FEW, MANY = 4, 64 -- waiters read at once: at first, and at most
local VISITS = 100 -- waiters looked at closely in one call
local PENDING = 1000 -- waiters with an unanswered offer passed over in one call

local function forget(owner)
  call('ZREM', heartbeats, owner)
  call('HDEL', waiters, owner)
end

local function drop_waiter(owner)
  call('ZREM', queue, owner)
  forget(owner)
end

-- Takes the owner out of the queue, if it is there. Always writes, and a write
-- that is allowed when memory is full.
local function leave(owner)
  if call('ZREM', queue, owner) == 1 then
    forget(owner)
  end
end

-- Gives the caller's hold a full ttl, which also answers an offer. False if the
-- hold ended while the script ran.
local function prolong(ttl)
  if mutex then
    if call('PEXPIRE', lock, ttl) == 0 then
      holder = false
      return false
    end
    leave(me)
  else
    leave(me)
    call('ZADD', lock, 'XX', int(now + ttl), me)
  end
  return true
end

-- What a waiter asked for, or nil if it has not called within its ttl.
local function claim_of(text)
  local expiry, ttl, permits, offered, who = match(text or '', CLAIM)
  if expiry and tonumber(expiry) > now then
    return {
      expiry = expiry, ttl = tonumber(ttl), permits = tonumber(permits), offered = offered == '1', who = who,
    }
  end
end

-- Calls visit(owner, claim) for the live waiters in order until it returns true,
-- leaving out those that have an offer already. Drops the dead ones on its way.
local function walk(visit)
  local rank, visits, pending, size = 0, 0, 0, FEW
  while visits < VISITS and pending < PENDING do
    local chunk = call('ZRANGE', queue, rank, rank + size - 1)
    size = math.min(2 * size, MANY)
    if #chunk == 0 then
      return
    end
    local claims, expiries = call('HMGET', waiters, unpack(chunk)), mutex and {}
    for i, owner in ipairs(chunk) do
      local claim = claim_of(claims[i])
      if claim and claim.offered then -- no other waiter can have an answer to give
        expiries = expiries or call('ZMSCORE', lock, unpack(chunk))
      end
      if owner == holder or expiries and tonumber(expiries[i] or 0) > now then
        pending, rank = pending + 1, rank + 1
      else
        visits = visits + 1
        if not claim then
          drop_waiter(owner)
        elseif visit(owner, claim) then
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
  return call('PUBLISH', lock .. ':wake:' .. owner, message) > 0
end

-- Tells a waiter that it is the next one, and when to look by itself.
local function tell_next(owner)
  return publish(owner, 'next ' .. int(until_free()))
end
