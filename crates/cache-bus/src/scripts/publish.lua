-- epoch, entries that are kept, instance, mark of the epoch, purges
if epoch() ~= ARGV[1] then
    return 0
end
local number = 0
for at = 5, #ARGV do
    number = redis.call('HINCRBY', KEYS[1], 'tip', 1)
    redis.call('XADD', KEYS[2], 'MAXLEN', '~', ARGV[2], number .. '-0', 'node', ARGV[3], 'purge', ARGV[at],
        'epoch', ARGV[4])
end
return number
