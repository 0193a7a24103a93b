-- epoch, position, how many
if epoch() ~= ARGV[1] then
    return {-1}
end
local answer = {tonumber(redis.call('HGET', KEYS[1], 'tip'))}
local from = string.format('%.0f-0', tonumber(ARGV[2]) + 1)
for _, entry in ipairs(redis.call('XRANGE', KEYS[2], from, '+', 'COUNT', ARGV[3])) do
    answer[#answer + 1] = {tonumber(string.match(entry[1], '^%d+')), entry[2][2] or '', entry[2][4] or ''}
end
return answer
