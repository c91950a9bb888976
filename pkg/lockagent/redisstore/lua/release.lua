-- release.lua ends the caller's hold, takes it out of the queue, and offers what
-- is free.
--
-- Answers  {"released"} if there was a hold of the caller, else {"nothing"}

if passed then
  walk(tell_next)
  return {'released'}
end
local held = holds(me)
leave(me)
if held then
  drop_hold(me)
end
if held or not other_held() then
  serve(nil, true)
end
return {held and 'released' or 'nothing'}
