-- triggers.lua: triggers of pipelines, for wrk, over and over the same few. $BENCH_PIPELINES is how many there are, named p0, p1, …. The key is in $BENCH_KEY.
local headers = { ["Content-Type"] = "application/json", ["X-API-Key"] = os.getenv("BENCH_KEY") }
local n_pipelines = tonumber(os.getenv("BENCH_PIPELINES"))
local n = 0

function request()
    n = n + 1
    return wrk.format("POST", "/pipelines/run/p" .. n % n_pipelines, headers, '{"trigger_by":"bench","date":"2026-11-15"}')
end

function response(status, _, body)
    if status ~= 200 then
        error("answered " .. status .. ": " .. body)
    end
end
