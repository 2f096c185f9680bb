-- cron.lua: schedules: their entries, and the jobs that their ticks push. The client computes when
-- a schedule ticks (core/cron.c): a verb that needs it asks back, and gets the answer in x_tick or
-- next_ms. The id of its job ensures that a tick is pushed only once, however many clients see it.
--
--   cron:T,NAME       an entry (packed)
--   cron.names:T      sorted with equal scores: names of a tenant's entries
--   cron.next         sorted by the next tick: T NUL NAME, of all tenants
--   cron.queue:T,Q    sorted by the next tick: names of the entries of a queue
--   cron.of:T,Q       the same by name
-- An entry that never ticks again (beyond the year 9999) is in neither set sorted by the next tick.
do

local NEVER = @TICK_NEVER@ -- for the client it is IL__NEVER

-- missed priority max_attempts n_ticks next last queue schedule; then the payload
local FORMAT = '>I1i2I4I8I8I8ss'

-- ---- rows ---------------------------------------------------------------------------------------

local function load(c, tenant, name)
  local row = redis.call('GET', K(c, 'cron', tenant, name))
  if not row then
    return nil
  end
  local e, at = { tenant = tenant, name = name }, nil
  e.missed, e.priority, e.max_attempts, e.n_ticks, e.next, e.last, e.queue, e.schedule, at =
    struct.unpack(FORMAT, row)
  e.payload = string.sub(row, at)
  return e
end

local function leave(c, e)
  redis.call('ZREM', K(c, 'cron.next'), e.tenant .. '\0' .. e.name)
  redis.call('ZREM', K(c, 'cron.queue', e.tenant, e.queue), e.name)
end

local function save(c, e)
  local row = struct.pack(FORMAT, e.missed, e.priority, e.max_attempts, e.n_ticks, e.next, e.last,
    e.queue, e.schedule)
  redis.call('SET', K(c, 'cron', e.tenant, e.name), row .. e.payload)
  if e.next < NEVER then
    redis.call('ZADD', K(c, 'cron.next'), e.next, e.tenant .. '\0' .. e.name)
    redis.call('ZADD', K(c, 'cron.queue', e.tenant, e.queue), e.next, e.name)
  end
end

local function show(e, with_payload)
  return { {
    tenant = e.tenant, name = e.name, queue = e.queue, schedule = e.schedule, missed = e.missed,
    priority = e.priority,
    max_attempts = e.max_attempts, n_ticks = N(e.n_ticks), last_at_ms = N(e.last),
    next_at_ms = e.next < NEVER and N(e.next) or '@NEVER@',
  }, with_payload and e.payload or false, false }
end

-- ---- ops ----------------------------------------------------------------------------------------

V.cron_set = function(c, o, data)
  local old = load(c, o.tenant, o.name)
  local same = old and old.schedule == o.schedule
  if not same and not o.next_ms then
    return { status = @STATUS_OK@, ask = 'next', now_ms = c.now, wall_ms = c.wall }
  end
  local e = {
    tenant = o.tenant, name = o.name, queue = o.key, schedule = o.schedule,
    missed = o.missed or @MISSED_SKIP@, priority = o.priority or 0,
    max_attempts = o.max_attempts or 0, n_ticks = old and old.n_ticks or 0,
    last = old and old.last or 0, payload = data or '',
  }
  e.next = same and old.next or math.min(tonumber(o.next_ms), NEVER)
  local q = Q.get(c, o.tenant, o.key)
  if old then
    leave(c, old)
    redis.call('ZREM', K(c, 'cron.of', old.tenant, old.queue), old.name)
  end
  save(c, e)
  redis.call('ZADD', K(c, 'cron.names', o.tenant), 0, o.name)
  redis.call('ZADD', K(c, 'cron.of', o.tenant, o.key), 0, o.name)
  Q.wake(c, q) -- whoever waits for its next tick: that may be another one now
  return { status = @STATUS_OK@, now_ms = c.now, wall_ms = c.wall }, { show(e, true) }
