-- queue_sweep.lua: what happens to jobs without an op: dead claims are recovered, and jobs past
-- their retention are deleted. Everything is found through sorted sets and is bounded. Schedules
-- are in cron.lua.
do

-- again: only the pending work of parents on their children; the reply asks for it
-- (src/store/remote).
V.x_sweep_jobs = function(c, o)
  local left = Q.kin_step(c)
  if o.again then
    return { status = @STATUS_OK@, flags = left and @OUT_MORE@ or nil, again = left and 1 or nil }
  end
  local dead = Q.dead_claims(c, o.limit + 1)
  local n = 0
  for i = 1, math.min(#dead, o.limit) do
    if Q.recover_due(c, dead[i]) then
      n = n + 1
    end
  end
  local more = #dead > o.limit or dead.more or left
  return { status = @STATUS_OK@, flags = more and @OUT_MORE@ or nil, again = left and 1 or nil,
    sweep = { n_jobs = n } }
end

-- Workers whose last claim is over.
local function forget_workers(c, n)
  local key = K(c, 'j.worker')
  for _, worker in ipairs(redis.call('ZRANGEBYSCORE', key, '-inf', N(c.now - @WORKER_SEEN_MS@),
    'LIMIT', 0, n)) do
    local tenant, queue, name = string.match(worker, '^([^%z]*)%z([^%z]*)%z(.*)$')
    redis.call('DEL', K(c, 'q.worker', worker))
    redis.call('ZREM', K(c, 'q.seen', tenant, queue), name)
    redis.call('ZREM', key, worker)
  end
end

V.x_sweep_done = function(c, o)
  local old = Q.old_jobs(c, o.limit + 1)
  local n = 0
  for i = 1, math.min(#old, o.limit) do
    local j = Q.job(c, old[i].tenant, old[i].id)
    Q.delete(c, Q.of(c, j), j)
    Q.due_done(c, old[i])
    n = n + 1
  end
  forget_workers(c, o.limit)
  return { status = @STATUS_OK@, flags = (#old > o.limit or old.more) and @OUT_MORE@ or nil,
    sweep = { n_purged = n } }
end

local function is_due(key, at)
  local first = redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')[2]
  return first and tonumber(first) <= at
end

-- Would a sweep find something?
function Q.overdue(c)
  return Q.is_due(c) or Q.has_kin_left(c) or is_due(K(c, 'cron.next'), c.wall)
    or is_due(K(c, 'j.worker'), c.now - @WORKER_SEEN_MS@)
end

end
