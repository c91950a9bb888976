-- unwanted.lua is the shortest way through release, before all that it can do
-- without is even defined: the caller holds a mutex that nobody waits for.

if mutex and redis.call('EXISTS', queue) == 0
  and redis.call('GET', lock) == me and redis.call('HEXISTS', holders, me .. ':token') == 1 then
  redis.call('DEL', lock, holders)
  return {'released'}
end
