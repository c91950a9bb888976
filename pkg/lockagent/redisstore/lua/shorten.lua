-- shorten.lua cuts what is left of the caller's hold to at most ttl, and tells the
-- next in line when to look. It never makes a hold of nothing.
--
-- ARGV     2 ttl in ms   3 the hold's token, 0 if the caller does not know it
-- Answers  as renew.lua

if not holds(me) then
  return {holder and 'taken' or 'gone'}
end
leave(me)
if not mutex then
  local expiry = math.min(tonumber(call('ZSCORE', lock, me)), now + ttl)
  call('ZADD', lock, 'XX', int(expiry), me)
else
  local left = call('PTTL', lock)
  if left > ttl or left == -1 then
    call('PEXPIRE', lock, ttl)
  end
end
local token = token_of_mine(tonumber(ARGV[3]), '')
keep()
walk(tell_next)
return {'held', int(token)}
