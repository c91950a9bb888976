-- ask.lua follows offer.lua and yield.lua in acquire: a waiter asks a holder.

-- The holders to look at, and their grants: a mutex' one; of very many permits a
-- part, from another place each time. Limits that were lost are not written anew, so
-- they do not tell who holds.
local function candidates()
  if mutex then
    return {holder or nil}, {latest}
  end
  local all = call('ZCARD', lock)
  local from = all > PENDING and now % all or 0
  local owners = call('ZRANGE', lock, from, from + PENDING - 1)
  return owners, owners[1] and call('HMGET', holders, unpack(owners)) or {}
end

-- The revision in a grant of the workload. Most of many holders are none to be
-- asked, so they are told from the others before anything is taken apart.
local function revision_within(grant, workload)
  if grant and string.find(grant, workload, 1, true) then
    return tonumber(match(grant, ' revision=(%d+)') or 0)
  end
end

-- The holder of the claim's workload that has the lowest revision below it, and of
-- these the first token: its owner, and who that is. Also tells whether there is
-- one that is left alone for now, from a token on.
local function oldest(claim, spared_from)
  local workload, mine = word(claim.who, 'workload'), revision_of(claim.who)
  local least, first, owner, who, spared = mine, math.huge, nil, nil, nil
  local owners, grants = candidates()
  for i, one in ipairs(owners) do
    local revision, token, is = revision_within(grants[i], ' workload=' .. workload), nil, nil
    if revision and revision < mine and holds(one) then
      token, is = grant_of(one)
    end
    if token and word(is, 'workload') == workload and newer(claim.who, is) then
      if token >= spared_from then
        spared = true
      elseif revision < least or revision == least and token < first then
        owner, who, least, first = one, is, revision, token
      end
    end
  end
  return owner, who, spared
end

local function tell(owner, who)
  publish(owner, 'yield')
  return word(who, 'pod')
end

-- Puts the caller in the place of an heir that is not there any more. Returns the
-- pod that is asked, or ms until it looks again.
local function inherit(of, owner, claim)
  local _, who = grant_of(of)
  if not who or not holds(of) then
    in_vain()
  elseif owner ~= me and newer(claim.who, who) then
    if heir(owner, who) or not hears(me) then
      return nil, PATIENCE
    end
    call('HSET', asking, 'heir', me)
    return tell(of, who)
  end
end

-- Asks a holder to yield to the caller, if one is to be asked. Returns its pod, or
-- ms until the caller has to look again to ask; nothing: at its next heartbeat.
local function question(claim)
  local of, owner, answered, by = unpack(call('HMGET', asking, 'holder', 'heir', 'answered', 'revision'))
  if of then
    return inherit(of, owner, claim)
  end
  local who, spared
  local again = answered and revision_of(claim.who) <= tonumber(by)
  of, who, spared = oldest(claim, again and tonumber(answered) or math.huge)
  if not of then
    return nil, spared and math.max(call('PTTL', asking), 0) + 1
  end
  local queued = now - call('ZSCORE', queue, me) % SHARE
  if queued < PATIENCE then
    return nil, PATIENCE - queued
  end
  if not hears(me) then -- it would ask in vain
    return
  end
  call('DEL', asking)
  call('HSET', asking, 'holder', of, 'heir', me, 'at', int(micros))
  call('PEXPIRE', asking, ANSWER)
  return tell(of, who)
end

-- Returns ms until the caller has to look, which were wait without this, and the
-- pod that was asked.
local function ask(wait, claim)
  local pod, again = question(claim)
  if again and (wait == 0 or again < wait) then
    wait = again
  end
  return wait, pod
end
