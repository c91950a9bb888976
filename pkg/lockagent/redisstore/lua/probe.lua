-- probe.lua tells which commands the caller's user may not give in a script. It
-- runs alone, and gives each of them on a key that nothing uses.
--
-- KEYS     1 that key
-- ARGV     the commands, each with its words; KEY stands for the key
-- Answers  the names of those that are refused

local refused = {}
for _, command in ipairs(ARGV) do
  local words = {}
  for word in string.gmatch(command, '%S+') do
    words[#words + 1] = word == 'KEY' and KEYS[1] or word
  end
  local reply = redis.pcall(unpack(words))
  local err = type(reply) == 'table' and reply.err or ''
  if string.find(err, 'NOPERM') or string.find(err, 'The user executing the script') or string.find(err, 'ACL failure') then
    refused[#refused + 1] = words[1]
  end
end
return refused
