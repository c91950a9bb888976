-- yield.lua follows queue.lua: what one revision of a workload asks of another.

local ANSWER = 90 * 1000 -- ms for an answer: the longest TTL, and a pause if none came
local QUIET = 30 * 1000 -- ms after an answer, for those who would be asked again
local PATIENCE = 2000 -- ms in the queue before a waiter asks

-- A word of who an owner is.
local function word(who, name)
  return match(' ' .. who, ' ' .. name .. '=(%S+)')
end

local function revision_of(who)
  return tonumber(word(who, 'revision') or 0)
end

-- Ends a question. For a while no revision up to the one that asked asks for a
-- hold from that token on.
local function settle(token, revision)
  call('DEL', asking)
  call('HSET', asking, 'answered', int(token), 'revision', int(revision))
  call('PEXPIRE', asking, QUIET)
end

-- Ends a question that has come to nothing: for a while nobody asks.
local function in_vain()
  settle(0, 2 ^ 53)
end

local function hears(owner)
  return call('PUBSUB', 'NUMSUB', lock .. ':wake:' .. owner)[2] > 0
end

-- What the waiter claims that may have a hold of the revision; nothing if it is
-- older, is not there any more, or does not hear.
local function heir(owner, revision)
  local claim = not holds(owner) and claim_of(call('HGET', waiters, owner))
  if claim and not claim.offered and revision_of(claim.who) > revision and hears(owner) then
    return claim
  end
end

-- Who asks for the caller's hold: the owner, its claim, and when it was asked. One
-- who is not there any more has asked in vain.
local function asker(revision)
  local of, owner, at = unpack(call('HMGET', asking, 'holder', 'heir', 'at'))
  if of ~= me then
    return
  end
  if holds(owner) then -- by another way
    call('DEL', asking)
    return
  end
  local claim = heir(owner, revision)
  if not claim then
    in_vain()
    return
  end
  return owner, claim, at
end
