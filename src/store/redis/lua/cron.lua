-- cron.lua: schedules: entries, and the jobs that their ticks push. When a schedule ticks is computed by the client (core/cron.c):
-- a verb that needs that asks, and is told by x_tick or by next_ms. That a tick is pushed once, whoever is there, is kept by the id of its job.
--
--   cron:T,NAME       an entry (packed)
--   cron.names:T      sorted with equal scores: names of a tenant's entries
--   cron.next         sorted by the next tick: T NUL NAME, of all tenants
--   cron.queue:T,Q    sorted by the next tick: names of the entries of a queue
-- An entry that never ticks again (beyond the year 9999) is in neither of the last two.
do

local OK, NOT_FOUND = S.OK, S.NOT_FOUND
local MORE = 4 -- of the head's flags
local TICKS_MAX = 1000 -- IL__TICKS_MAX
local NEVER = 9007199254740992 -- 2^53; for the client it is IL__NEVER
local PAGE = 200

local FORMAT = '>I1i2I4I8I8I8ss' -- missed priority max_attempts n_ticks next last queue schedule; then the payload

-- ---- rows -----------------------------------------------------------------------------------------------------------------

local function load(c, tenant, name)
  local row = redis.call('GET', K(c, 'cron', tenant, name))
  if not row then
    return nil
  end
  local e, at = { tenant = tenant, name = name }, nil
  e.missed, e.priority, e.max_attempts, e.n_ticks, e.next, e.last, e.queue, e.schedule, at = struct.unpack(FORMAT, row)
  e.payload = string.sub(row, at)
  return e
end

local function leave(c, e)
  redis.call('ZREM', K(c, 'cron.next'), e.tenant .. '\0' .. e.name)
  redis.call('ZREM', K(c, 'cron.queue', e.tenant, e.queue), e.name)
end

local function save(c, e)
  local row = struct.pack(FORMAT, e.missed, e.priority, e.max_attempts, e.n_ticks, e.next, e.last, e.queue, e.schedule)
  redis.call('SET', K(c, 'cron', e.tenant, e.name), row .. e.payload)
  if e.next < NEVER then
    redis.call('ZADD', K(c, 'cron.next'), e.next, e.tenant .. '\0' .. e.name)
    redis.call('ZADD', K(c, 'cron.queue', e.tenant, e.queue), e.next, e.name)
  end
end

local function show(e, with_payload)
  return { {
    tenant = e.tenant, name = e.name, queue = e.queue, schedule = e.schedule, missed = e.missed, priority = e.priority,
    max_attempts = e.max_attempts, n_ticks = N(e.n_ticks), last_at_ms = N(e.last),
    next_at_ms = e.next < NEVER and N(e.next) or '9223372036854775807',
  }, with_payload and e.payload or false, false }
end

-- ---- ops --------------------------------------------------------------------------------------------------------------------

V.cron_set = function(c, o, data)
  local old = load(c, o.tenant, o.name)
  local same = old and old.schedule == o.schedule
  if not same and not o.next_ms then
    return { status = OK, ask = 'next', now_ms = c.now, wall_ms = c.wall }
  end
  local e = {
    tenant = o.tenant, name = o.name, queue = o.key, schedule = o.schedule, missed = o.missed or 0, priority = o.priority or 0,
    max_attempts = o.max_attempts or 0, n_ticks = old and old.n_ticks or 0, last = old and old.last or 0, payload = data or '',
  }
  e.next = same and old.next or math.min(tonumber(o.next_ms), NEVER)
  local q = Q.get(c, o.tenant, o.key)
  if old then
    leave(c, old)
  end
  save(c, e)
  redis.call('ZADD', K(c, 'cron.names', o.tenant), 0, o.name)
  Q.wake(c, q) -- whoever waits for its next tick: that may be another one now
  return { status = OK, now_ms = c.now, wall_ms = c.wall }, { show(e, true) }
end

V.cron_remove = function(c, o)
  local e = load(c, o.tenant, o.name)
  if not e then
    return { status = NOT_FOUND }
  end
  leave(c, e)
  redis.call('DEL', K(c, 'cron', e.tenant, e.name))
  redis.call('ZREM', K(c, 'cron.names', e.tenant), e.name)
  return { status = OK }
end

V.cron_list = function(c, o)
  local head, parts = { status = OK, now_ms = c.now, wall_ms = c.wall }, {}
  local key, at = K(c, 'cron.names', o.tenant), { prefix = o.prefix, after_key = o.after_key }
  local names
  repeat
    names = Q.names(key, at, PAGE)
    for _, name in ipairs(names) do
      local e = load(c, o.tenant, name)
      if e and (not o.key or e.queue == o.key) then
        if #parts == o.limit then
          head.next = { parts[o.limit][1].name, 0 }
          return head, parts
        end
        parts[#parts + 1] = show(e, true)
      end
    end
    at.after_key = names[#names]
  until #names < PAGE
  return head, parts
end

-- ---- ticks ----------------------------------------------------------------------------------------------------------------------

-- The next tick of a queue's schedules, or nil.
function Q.next_tick(c, q)
  return tonumber(redis.call('ZRANGE', K(c, 'cron.queue', q.names), 0, 0, 'WITHSCORES')[2])
end

-- One that is not there (somebody has deleted keys) must not keep the others from ticking.
local function add_due(parts, e)
  if e then
    parts[#parts + 1] = show(e)
  end
end

-- Schedules of a queue whose tick has come, by next and name, as parts.
function Q.due_ticks(c, q)
  local parts = {}
  for _, name in ipairs(redis.call('ZRANGEBYSCORE', K(c, 'cron.queue', q.names), '-inf', N(c.wall), 'LIMIT', 0, TICKS_MAX)) do
    add_due(parts, load(c, q.tenant, name))
  end
  return parts
end

V.x_due = function(c, o)
  local head, parts = { status = OK, now_ms = c.now, wall_ms = c.wall }, {}
  for i, names in ipairs(redis.call('ZRANGEBYSCORE', K(c, 'cron.next'), '-inf', N(c.wall), 'LIMIT', 0, o.limit + 1)) do
    if i > o.limit then
      head.flags = MORE
      break
    end
    local tenant, name = string.match(names, '^([^%z]*)%z(.*)$')
    add_due(parts, load(c, tenant, name))
  end
  return head, parts
end

-- The ticks of an entry that have come. Somebody else may have been faster: then its next tick is another one, and nothing is done.
V.x_tick = function(c, o)
  local e = load(c, o.tenant, o.name)
  if not e or e.schedule ~= o.schedule or e.next ~= math.min(tonumber(o.was_ms), NEVER) then
    return { status = OK, pushed = 0 }
  end
  local q = Q.get(c, e.tenant, e.queue)
  local n = 0
  for _, tick in ipairs(o.ticks or {}) do
    local run_at, id = tonumber(tick[1]), tick[2]
    if redis.call('EXISTS', Q.job_key(c, e.tenant, id)) == 0 then
      local max_attempts = e.max_attempts > 0 and e.max_attempts or nil
      Q.push_new(c, q, { id = id, priority = e.priority, run_at_ms = run_at, max_attempts = max_attempts }, e.payload)
      e.n_ticks, e.last, n = e.n_ticks + 1, run_at, n + 1
    end
  end
  leave(c, e)
  e.next = math.min(tonumber(o.next_ms), NEVER)
  save(c, e)
  return { status = OK, pushed = n }
end

end
