-- queue.lua: queues: settings, totals, pause, listing. The rules of the family are in
-- src/core/queue.md; these files implement them:
--
--   queue.lua        queues
--   queue_job.lua    rows of jobs, where they wait; unique keys, children
--   queue_due.lua    expiry of claims, and deletion of ended jobs
--   queue_group.lua  groups
--   queue_push.lua   push
--   queue_claim.lua  claim
--   queue_end.lua    heartbeat, finish, fail, snooze, cancel, retry, seal; parents
--   queue_finish.lua batches of finishes
--   queue_show.lua   get, list, purge
--   queue_sweep.lua  recovery, retention
--   cron.lua         schedules
--
-- Keys. T and Q are the names of tenant and queue. Sorted sets have equal scores, and so sort by
-- the bytes of their members, unless a score is named. A turn is a place in the claiming order
-- (queue_job.lua).
--
--   q:T,Q              hash: o settings and pause (packed), r the reason for the pause, and the
--                      totals by name
--   q.names:T          sorted: the tenant's queues
--   q.ready:T,Q        sorted: turns of READY jobs that a claim may take
--   q.full:T,Q         sorted: turns of READY jobs whose group is full
--   q.group:T,Q        sorted: READY and claimed jobs that have a group: group NUL lane place
--   q.later:T,Q        sorted by run_at: SCHEDULED jobs, seq id
--   q.jobs:T,Q         sorted by class and seq: ids of all jobs; the classes are their states
--                      (queue_job.lua)
--   q.seen:T,Q         sorted by time of the last claim: workers of the queue
--   q.start:T,Q        sorted by lease time: starts that count against the rate
--   q.unique:T,Q,KEY   seq id of the job that took the key last
--   q.worker:T,Q,NAME  a worker's last claim
--   j:T,ID             a job (packed); j.data:T,ID its payload and j.result:T,ID its result, if
--                      they are large
--   j.kin              hash: pending work on the children of a parent (queue_end.lua)
--   j.child:SEQ        sorted: children of the parent with this seq: class seq id
--   j.due, j.many      sorted by time: claimed jobs of all queues by expiry, and, far behind them,
--                      ended ones by purge time (queue_due.lua)
--   j.worker           sorted by time of the last claim: workers: T NUL Q NUL name
--
-- The numbers of jobs are the sizes of these sets, so no counter can drift. Only the totals are
-- counters; and those of pushed and completed jobs, which every job would change, count only
-- deleted jobs: the others are in q.jobs.
do

local NEVER = -1

local SETTINGS = {
  'strategy', 'max_attempts', 'lease_ms', 'backoff_ms', 'backoff_max_ms', 'group_limit', 'rate_n',
  'rate_ms', 'keep_ms',
  'keep_failed_ms', 'processing_timeout_ms', 'executing_timeout_ms',
}
local DEFAULTS = {
  paused = 0,
  strategy = @DEFAULT_STRATEGY@,
  max_attempts = @DEFAULT_MAX_ATTEMPTS@,
  lease_ms = @DEFAULT_LEASE_MS@,
  backoff_ms = @DEFAULT_BACKOFF_MS@,
  backoff_max_ms = @DEFAULT_BACKOFF_MAX_MS@,
  group_limit = @DEFAULT_GROUP_LIMIT@,
  rate_n = @DEFAULT_RATE_N@,
  rate_ms = @DEFAULT_RATE_MS@,
  keep_ms = @DEFAULT_KEEP_MS@,
  keep_failed_ms = @DEFAULT_KEEP_FAILED_MS@,
  processing_timeout_ms = @DEFAULT_PROCESSING_TIMEOUT_MS@,
  executing_timeout_ms = @DEFAULT_EXECUTING_TIMEOUT_MS@,
}
local FORMAT = '>I1i8i8i8i8i8i8i8i8i8i8i8i8' -- paused, settings
local TOTALS = {
  'pushed', 'claimed', 'completed', 'failed_attempts', 'failed', 'snoozed', 'cancelled',
  'recovered', 'duplicates', 'stale',
}

-- ---- rows of queues -----------------------------------------------------------------------------

