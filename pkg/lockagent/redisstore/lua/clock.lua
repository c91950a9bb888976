-- clock.lua reads the only clock there is. It moves while a script runs (before
-- 7.2), so it is read once.

local clock = call('TIME')
local micros = clock[1] * 1000000 + clock[2]
local now = math.floor(micros / 1000)
