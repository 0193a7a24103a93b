-- instance, beat, epoch, position, name for people
if epoch() ~= ARGV[3] then
    return {0, 0, 0}
end
local beat = member(ARGV[1])
if not beat or beat >= tonumber(ARGV[2]) or is_expelled(ARGV[1]) then
    return {0, 0, 0}
end
redis.call('HSET', KEYS[1], 'node:' .. ARGV[1], ARGV[2] .. ':' .. ARGV[4] .. ':' .. ARGV[5])
-- All fields but the log's identifier, the tip and the list of the expelled are nodes.
local others = redis.call('HGET', KEYS[1], 'expelled') and 3 or 2
return {1, tonumber(redis.call('HGET', KEYS[1], 'tip')), redis.call('HLEN', KEYS[1]) - others}
