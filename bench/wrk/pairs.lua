-- pairs.lua: acquires and releases, for wrk. A lease acquired over any connection is released over
-- the next free one, so about half of the requests are releases. The API key is in $BENCH_KEY, not
-- on the command line. Leases that a round leaves held do not disturb the next one: $BENCH_ROUND
-- differs each time.
local headers = { ["Content-Type"] = "application/json", ["X-API-Key"] = os.getenv("BENCH_KEY") }
local round = os.getenv("BENCH_ROUND")
local leases, n_leases = {}, 0
local n = 0
local n_threads = 0

function setup(thread)
    thread:set("id", n_threads)
    n_threads = n_threads + 1
end

function request()
    if n_leases > 0 then
        local body = leases[n_leases]
        n_leases = n_leases - 1
        return wrk.format("POST", "/api/v1/locks/release", headers, body)
    end
    n = n + 1
    return wrk.format("POST", "/api/v1/locks/acquire", headers,
        string.format('{"key":"bench:%s:%d:%04d","holder":"%s-%d-%d","ttl_ms":30000}', round, id,
          n % 1024, round, id, n))
end

function response(status, _, body)
    if status ~= 200 then
        error("answered " .. status .. ": " .. body)
    end
    local key, holder, fence = body:match('"key":"([^"]+)","holder":"([^"]+)","fence":(%d+)')
    if key then
        n_leases = n_leases + 1
        leases[n_leases] = string.format('{"key":"%s","holder":"%s","fence":%s}', key, holder,
          fence)
    end
end
