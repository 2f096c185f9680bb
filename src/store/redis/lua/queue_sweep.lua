-- queue_sweep.lua: what happens without an op on a job: dead claims are recovered, what was kept long enough goes. All of it is
-- found through sorted sets, all of it is bounded. Schedules: cron.lua.
do

local OK = S.OK
local MORE = 4 -- of the head's flags
local SEEN_MS = 60000 -- IL__WORKER_SEEN_MS

V.x_sweep_jobs = function(c, o)
  local dead = Q.dead_claims(c, o.limit + 1)
  local n = 0
  for i = 1, math.min(#dead, o.limit) do
    if Q.recover_due(c, dead[i]) then
      n = n + 1
    end
  end
  return { status = OK, flags = (#dead > o.limit or dead.more) and MORE or nil, sweep = { n_jobs = n } }
end

-- Workers whose last claim is over.
local function forget_workers(c, n)
  local key = K(c, 'j.worker')
  for _, worker in ipairs(redis.call('ZRANGEBYSCORE', key, '-inf', N(c.now - SEEN_MS), 'LIMIT', 0, n)) do
    redis.call('DEL', K(c, 'q.worker', worker))
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
  return { status = OK, flags = (#old > o.limit or old.more) and MORE or nil, sweep = { n_purged = n } }
end

local function is_due(key, at)
  local first = redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')[2]
  return first and tonumber(first) <= at
end

-- Would a sweep find something?
function Q.overdue(c)
  return Q.is_due(c) or is_due(K(c, 'cron.next'), c.wall)
    or is_due(K(c, 'j.worker'), c.now - SEEN_MS)
end

end
