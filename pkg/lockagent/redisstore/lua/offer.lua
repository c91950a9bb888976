-- offer.lua follows queue.lua in the scripts that grant, and only in those.

-- Live holds, offers included.
local function count()
  if mutex then
    return holder and 1 or 0
  end
  return call('ZCOUNT', lock, '(' .. int(now), '+inf')
end

-- The smallest permits among the live holders. Entries without a hold, which a
-- program that shares the set leaves behind, are dropped while looking.
local function smallest()
  if mutex then
    return 1
  end
  local permits = math.huge
  for _ = 1, VISITS do
    local first = call('ZRANGE', limits, 0, 0, 'WITHSCORES')
    if not first[1] then
      return math.huge
    end
    permits = tonumber(first[2])
    if holds(first[1]) then
      return permits
    end
    drop_hold(first[1])
  end
  return permits
end

-- Tells whether the name is held as the other kind of lock.
local function other_held()
  if call('EXISTS', other) == 0 then
    return false
  end
  if mutex then
    return call('ZCOUNT', other, '(' .. int(now), '+inf') > 0
  end
  return call('GET', other) ~= false
end

-- Makes the owner a holder for ttl ms and returns its token. taken is the number
-- of live holds: where there is none, what is left in holders is of dead ones.
-- limit is what smallest() has said.
local function grant(owner, ttl, claim, taken, limit)
  local token = next_token()
  if mutex then
    call('SET', lock, owner, 'PX', ttl)
    holder = owner
    record(owner, token, claim.who)
    return token
  end
  if taken == 0 and call('HLEN', holders) > 0 then
    call('DEL', holders, limits)
  end
  call('ZADD', lock, int(now + ttl), owner)
  call('ZADD', limits, claim.permits, owner)
  record(owner, token, claim.who)
  if limit == math.huge or stale() then -- the keys may be new
    keep_holders()
  end
  return token
end

-- Makes a waiter a holder for the time that it has to answer. False, and nothing
-- changed, if it does not listen, or has not called since an offer that it did
-- not answer: its connection may be dead, and offering again would keep everyone
-- behind it waiting for as long as its place is kept.
local function offer(owner, claim, taken, limit)
  if claim.offered or not publish(owner, 'offer') then
    return false
  end
  grant(owner, math.min(OFFER, claim.ttl), claim, taken, limit)
  call('HSET', waiters, owner, claim.expiry .. ' ' .. claim.ttl .. ' ' .. claim.permits .. ' 1 ' .. claim.who)
  return true
end

-- Gives what is free to the waiters in their order: the caller, if it is one of
-- them, gets a full hold, which is returned as its token; the others an offer. Who
-- gets none keeps its place, and its turn to ask. Nobody passes a waiter that is
-- kept out by its own permits, or a lower limit would wait for ever. With tell, or
-- when something was given, the next one in line is told so.
local function serve(caller, tell)
  local taken, limit = count(), smallest()
  local full, token = taken >= limit, nil
  walk(function(owner, claim)
    full = full or taken >= math.min(claim.permits, limit)
    if full then
      return not tell or owner == caller or tell_next(owner)
    end
    if owner == caller then
      token = grant(owner, claim.ttl, claim, taken, limit)
    elseif not offer(owner, claim, taken, limit) then
      return false
    end
    tell, taken, limit = true, taken + 1, math.min(limit, claim.permits)
  end)
  if token then
    leave(caller)
  end
  return token
end
