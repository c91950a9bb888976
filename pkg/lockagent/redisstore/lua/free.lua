-- free.lua is the short way through acquire: a mutex that nobody holds or waits
-- for. Arguments and answer are those of acquire.lua.

if mutex and call('EXISTS', lock, queue, other) == 0 then
  local token = string.format('%.0f', math.max(last + 1, micros))
  call('SET', lock, me, 'PX', ARGV[2])
  call('SET', fence, token .. ' ' .. me .. ' ' .. ARGV[3], 'PX', MONTH)
  return {'granted', token}
end
