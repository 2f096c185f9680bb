-- triggers.lua: triggers the same few pipelines over and over, for wrk. $BENCH_PIPELINES is their
-- number; they are named p0, p1, …. The API key is in $BENCH_KEY.
local headers = { ["Content-Type"] = "application/json", ["X-API-Key"] = os.getenv("BENCH_KEY") }
local n_pipelines = tonumber(os.getenv("BENCH_PIPELINES"))
local n = 0

function request()
    n = n + 1
    return wrk.format("POST", "/pipelines/run/p" .. n % n_pipelines, headers,
      '{"trigger_by":"bench","date":"2026-11-15"}')
end

function response(status, _, body)
    if status ~= 200 then
        error("answered " .. status .. ": " .. body)
    end
end
