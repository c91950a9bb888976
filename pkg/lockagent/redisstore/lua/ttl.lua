-- ttl.lua reads the time to live of a claim, in ms. PEXPIRE with zero or less
-- would delete the key.

local ttl = tonumber(ARGV[2]) or 0
assert(ttl >= 1 and ttl < HOUR / 2, 'a time to live must be from 1 ms to 30 min')
