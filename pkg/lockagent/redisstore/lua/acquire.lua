-- acquire.lua takes a permit for the caller, or keeps its place in the queue, or
-- queues it.
--
-- ARGV     3 ttl in ms   4 permits   5 priority
--          6-11 pod, namespace, node, workload, replicaset, revision
-- Answers  {"granted", token}
--          {"busy", position, waiters, ms until the caller has to look, limit}
--          {"other"}: held as the other kind; nothing was changed

local SHARE = 10 ^ 13 -- of the scores, for each priority; more than ms since 1970
local FOREIGN = 1000 -- ms between looks at a holder that will not call

local priority = tonumber(ARGV[5])

local SOON = 1 -- ms until a caller helps on with more dead than one call drops

-- Drops waiters that are silent and permits that have expired, at most a hundred
-- of each. Tells whether there were any, and whether there may be more.
local function purge()
  local dead = redis.call('ZRANGEBYSCORE', heartbeats, '-inf', int(now), 'LIMIT', 0, VISITS)
  for _, owner in ipairs(dead) do
    drop_waiter(owner)
  end
  if mutex then
    return #dead > 0, #dead == VISITS
  end
  local expired = redis.call('ZRANGEBYSCORE', lock, '-inf', int(now), 'LIMIT', 0, VISITS)
  for _, owner in ipairs(expired) do
    drop_hold(owner)
  end
  return #dead + #expired > 0, #dead == VISITS or #expired == VISITS
end

-- A new waiter goes behind all of its priority, also if the clock went back.
local function new_place()
  local share = -priority * SHARE
  local behind = redis.call('ZREVRANGEBYSCORE', queue, '(' .. int(share + SHARE), int(share), 'WITHSCORES', 'LIMIT', 0, 1)
  return math.max(share + now, behind[2] and tonumber(behind[2]) + 1 or share)
end

-- Queues the caller, or notes that it is still there.
local function heartbeat()
  local place = redis.call('ZSCORE', queue, me)
  if place then
    redis.call('PEXPIRE', queue, HOUR) -- first, so that a waiter keeps its place when memory is full
  end
  local entry = {
    me .. ':expiry', int(now + claim.ttl), me .. ':ttl', int(claim.ttl), me .. ':permits', int(claim.permits),
  }
  for _, name in ipairs(DETAILS) do
    if claim[name] ~= '' then
      entry[#entry + 1] = me .. ':' .. name
      entry[#entry + 1] = claim[name]
    end
  end
  redis.call('HSET', waiters, unpack(entry))
  redis.call('HDEL', waiters, me .. ':offered')
  redis.call('PEXPIRE', waiters, HOUR)
  redis.call('ZADD', heartbeats, int(now + claim.ttl), me)
  redis.call('PEXPIRE', heartbeats, HOUR)
  if not place then
    redis.call('ZADD', queue, int(new_place()), me)
    redis.call('PEXPIRE', queue, HOUR)
  end
end

-- Tells whether a program that does not call its waiters holds a permit.
local function foreign()
  if mutex then
    return holder and redis.call('HEXISTS', holders, holder .. ':token') == 0
  end
  return count() > redis.call('ZCARD', limits)
end

-- Tells whether all before the caller have a hold already, offers that they have
-- not answered. Then nobody but the caller looks when a permit can become free.
local function next_in_line(position)
  local first
  if position > 1 and position <= count() + 1 then
    walk(alive, function(owner)
      first = owner
      return true
    end)
  end
  return position == 1 or first == me
end

-- Milliseconds until the caller has to look by itself; 0: at its next heartbeat.
local function look(position, more)
  if more then
    return SOON
  end
  local wait = next_in_line(position) and until_free() or 0
  if position == 1 and foreign() then
    wait = wait == 0 and FOREIGN or math.min(wait, FOREIGN)
  end
  return wait
end

local function busy(more)
  local position = redis.call('ZRANK', queue, me) + 1
  return {'busy', position, redis.call('ZCARD', queue), look(position, more), math.min(claim.permits, smallest())}
end

if holds(me) and prolong(claim.ttl) then
  local token = token_of(me)
  keep()
  return {'granted', int(token)}
end
if other_held() then
  return {'other'}
end
local waiting = redis.call('ZCARD', queue) > 0
local dropped, more = false, false
if waiting or not mutex then
  dropped, more = purge()
end
local taken, limit = count(), smallest()
local token
if not waiting and taken < math.min(claim.permits, limit) then
  token = grant(me, claim.ttl, claim, taken, limit)
else
  heartbeat()
  if dropped or taken < limit then
    token = serve(me, dropped)
  end
end
return token and {'granted', int(token)} or busy(more)
