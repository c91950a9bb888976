-- workload.lua starts the scripts of an owner that belongs to a workload. They
-- have one more key, the last: what is asked between the workload's revisions.
--
--   holder, heir, at  the holder is asked, since then, to yield to the heir
--   answered          there has been an answer: holds from that token on are left
--                     alone for now; 0: all of them
--   revision          but not by a revision above this one, which is another rollout
--                     or an undo

local asking = table.remove(KEYS)
