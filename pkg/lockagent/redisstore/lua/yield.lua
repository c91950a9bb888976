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

-- Tells whether one of the workload is newer than another of it. Those of one
-- ReplicaSet are equals, though one may have read a new revision before the other.
local function newer(who, than)
  local set = word(who, 'replicaset')
  return revision_of(who) > revision_of(than) and not (set and set == word(than, 'replicaset'))
end

local function hears(owner)
  return call('PUBSUB', 'NUMSUB', lock .. ':wake:' .. owner)[2] > 0
end

-- What the waiter claims that may have the hold of who that is; nothing if it is
-- not newer, is not there any more, or does not hear.
local function heir(owner, who)
  local claim = not holds(owner) and claim_of(call('HGET', waiters, owner))
  if claim and not claim.offered and newer(claim.who, who) and hears(owner) then
    return claim
  end
end

-- Who asks for the caller's hold, which is who that is: the owner, its claim, and
-- when it was asked. One who is not there any more has asked in vain.
local function asker(who)
  local of, owner, at = unpack(call('HMGET', asking, 'holder', 'heir', 'at'))
  if of ~= me then
    return
  end
  if holds(owner) then -- by another way
    call('DEL', asking)
    return
  end
  local claim = heir(owner, who)
  if not claim then
    in_vain()
    return
  end
  return owner, claim, at
end
