-- The epoch: one life of one log. A server that restarts has another run_id, and one that takes over
-- another master_replid, also where the log's identifier came along.
local function epoch()
    local log = redis.call('HGET', KEYS[1], 'log')
    if not log then
        return false
    end
    -- Redis 7 gives both sections at once.
    local facts = redis.pcall('INFO', 'server', 'replication')
    if type(facts) ~= 'string' then
        facts = redis.call('INFO', 'server') .. redis.call('INFO', 'replication')
    end
    local run = string.match(facts, 'run_id:(%w+)')
    local history = string.match(facts, 'master_replid:(%w+)')
    return run .. ':' .. history .. ':' .. log
end

local function member(instance)
    local noted = redis.call('HGET', KEYS[1], 'node:' .. instance)
    if not noted then
        return nil
    end
    local beat, position = string.match(noted, '^(%d+):(%d+)')
    return tonumber(beat), tonumber(position)
end

-- An administrator has expelled it. To the node it is as if its calls were lost.
local function is_expelled(instance)
    local expelled = redis.call('HGET', KEYS[1], 'expelled')
    return expelled and string.find(expelled, ' ' .. instance .. ' ', 1, true)
end
