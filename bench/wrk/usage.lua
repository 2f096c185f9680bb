-- usage.lua: one stored day of usage, again and again, for wrk.
local headers = { ["X-API-Key"] = os.getenv("BENCH_KEY") }

function request()
    return wrk.format("GET", "/api/v1/admin/usage/days/2025-01-15", headers)
end

function response(status, _, body)
    if status ~= 200 then
        error("answered " .. status .. ": " .. body)
    end
end
