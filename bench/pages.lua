-- Asks for pages at random: the arguments of the script are how many there are, and the bytes of each.
dofile(debug.getinfo(1, "S").source:match("^@(.*)pages%.lua$") .. "report.lua")

local pages, bytes

local report_init = init
function init(arguments)
    if report_init then
        report_init(arguments)
    end
    pages, bytes = tonumber(arguments[1]), tonumber(arguments[2])
    math.randomseed(os.time())
end

function request()
    return wrk.format("GET", "/" .. math.random(0, pages - 1) .. "?bytes=" .. bytes)
end
