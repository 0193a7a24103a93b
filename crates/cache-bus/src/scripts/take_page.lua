-- KEYS: page, fetch. Token, how long the fetch is locked (0: not at all), how long an ask is remembered, both in
-- milliseconds; the beginning of a page that is of no use
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local page = redis.call('GET', KEYS[1])
if page and ARGV[4] ~= '' and string.sub(page, 1, #ARGV[4]) == ARGV[4] then
    redis.call('DEL', KEYS[1])
    page = false
end
if page then
    return {1, now, page}
end
local fetch = redis.call('GET', KEYS[2])
if fetch and fetch ~= 'asked' then
    return {2, redis.call('PTTL', KEYS[2]), ''}
end
if ARGV[2] ~= '0' then
    redis.call('SET', KEYS[2], ARGV[1], 'PX', ARGV[2])
elseif not fetch then
    redis.call('SET', KEYS[2], 'asked', 'PX', ARGV[3])
end
return {fetch and 4 or 3, now, ''}
