-- instance
if not member(ARGV[1]) then
    return 0
end
-- Its entry stays: purges wait until the lease that it may hold has ended, as for a node that was killed.
if not is_expelled(ARGV[1]) then
    local expelled = redis.call('HGET', KEYS[1], 'expelled') or ' '
    redis.call('HSET', KEYS[1], 'expelled', expelled .. ARGV[1] .. ' ')
end
return 1
