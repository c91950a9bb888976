-- pass.lua is the short way of a hand-off: the caller holds a mutex, and the
-- first in line is alive and listens. Whom to tell then if the second one does
-- not listen, release.lua finds out.
--
-- Redis sends what it has to say in the reverse of this order: so the offer, which
-- is waited for, is published last.

local passed = false
if line and line[2] ~= me then
  local first, second = line[1], line[2]
  local channel = lock .. ':wake:' .. first
  local claims = call('HMGET', waiters, first, second or first)
  local expiry, lives, permits, offered, who = match(claims[1] or '', CLAIM)
  if offered == '0' and tonumber(expiry) > now and call('PUBSUB', 'NUMSUB', channel)[2] > 0 then
    if call('ZREM', queue, me) == 1 then
      call('ZREM', heartbeats, me)
      call('HDEL', waiters, me)
    end
    local short = math.min(OFFER, tonumber(lives))
    latest = string.format('%.0f', math.max(last + 1, micros)) .. ' ' .. first .. ' ' .. who
    call('SET', lock, first, 'PX', short)
    call('SET', fence, latest, 'PX', MONTH)
    call('HSET', waiters, first, expiry .. ' ' .. lives .. ' ' .. permits .. ' 1 ' .. who)
    expiry = second and match(claims[2] or '', CLAIM)
    local told = not second or expiry and tonumber(expiry) > now
      and call('PUBLISH', lock .. ':wake:' .. second, 'next ' .. short + 1) > 0
    call('PUBLISH', channel, 'offer')
    if told then
      return {'released'}
    end
    holder, passed = first, true
  end
end
