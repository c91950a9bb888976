-- shorten.lua cuts what is left of the caller's hold to at most ttl, and tells the
-- next in line when to look. It never makes a hold of nothing.
--
-- ARGV     3 ttl in ms
-- Answers  as renew.lua

local ttl = millis(ARGV[3])
if not holds(me) then
  return {holder and 'taken' or 'gone'}
end
leave(me)
if not mutex then
  local expiry = math.min(tonumber(redis.call('ZSCORE', lock, me)), now + ttl)
  redis.call('ZADD', lock, 'XX', int(expiry), me)
else
  local left = redis.call('PTTL', lock)
  if left > ttl or left == -1 then
    redis.call('PEXPIRE', lock, ttl)
  end
end
local token, asked = token_of(me)
keep()
walk(alive, tell_next)
return {'held', int(token), asked}
