-- record.lua writes grants down.

-- Numbers go to Redis as text: ".." and tostring round what is above 10^14.
local function int(n)
  return string.format('%.0f', n)
end

-- The next fencing token. The time makes it greater than every earlier one even
-- if the counter is lost, or went back with a lossy fail-over.
local function next_token()
  return math.max(last + 1, micros)
end

-- Raises the fence to the token, but not of a mutex: there it is part of the grant.
local function raise(token)
  last = math.max(last, token)
  if not mutex then
    call('SET', fence, int(last), 'PX', MONTH)
  end
end

-- Notes that the owner has got the token, and who that is.
local function record(owner, token, who)
  raise(token)
  if mutex then
    latest = int(token) .. ' ' .. owner .. ' ' .. who
    call('SET', fence, latest, 'PX', MONTH)
  else
    call('HSET', holders, owner, int(token) .. ' ' .. who)
  end
end
