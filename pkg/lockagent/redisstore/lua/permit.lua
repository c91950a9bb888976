-- permit.lua is to a semaphore what kept.lua is to a mutex.

if not mutex then
  local expiry = call('ZSCORE', lock, me)
  if not expiry or tonumber(expiry) <= now then
    return {'gone'}
  end
  local token = match(call('HGET', holders, me) or '', PERMIT)
  if token then
    local offered = call('ZREM', queue, me) == 1
    if offered then
      call('ZREM', heartbeats, me)
      call('HDEL', waiters, me)
    end
    call('ZADD', lock, 'XX', string.format('%.0f', now + ttl), me)
    if offered or tonumber(match(call('GET', fence) or '', '^%d+') or 0) >= tonumber(token)
      and call('PTTL', holders) > HOUR - MINUTE then
      return {'held', token}
    end
  end
end