end

V.cron_remove = function(c, o)
  local e = load(c, o.tenant, o.name)
  if not e then
    return { status = @STATUS_NOT_FOUND@ }
  end
  leave(c, e)
  redis.call('DEL', K(c, 'cron', e.tenant, e.name))
  redis.call('ZREM', K(c, 'cron.names', e.tenant), e.name)
  redis.call('ZREM', K(c, 'cron.of', e.tenant, e.queue), e.name)
  return { status = @STATUS_OK@ }
end

V.cron_list = function(c, o)
  local head, parts = { status = @STATUS_OK@, now_ms = c.now, wall_ms = c.wall }, {}
  local key = o.key and K(c, 'cron.of', o.tenant, o.key) or K(c, 'cron.names', o.tenant)
  local names = Q.names(key, o, o.limit + 1)
  for i = 1, math.min(#names, o.limit) do
    local e = load(c, o.tenant, names[i])
    parts[#parts + 1] = e and show(e, true) -- somebody may have deleted keys
  end
  if #names > o.limit then
    head.next = { names[o.limit], 0 }
  end
  return head, parts
end

-- ---- ticks --------------------------------------------------------------------------------------

-- The next tick of a queue's schedules, or nil.
function Q.next_tick(c, q)
  return tonumber(redis.call('ZRANGE', K(c, 'cron.queue', q.names), 0, 0, 'WITHSCORES')[2])
end

-- A missing entry (someone has deleted keys) must not keep the others from ticking.
local function add_due(parts, e)
  if e then
    parts[#parts + 1] = show(e)
  end
end

-- Schedules of a queue whose tick has come, by next and name, as parts.
function Q.due_ticks(c, q)
  local parts = {}
  for _, name in ipairs(redis.call('ZRANGEBYSCORE', K(c, 'cron.queue', q.names), '-inf', N(c.wall),
    'LIMIT', 0, @TICKS_MAX@)) do
    add_due(parts, load(c, q.tenant, name))
  end
  return parts
end

V.x_due = function(c, o)
  local head, parts = { status = @STATUS_OK@, now_ms = c.now, wall_ms = c.wall }, {}
  for i, names in ipairs(redis.call('ZRANGEBYSCORE', K(c, 'cron.next'), '-inf', N(c.wall), 'LIMIT',
    0, o.limit + 1)) do
    if i > o.limit then
      head.flags = @OUT_MORE@
      break
    end
    local tenant, name = string.match(names, '^([^%z]*)%z(.*)$')
    add_due(parts, load(c, tenant, name))
  end
  return head, parts
end

-- Process the due ticks of an entry. Another client may have been faster: then its next tick has
-- changed, and nothing is done.
V.x_tick = function(c, o)
  local e = load(c, o.tenant, o.name)
  if not e or e.schedule ~= o.schedule or e.next ~= math.min(tonumber(o.was_ms), NEVER) then
    return { status = @STATUS_OK@, pushed = 0 }
  end
  local q = Q.get(c, e.tenant, e.queue)
  local n = 0
  for _, tick in ipairs(o.ticks or {}) do
    local run_at, id = tonumber(tick[1]), tick[2]
    if redis.call('EXISTS', Q.job_key(c, e.tenant, id)) == 0 then
      local max_attempts = e.max_attempts > 0 and e.max_attempts or nil
      Q.push_new(c, q, { id = id, priority = e.priority, run_at_ms = run_at,
        max_attempts = max_attempts }, e.payload)
      e.n_ticks, e.last, n = e.n_ticks + 1, run_at, n + 1
    end
  end
  leave(c, e)
  -- mutant tick_pushed_twice: e.next = e.next - 60000
  e.next = math.min(tonumber(o.next_ms), NEVER)
  save(c, e)
  return { status = @STATUS_OK@, pushed = n }
end

end
