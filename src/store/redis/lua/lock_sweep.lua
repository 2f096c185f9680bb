-- lock_sweep.lua: recovery of locks, and the data for the client's deadlock search and lock order.
do

local PUT_OFF_MS = 60000 -- until a damaged key is looked at again
local PAGE = 1000 -- leases or waiters that are read at once
local UNIT_LOOK = 16 -- what a unit of work may have for it to be looked through beside a queue

-- ---- the deadlock search ------------------------------------------------------------------------

-- The keys that a unit of work waits for, the youngest wait first: the reported cycle depends on
-- it.
local function waits_of(c, t, root)
  local keys = {}
  local unit = L.unit(c, t, root)
  for i = #unit - 1, 1, -2 do
    local kind, key = L.unit_member(unit[i])
    if kind == 'W' then keys[#keys + 1] = key end
  end
  return { keys = keys }
end

-- The result of `one` for each name, or for the only one.
local function of_each(c, t, names, name, one)
  local head = names and { many = {} } or one(c, t, name)
  for i, n in ipairs(names or {}) do head.many[i] = one(c, t, n) end
  head.status = @STATUS_OK@
  return head
end

V.x_waits = function(c, o)
  return of_each(c, o.tenant, o.roots, o.root, waits_of)
end

-- Does the unit of work of a holder wait for another key than this one? Most do not, and need not
-- be queried one by one. Also 1 if it has so much that checking would cost more than being asked.
local function waits_elsewhere(c, t, holder, key)
  local unit = L.unit(c, t, holder, UNIT_LOOK)
  if #unit > 2 * UNIT_LOOK then return 1 end
  for i = 1, #unit, 2 do
    local kind, other = L.unit_member(unit[i])
    if kind == 'W' and other ~= key then return 1 end
  end
  return 0
end

-- Leases as stored: the client decides which of them last.
local function queue_of(c, t, key)
  local ks = L.load(c, t, key)
  local head = { now_ms = c.now, leases = {}, waits = {} }
  local after, page = '0', nil
  repeat
    page = L.lease_page(ks, after, PAGE)
    for _, l in ipairs(page) do
      after = l.number
      head.leases[#head.leases + 1] =
        { l.holder, l.mode, l.permits, l.state, l.due_ms, l.settle_ms,
          waits_elsewhere(c, t, l.holder, key) }
    end
  until ks.alone or #page < PAGE
  after = '0'
  repeat
    page = L.queue_page(c, ks, after, PAGE)
    for _, w in ipairs(page) do
      after = w.number
      if w.due_ms > c.now then
        head.waits[#head.waits + 1] = { w.number, w.holder, w.mode, w.permits,
          waits_elsewhere(c, t, w.holder, key) }
      end
    end
  until #page < PAGE
  return head
end

V.x_queue = function(c, o)
  return of_each(c, o.tenant, o.keys, o.key, queue_of)
end

-- Give the victim its verdict, wake it, and let those behind it pass. The waiter of a run is
-- removed together with its run, which then carries the verdict.
V.x_verdict = function(c, o)
  local w = L.waiter_of_ticket(c, N(o.ticket))
  if not w or w.verdict ~= '' then
    return { status = @STATUS_OK@, found = 0 }
  end
  local ks = w.ks
  wake(c, ks.t, ks.k, w.holder)
  if w.run == '0' then
    L.waiter_condemn(c, w, o.text)
  else
    w.verdict = o.text
    L.waiter_leave(c, w)
  end
  L.offer_next(c, ks)
  return { status = @STATUS_OK@, found = 1 }
end

V.x_take = function(c, o)
  local w = L.waiter_of(c, L.load(c, o.tenant, o.key), o.holder)
  if not w or w.verdict == '' then
    return { status = @STATUS_OK@, found = 0 }
  end
  L.waiter_leave(c, w)
  return { status = @STATUS_OK@, found = 1, detail = w.verdict }
end

-- Add the waits {holder, ticket} of a unit of work to `waits`, if it also holds or waits for
-- something else. False: it does not.
local function entangled_waits(c, t, root, waits)
  local unit = L.unit(c, t, root)
  local n = #waits
  for i = 1, #unit, 2 do
    local kind, _, holder = L.unit_member(unit[i])
    if kind == 'W' and #unit > 2 then waits[#waits + 1] = { holder, tonumber(unit[i + 1]) } end
  end
  return #waits > n
end

V.x_entangled = function(c, o)
  local t = o.tenant or ''
  local index = c.tag .. ':lent'
  while true do
    local next_unit = redis.call('ZRANGEBYLEX', index, '(' .. t .. '\1', '+', 'LIMIT', 0, 1)[1]
    if not next_unit then
      return { status = @STATUS_OK@ }
    end
    t = next_unit:match('^[^%z]*')
    local waits = {}
    for _, unit in ipairs(redis.call('ZRANGEBYLEX', index, '[' .. t .. '\0', '(' .. t .. '\1')) do
      entangled_waits(c, t, unit:sub(#t + 2), waits)
    end
    if #waits > 0 then
      table.sort(waits, function(a, b) return a[2] < b[2] end)
      for i, wait in ipairs(waits) do waits[i] = wait[1] end
      return { status = @STATUS_OK@, tenant = t, holders = waits }
    end
  end
end

-- Forget units of work that are no longer entangled.
local function disentangle(c, limit)
  for _, unit in ipairs(redis.call('ZRANGE', c.tag .. ':lent', 0, limit - 1)) do
    local t = unit:match('^[^%z]*')
    if not entangled_waits(c, t, unit:sub(#t + 2), {}) then
      redis.call('ZREM', c.tag .. ':lent', unit)
    end
  end
end

-- ---- lock order ---------------------------------------------------------------------------------

-- Edges in the order in which they were learned: lo tells whether one is known, lol lists them. t:
-- only of this tenant.
local function edges(c, t)
  local found = {}
  for _, row in ipairs(redis.call('LRANGE', c.tag .. ':lol', 0, @ORDER_EDGES_MAX@ - 1)) do
    local edge = { cmsgpack.unpack(row) }
    if not t or edge[1] == t then found[#found + 1] = edge end
  end
  return found
end

V.x_edges = function(c)
  return { status = @STATUS_OK@, order_n = redis.call('HLEN', c.tag .. ':lo'), edges = edges(c) }
end

-- All edges of the tenant: the library makes the page.
V.order_list = function(c, o)
  return { status = @STATUS_OK@, edges = edges(c, o.tenant) }
end

V.x_learn = function(c, o)
  local known = c.tag .. ':lo'
  local first_place, then_place = o.first_place or '', o.then_place or ''
  local n = redis.call('HLEN', known)
  local id = o.tenant .. '\0' .. o.first .. '\0' .. o['then']
  if n < @ORDER_EDGES_MAX@ and redis.call('HSETNX', known, id, '') == 1 then
    n = n + 1
    redis.call('RPUSH', c.tag .. ':lol',
      cmsgpack.pack(o.tenant, o.first, o['then'], first_place, then_place, o.against))
  end
  return { status = @STATUS_OK@, order_n = n }
end

-- ---- the sweep ----------------------------------------------------------------------------------

-- The entry that is overdue longest: its member of ldue, tenant and key; nil if there is none.
local function next_due(c)
  local first = redis.call('ZRANGE', c.tag .. ':ldue', 0, 0, 'WITHSCORES')
  if not first[1] or tonumber(first[2]) > c.now then
    return nil
  end
  local t, k = first[1]:match('^[kw]%d*%z([^%z]*)%z([^%z]*)')
  return first[1], t, k
end

local function expire_key(c, t, k, counts)
  return L.expire(c, L.load(c, t, k), counts)
end

-- All tenants: recovery is done for the store, not for a caller. A key is dealt with as a whole.
V.x_sweep_locks = function(c, o)
  local counts = { n_expired = 0, n_dropped = 0, n_offered = 0, n_runs = 0 }
  local head = { status = @STATUS_OK@, sweep = counts }
  local n_bad = 0
  local member, t, k = next_due(c)
  while member do
    if counts.n_expired + counts.n_dropped + n_bad >= o.limit then
      head.flags = @OUT_MORE@
      break
    end
    local ok, n = true, 0
    if k then ok, n = pcall(expire_key, c, t, k, counts) end
    if not ok then
      -- Unreadable rows stay as they are, and the others get their turn.
      redis.call('ZADD', c.tag .. ':ldue', N(c.now + PUT_OFF_MS), member)
      n_bad = n_bad + 1
      head.status = @STATUS_CORRUPT@
      local why = string.format('the lock %s of tenant %s is damaged: %s', k, t,
        tostring(type(n) == 'table' and n.err or n))
      head.detail = (string.gsub(why, '[^\32-\126]', '?')) -- whatever it is, it must be text
    elseif n == 0 then
      redis.call('ZREM', c.tag .. ':ldue', member) -- damaged: its key knows nothing of it
    end
    member, t, k = next_due(c)
  end
  if c.classic then L.classic_sweep(c, o.limit, counts) end
  disentangle(c, o.limit)
  L.ended_purge(c, o.limit)
  return head
end

-- Is there anything for a sweep: something overdue, or a possible deadlock?
L.overdue = function(c)
  return next_due(c) ~= nil or redis.call('EXISTS', c.tag .. ':lent', c.tag .. ':lc') > 0
    or L.ended_overdue(c)
end

end
