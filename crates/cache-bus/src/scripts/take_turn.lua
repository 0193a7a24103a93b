-- KEYS: turn. Token, how long it lasts in milliseconds
local of = redis.call('GET', KEYS[1])
if of and of ~= ARGV[1] then
    return 0
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
