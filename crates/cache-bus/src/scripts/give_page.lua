-- KEYS: page, fetch. Token, page (empty: there is none), its lifetime, how long an ask is remembered; milliseconds
if ARGV[2] ~= '' then
    redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
end
if redis.call('GET', KEYS[2]) == ARGV[1] then
    if ARGV[2] ~= '' then
        redis.call('DEL', KEYS[2])
    else
        redis.call('SET', KEYS[2], 'asked', 'PX', ARGV[4])
    end
end
return 0
