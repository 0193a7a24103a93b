-- instance, beat, epoch that is known, position in it, identifier for a new log, name for people
if is_expelled(ARGV[1]) then
    return {'', 0, 0}
end
if not redis.call('HGET', KEYS[1], 'log') then
    redis.call('DEL', KEYS[1], KEYS[2])
    redis.call('HSET', KEYS[1], 'log', ARGV[5], 'tip', 0)
end
local now = epoch()
local position = 0
if ARGV[3] == now then
    position = ARGV[4]
end
redis.call('HSET', KEYS[1], 'node:' .. ARGV[1], ARGV[2] .. ':' .. position .. ':' .. ARGV[6])
local tip = tonumber(redis.call('HGET', KEYS[1], 'tip'))
local first = tip + 1
local oldest = redis.call('XRANGE', KEYS[2], '-', '+', 'COUNT', 1)[1]
if oldest then
    first = tonumber(string.match(oldest[1], '^%d+'))
end
return {now, first, tip}
