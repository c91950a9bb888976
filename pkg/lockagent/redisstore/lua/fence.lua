-- fence.lua reads the latest grant and the last token.

local latest = call('GET', fence) or '0'
local last = tonumber(match(latest, '^(%d+) ') or match(latest, '^%d+$') or '')
assert(last and last < 2 ^ 53 - 1, 'WRONGTYPE the fence is not a counter of this lock')
