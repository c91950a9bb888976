-- free.lua is the shortest way through acquire, before all that it can do without
-- is even defined: a mutex that nobody holds, waits for, or has left anything of.
-- Arguments and answer are those of acquire.lua.

local claim = {ttl = millis(ARGV[3]), permits = tonumber(ARGV[4])}
for i, name in ipairs(DETAILS) do
  claim[name] = ARGV[5 + i]
end

if mutex and not holder and redis.call('EXISTS', queue, holders, other) == 0 then
  redis.call('SET', lock, me, 'PX', claim.ttl)
  local token = record(me, claim)
  redis.call('PEXPIRE', holders, HOUR)
  return {'granted', int(token)}
end
