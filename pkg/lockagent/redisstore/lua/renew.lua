-- renew.lua gives the caller's hold a full ttl, and answers an offer. It never
-- makes a hold of nothing.
--
-- ARGV     3 ttl in ms
-- Answers  {"held", token, 1 if the caller is asked to yield}
--          {"gone"}: the hold has ended   {"taken"}: another holds the mutex

local ttl = millis(ARGV[3])
if not holds(me) then
  return {holder and 'taken' or 'gone'}
end
if not prolong(ttl) then
  return {'gone'}
end
local token, asked = token_of(me)
keep()
return {'held', int(token), asked}
