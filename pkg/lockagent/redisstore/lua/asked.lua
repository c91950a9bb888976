-- asked.lua is renew.lua for an owner that belongs to a workload: it also tells who
-- asks for the hold, and takes a revision that has risen.
--
-- ARGV     2 ttl in ms   3 the hold's token, 0 if the caller does not know it   4 who
-- Answers  {"held", token}: nobody asks
--          {"held", token, owner, question, pod, revision}
--          {"gone"}: the hold has ended   {"taken"}: another holds the mutex

if not holds(me) then
  return {holder and 'taken' or 'gone'}
end
if not prolong(ttl) then
  return {'gone'}
end
local token = token_of_mine(tonumber(ARGV[3]), ARGV[4])
keep()
local _, who = grant_of(me)
if revision_of(ARGV[4]) > revision_of(who) then
  who = ARGV[4]
  record(me, token, who)
end
local owner, claim, at = asker(who)
if owner then
  return {'held', int(token), owner, at, word(claim.who, 'pod') or '', revision_of(claim.who)}
end
return {'held', int(token)}
