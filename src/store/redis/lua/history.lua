-- history.lua: the recorded expiries, breaks and refusals of keys. The rules are in
-- src/core/history.h; push() is a port of il__history_add().
--
-- An event is an array: seq, kind, count, fence (a string), since_ms, first_ms, last_ms, holder,
-- meta, other, reason; times are those of the wall clock. After the tag:
--   hy     hash  tenant \0 key -> its events, oldest first, packed
--   hyd    zset  tenant \0 key by the time of its newest event
--   hyt:t  zset  the same of one tenant, by key
do

local SEQ, KIND, TIMES, FIRST, LAST, META, OTHER = 1, 2, 3, 6, 7, 9, 10

-- Its first characters.
local function cut(text)
  if #text <= @EVENT_TEXT_CHARS@ then return text end
  local n = 0
  for i = 1, #text do
    local b = text:byte(i)
    if b < 128 or b >= 192 then n = n + 1 end
    if n > @EVENT_TEXT_CHARS@ then return text:sub(1, i - 1) end
  end
  return text
end

local function is_merged(x, e)
  -- mutant refusals_not_merged: return false
  return e[KIND] == @EVENT_REFUSED@ and x[KIND] == e[KIND] and x[META] == e[META]
end

-- The events with one more, whose seq is set here.
local function push(c, events, e)
  local kept, n = {}, #events
  e[META], e[OTHER] = cut(e[META]), cut(e[OTHER])
  e[SEQ] = n > 0 and events[n][SEQ] + 1 or 1
  for _, x in ipairs(events) do
    if is_merged(x, e) then
      e[TIMES] = math.min(e[TIMES] + x[TIMES], @REFUSED_MAX@)
      e[FIRST] = math.min(e[FIRST], x[FIRST])
    elseif c.wall - x[LAST] < @EVENT_KEEP_MS@ then
      kept[#kept + 1] = x
    end
  end
  kept[#kept + 1] = e
  while #kept > @EVENTS_MAX@ do table.remove(kept, 1) end
  return kept
end

local function load(c, tk)
  local row = redis.call('HGET', c.tag .. ':hy', tk)
  return row and cmsgpack.unpack(row) or {}
end

local function remove(c, t, k)
  local tk = t .. '\0' .. k
  redis.call('HDEL', c.tag .. ':hy', tk)
  redis.call('ZREM', c.tag .. ':hyd', tk)
  redis.call('ZREM', c.tag .. ':hyt:' .. t, k)
end

-- While memory is full, nothing is recorded.
local function record(c, t, k, e)
  if c.own then return end
  local tk, last = t .. '\0' .. k, N(e[LAST])
  local keys = c.tag .. ':hyt:' .. t
  redis.call('HSET', c.tag .. ':hy', tk, cmsgpack.pack(push(c, load(c, tk), e)))
  redis.call('ZADD', c.tag .. ':hyd', 'GT', last, tk)
  redis.call('ZADD', keys, 'GT', last, k)
  if redis.call('ZCARD', keys) > @EVENT_KEYS_MAX@ then
    remove(c, t, redis.call('ZRANGE', keys, 0, 0)[1])
  end
end

local function expired(c, l)
  local at = c.wall - (c.now - l.due_ms)
  return { 0, @EVENT_EXPIRED@, 1, l.number, c.wall - (c.now - l.since_ms), at, at, l.holder,
    l.meta, '', '' }
end

-- A held lease has expired, or is broken by a request: before it is changed.
L.history_expired = function(c, l)
  record(c, l.ks.t, l.ks.k, expired(c, l))
end

L.history_broken = function(c, l, o)
  record(c, l.ks.t, l.ks.k, { 0, @EVENT_BROKEN@, 1, l.number, c.wall - (c.now - l.since_ms),
    c.wall, c.wall, l.holder, l.meta, o.meta or '', o.reason or '' })
end

V.refused = function(c, o)
  local held = o.held_ms or 0
  record(c, o.tenant, o.key, { 0, @EVENT_REFUSED@, o.count, N(o.fence or 0),
    held > 0 and c.wall - held or 0, c.wall - (o.span_ms or 0), c.wall, o.holder or '', o.meta,
    o.other or '', o.reason or '' })
  return { status = @STATUS_OK@ }
end

-- All events of the key: the library makes the page. Leases that have expired, but that nobody has
-- ended yet, are listed as if they had been.
V.history = function(c, o)
  local ks = L.load(c, o.tenant, o.key)
  local events = load(c, ks.tk)
  for _, l in ipairs(L.due_leases(c, ks)) do
    if l.state == @LEASE_HELD@ then events = push(c, events, expired(c, l)) end
  end
  return { status = @STATUS_OK@, wall_ms = c.wall, events = events }
end

-- ---- retention ----------------------------------------------------------------------------------

local function old_until(c)
  return N(c.wall - @EVENT_KEEP_MS@)
end

H.overdue = function(c)
  return redis.call('ZCOUNT', c.tag .. ':hyd', '-inf', old_until(c)) > 0
end

V.x_sweep_history = function(c, o)
  local old = redis.call('ZRANGEBYSCORE', c.tag .. ':hyd', '-inf', old_until(c), 'LIMIT', 0,
    o.limit)
  for _, tk in ipairs(old) do
    remove(c, tk:match('^([^%z]*)%z(.*)$'))
  end
  return { status = @STATUS_OK@, sweep = { n_purged = #old },
    flags = H.overdue(c) and @OUT_MORE@ or 0 }
end

end