local function pack_settings(opts)
  local v = {}
  for i, name in ipairs(SETTINGS) do
    v[i] = opts[name]
  end
  return struct.pack(FORMAT, opts.paused, unpack(v))
end

local function unpack_settings(packed)
  local v = { struct.unpack(FORMAT, packed) }
  local opts = { paused = v[1] }
  for i, name in ipairs(SETTINGS) do
    opts[name] = v[i + 1]
  end
  return opts
end

-- Cache of queues by name, kept between calls: unpacking is deterministic, so if the row is
-- unchanged, so is the unpacked queue. (Other stores may have queues of the same names: then the
-- rows differ, or it does not matter.)
local seen, n_seen = {}, 0

local function remember(tenant, name, names, packed)
  if n_seen == 1000 then
    seen, n_seen = {}, 0
  end
  local q = { tenant = tenant, name = name, names = names, packed = packed,
    opts = unpack_settings(packed) }
  seen[names], n_seen = q, n_seen + 1
  return q
end

-- A queue, or nil.
function Q.find(c, tenant, name)
  local names = tenant .. '\0' .. name
  local packed = redis.call('HGET', c.tag .. ':q:' .. names, 'o')
  if not packed then
    return nil
  end
  local q = seen[names]
  return q and q.packed == packed and q or remember(tenant, name, names, packed)
end

-- A queue, created with default settings if it is missing.
function Q.get(c, tenant, name)
  local q = Q.find(c, tenant, name)
  if q then
    return q
  end
  local packed = pack_settings(DEFAULTS)
  redis.call('HSET', K(c, 'q', tenant, name), 'o', packed)
  redis.call('ZADD', K(c, 'q.names', tenant), 0, name)
  return remember(tenant, name, tenant .. '\0' .. name, packed)
end

-- The name of a key of a queue.
function Q.key(c, q, kind)
  return c.tag .. ':q.' .. kind .. ':' .. q.names
end

function Q.count(c, q, total, n)
  redis.call('HINCRBY', c.tag .. ':q:' .. q.names, total, n)
end

-- Wake the workers that wait for a job of it, once per call.
function Q.wake(c, q)
  if c.woke_queue ~= q.names then
    c.woke_queue = q.names
    wake(c, q.tenant, q.name, '#queue')
  end
end

function Q.optimistic(q)
  return q.opts.strategy == @QUEUE_OPTIMISTIC@
end

-- ---- showing them -------------------------------------------------------------------------------

-- How many workers claimed less than a minute ago.
local function count_workers(c, q)
  return math.min(redis.call('ZCOUNT', Q.key(c, q, 'seen'), '(' .. N(c.now - @WORKER_SEEN_MS@),
    '+inf'), @COUNT_MAX@)
end

-- The smallest run_at among turns. They are ordered by priority first, of which there are at most
-- 2,001: the first turn of each is read.
local function oldest_turn(key)
  local oldest, from = math.huge, '-'
  while true do
    local turn = redis.call('ZRANGEBYLEX', key, from, '+', 'LIMIT', 0, 1)[1]
    if not turn then
      return oldest
    end
    local priority, run_at = struct.unpack('>I2I8', turn)
    oldest = math.min(oldest, run_at)
    from = '[' .. struct.pack('>I2', priority + 1)
  end
end

-- Jobs by state, from the sizes of their sets. A SCHEDULED one whose time has come is shown as
-- ready: as many as the next claim promotes.
local function show_depth(c, q, info)
  local ready, full, later = Q.key(c, q, 'ready'), Q.key(c, q, 'full'), Q.key(c, q, 'later')
  local n_later = redis.call('ZCARD', later)
  local n_due = math.min(redis.call('ZCOUNT', later, '-inf', N(c.wall)), @PROMOTE_MAX@)
  local oldest = math.min(oldest_turn(ready), oldest_turn(full))
  if n_due > 0 then
    oldest = math.min(oldest, tonumber(redis.call('ZRANGE', later, 0, 0, 'WITHSCORES')[2]))
  end
  -- mutant depth_not_lowered: info.n_scheduled = n_later
  info.n_scheduled = n_later - n_due
  info.n_ready = n_due + redis.call('ZCARD', ready) + redis.call('ZCARD', full)
  info.n_running = Q.n_of_class(c, q, Q.RUNNING_CLASS)
  info.n_failed = Q.n_of_class(c, q, Q.CLASS_OF[@JOB_FAILED@])
  info.oldest_ms = oldest < math.huge and math.max(c.wall - oldest, 0) or 0
