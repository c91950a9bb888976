-- acquire.lua takes a permit for the caller, or keeps its place in the queue, or
-- queues it.
--
-- ARGV     2 ttl in ms   3 who   4 permits   5 priority
-- Answers  {"granted", token}
--          {"busy", position, waiters, ms until the caller has to look, limit},
--          and last, if the caller has asked a holder to yield, that one's pod
--          {"other"}: held as the other kind; nothing was changed

local FOREIGN = 1000 -- ms between looks at a holder that will not call

local SOON = 1 -- ms until a caller helps on with more dead than one call drops

local mine = {ttl = ttl, who = ARGV[3], permits = tonumber(ARGV[4])}
local priority = tonumber(ARGV[5])

-- Drops waiters that are silent and permits that have expired, at most a hundred
-- of each. Tells whether there were any, and whether there may be more.
local function purge()
  local dead = call('ZRANGEBYSCORE', heartbeats, '-inf', int(now), 'LIMIT', 0, VISITS)
  for _, owner in ipairs(dead) do
    drop_waiter(owner)
  end
  if mutex then
    return #dead > 0, #dead == VISITS
  end
  local expired = call('ZRANGEBYSCORE', lock, '-inf', int(now), 'LIMIT', 0, VISITS)
  for _, owner in ipairs(expired) do
    drop_hold(owner)
  end
  return #dead + #expired > 0, #dead == VISITS or #expired == VISITS
end

-- A new waiter goes behind all of its priority, also if the clock went back.
local function new_place()
  local share = -priority * SHARE
  local behind = call('ZREVRANGEBYSCORE', queue, '(' .. int(share + SHARE), int(share), 'WITHSCORES', 'LIMIT', 0, 1)
  return math.max(share + now, behind[2] and tonumber(behind[2]) + 1 or share)
end

-- Queues the caller, or notes that it is still there.
local function heartbeat()
  local place = call('ZSCORE', queue, me)
  if place then
    call('PEXPIRE', queue, HOUR) -- first, so that a waiter keeps its place when memory is full
  end
  local expiry = int(now + ttl)
  call('HSET', waiters, me, expiry .. ' ' .. ttl .. ' ' .. mine.permits .. ' 0 ' .. mine.who)
  call('PEXPIRE', waiters, HOUR)
  call('ZADD', heartbeats, expiry, me)
  call('PEXPIRE', heartbeats, HOUR)
  if not place then
    call('ZADD', queue, int(new_place()), me)
    call('PEXPIRE', queue, HOUR)
  end
end

-- Tells whether a program that does not call its waiters holds a permit.
local function foreign()
  if mutex then
    return holder and select(2, match(latest, GRANT)) ~= holder
  end
  return count() > call('ZCARD', limits)
end

-- Tells whether all before the caller have a hold already, offers that they have
-- not answered. Then nobody but the caller looks when a permit can become free.
local function next_in_line(position)
  local first
  if position > 1 and position <= count() + 1 then
    walk(function(owner)
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
  local position = call('ZRANK', queue, me) + 1
  local wait, asked = ask(look(position, more), mine)
  return {'busy', position, call('ZCARD', queue), wait, math.min(mine.permits, smallest()), asked}
end

if holds(me) and prolong(ttl) then
  local token = token_of_mine(0, mine.who)
  keep()
  return {'granted', int(token)}
end
if other_held() then
  return {'other'}
end
local waiting = call('ZCARD', queue) > 0
local dropped, more = false, false
if waiting or not mutex then
  dropped, more = purge()
end
local taken, limit = count(), smallest()
local token
if not waiting and taken < math.min(mine.permits, limit) then
  token = grant(me, ttl, mine, taken, limit)
else
  heartbeat()
  if dropped or taken < limit then
    token = serve(me, dropped)
  end
end
return token and {'granted', int(token)} or busy(more)
