-- renew.lua gives the caller's hold a full ttl, and answers an offer. It never
-- makes a hold of nothing.
--
-- ARGV     2 ttl in ms   3 the hold's token, 0 if the caller does not know it
-- Answers  {"held", token}
--          {"gone"}: the hold has ended   {"taken"}: another holds the mutex

if not holds(me) or not prolong(ttl) then
  return {'gone'}
end
local token = token_of_mine(tonumber(ARGV[3]), '')
keep()
return {'held', int(token)}
