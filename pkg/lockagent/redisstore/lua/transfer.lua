-- transfer.lua passes the caller's hold on to the waiter that asks for it, as an
-- offer. If that has fewer permits than there are holders, the hold just ends.
--
-- ARGV     2 the heir   3 the question that this answers
-- Answers  {"passed"}, also if the heir has it already
--          {"held"}: nobody asks that any more, and the hold is as it was
--          {"gone"}: the hold has ended   {"taken"}: another holds the mutex

if not holds(me) then
  return {holds(ARGV[2]) and 'passed' or holder and 'taken' or 'gone'}
end
local token, who = grant_of(me)
local owner, claim, at = asker(who or '')
if not owner or at ~= ARGV[3] then
  return {'held'}
end
token = last + 1
leave(me)
drop_hold(me)
local taken, limit = count(), smallest()
if taken < math.min(claim.permits, limit) and offer(owner, claim, taken, limit) then
  walk(tell_next)
else
  serve(nil, true)
end
settle(token, revision_of(claim.who))
return {'passed'}