end

local function show(c, q)
  local info = { name = q.name, paused = q.opts.paused, n_workers = count_workers(c, q) }
  local row = redis.call('HMGET', K(c, 'q', q.names), 'r', unpack(TOTALS))
  info.reason = row[1] or nil
  for i, total in ipairs(TOTALS) do
    info[total] = row[i + 1] or nil
  end
  for _, name in ipairs(SETTINGS) do
    info[name] = q.opts[name]
  end
  show_depth(c, q, info)
  info.pushed = tonumber(info.pushed or 0) + redis.call('ZCARD', Q.key(c, q, 'jobs'))
  info.completed = tonumber(info.completed or 0) + Q.n_of_class(c, q, Q.CLASS_OF[@JOB_COMPLETED@])
  return info
end

local function answer(c, q)
  return { status = @STATUS_OK@, now_ms = c.now, wall_ms = c.wall, queues = { show(c, q) } }
end

-- ---- ops ----------------------------------------------------------------------------------------

-- Write the changed settings; returns the current queue.
local function save(c, q, opts)
  local packed = pack_settings(opts)
  redis.call('HSET', K(c, 'q', q.names), 'o', packed)
  return remember(q.tenant, q.name, q.names, packed)
end

-- A queue's opts are cached between calls: to change them, change a copy.
local function copy(opts)
  local new = {}
  for name, value in pairs(opts) do
    new[name] = value
  end
  return new
end

V.queue_set = function(c, o)
  local q = Q.get(c, o.tenant, o.key)
  local was, opts = q.opts, copy(q.opts)
  for _, name in ipairs(SETTINGS) do
    if o[name] and o[name] ~= 0 then
      opts[name] = o[name]
    end
  end
  q = save(c, q, opts)
  if opts.group_limit ~= was.group_limit then
    Q.regroup(c, q)
  end
  if opts.rate_n == NEVER and was.rate_n ~= NEVER then
    redis.call('DEL', Q.key(c, q, 'start')) -- what the rate counted is forgotten
  end
  Q.wake(c, q)
  return answer(c, q)
end

V.queue_pause = function(c, o)
  local q = Q.find(c, o.tenant, o.key)
  if not q then
    return { status = @STATUS_NOT_FOUND@ }
  end
  local resume = bit.band(o.flags or 0, @FLAG_RESUME@) ~= 0
  local opts = copy(q.opts)
  opts.paused = resume and 0 or 1
  q = save(c, q, opts)
  if resume or not o.text then
    redis.call('HDEL', K(c, 'q', q.names), 'r')
  else
    redis.call('HSET', K(c, 'q', q.names), 'r', o.text)
  end
  if resume then
    Q.wake(c, q)
  end
  return answer(c, q)
end

-- Names of a sorted set for a page: with the prefix, after the cursor, at most n.
function Q.names(key, o, n)
  local prefix = o.prefix or ''
  local from = '[' .. prefix
  if o.after_key and not L.bytes_before(o.after_key, prefix) then
    from = '(' .. o.after_key
  end
  return redis.call('ZRANGEBYLEX', key, from, '(' .. prefix .. '\255', 'LIMIT', 0, n)
end

V.queue_list = function(c, o)
  local head = { status = @STATUS_OK@, now_ms = c.now, wall_ms = c.wall, queues = {} }
  for i, name in ipairs(Q.names(K(c, 'q.names', o.tenant), o, o.limit + 1)) do
    if i > o.limit then
      head.next = { head.queues[o.limit].name, 0 }
      break
    end
    head.queues[i] = show(c, Q.find(c, o.tenant, name))
  end
  return head
end

end
