-- instance, epoch, entry, then nodes whose lease has ended if they have not renewed it: instance, beat
local now = epoch()
if now and now ~= ARGV[2] then
    return {2}
end
-- Of an engine that lost everything, no node is a member.
if not now or not member(ARGV[1]) then
    return {1}
end
local entry = tonumber(ARGV[3])
for at = 4, #ARGV, 2 do
    local beat, position = member(ARGV[at])
    if beat and position < entry and beat == tonumber(ARGV[at + 1]) then
        redis.call('HDEL', KEYS[1], 'node:' .. ARGV[at])
    end
end
local missing = {0}
local fields = redis.call('HGETALL', KEYS[1])
for at = 1, #fields, 2 do
    local instance = string.match(fields[at], '^node:(%d+)$')
    if instance then
        local beat, position = string.match(fields[at + 1], '^(%d+):(%d+)')
        if tonumber(position) < entry then
            missing[1] = 3
            missing[#missing + 1] = instance
            missing[#missing + 1] = beat
            missing[#missing + 1] = position
        end
    end
end
return missing
