-- clock.lua follows lock.lua in every script: what is so now.

-- The only clock there is. It moves while a script runs (before 7.2): read once.
local clock = redis.call('TIME')
local micros = tonumber(clock[1]) * 1000000 + tonumber(clock[2])
local now = math.floor(micros / 1000)

local last = tonumber(redis.call('GET', fence) or 0)
assert(last and last < 2 ^ 53 - 1, 'WRONGTYPE the fence is not a counter of this lock')

local holder = mutex and redis.call('GET', lock) -- false: nobody

-- The next fencing token. The time makes it greater than every earlier one even
-- if the counter is lost, or went back with a lossy fail-over.
local function next_token()
  last = math.max(last + 1, micros)
  redis.call('SET', fence, int(last), 'PX', int(MONTH))
  return last
end
