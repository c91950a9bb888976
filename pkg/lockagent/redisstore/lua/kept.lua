-- kept.lua is the short way through renew: a mutex whose latest grant is the
-- caller's. Arguments and answers are those of renew.lua.

if mutex then
  if holder ~= me then
    return {holder and 'taken' or 'gone'}
  end
  local token, owner = match(call('GET', fence) or '', GRANT)
  if owner == me then
    if call('PEXPIRE', lock, ARGV[2]) == 0 then
      return {'gone'}
    end
    local offered = call('ZREM', queue, me) == 1
    if offered then
      call('ZREM', heartbeats, me)
      call('HDEL', waiters, me)
    end
    if offered or call('PTTL', fence) > MONTH - MINUTE then
      return {'held', token}
    end
  end
end
