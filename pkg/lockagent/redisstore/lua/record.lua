-- record.lua writes down who holds, in the scripts that grant.

-- Gives the owner the next token, and writes it down with what the claim says.
local function record(owner, claim)
  local token = next_token()
  local entry = {
    owner .. ':token', int(token), owner .. ':since', int(now), owner .. ':permits', int(claim.permits),
  }
  for _, name in ipairs(DETAILS) do
    if claim[name] and claim[name] ~= '' then
      entry[#entry + 1] = owner .. ':' .. name
      entry[#entry + 1] = claim[name]
    end
  end
  redis.call('HSET', holders, unpack(entry))
  return token
end
