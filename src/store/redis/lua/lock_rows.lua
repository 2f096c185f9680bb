-- lock_rows.lua: leases, waiters and the memory of ended leases, as Redis keeps them: reading and
-- single changes. The decisions are in lock.lua. Everything happens inside one function call, which
-- Redis runs alone: what was read is still true when we act on it.
--
-- Calls are the main cost of an acquire and release, so the rows that every pair needs are fields
-- of the store's own hash (tag:store), beside its counters: one HMGET reads them all, one HSET
-- writes them. tk = tenant \0 key:
--   k\0tk            a key: flags (1 = it has waiters, 2 = many: its leases are in lh:tk); if many,
--                    their mode and permits, which are the same for all of them; else its exclusive
--                    lease, if it has one
--   u\0tenant\0root  what a unit of work holds and waits for: if that is one exclusive lease, the
--                    field of its key; '*' if it is in lu:…
--   e\0tk\0holder    how the last lease of a holder on a key ended
-- and the other keys, after the tag:
--   lh:tk         hash    holder -> shared or permit lease
--   lf:tk, lx:tk  zset    holder by fence, holder by expiry
--   lw:tk         hash    holder -> waiter
--   lq:tk         zset    holder by ticket: the queue, without those that have a verdict
--   ld:tk         zset    holder by the time it is dropped, with or without a verdict
--   lu:t\0root    zset    members of a unit of work by fence or ticket: L, W or V (a waiter with a
--                 verdict) KEY \0 HOLDER
--   ldue          zset    all leases and waiters by due time. Redis orders equal times by bytes:
--                         leases by tenant and key (k\0tk, of many k\0tk\0fence), then waiters by
--                         ticket (w ticket \0 tk \0 holder)
--   lk:t, lkw:t   zset    keys with leases, keys with waiters, by bytes: for listings
--   lt            hash    ticket -> tk \0 holder
--   lent          zset    tenant \0 root: units of work that wait, and also hold or wait for
--                         something else; a sweep removes those that no longer do
--   le            list    the fields e\0… in the order of their creation
-- A key without leases or waiters has none of these except, for a minute, its memory of ended
-- leases.
--
-- A key is loaded as {c, t, k, tk, alone (its exclusive lease), many, mode, permits (its shared
-- leases or permits are read one by one, as waiters are: there may be thousands), waiters (has it
-- any?)}. A lease or waiter is a table with the fields of src/core/README.md by their wire names:
-- number (fence or ticket: a string), holder, state, mode, permits, ttl_ms, settle_ms, since_ms,
-- renewed_ms, due_ms (of a waiter: when it is dropped), deadline_ms, meta, place, reason, verdict,
-- run (a string, '0' = none); and ks, its key.
do

L.NEVER = 9007199254740991 -- a deadline that does not come
local HAS_WAITERS, HAS_MANY = 1, 2
local CHUNK = 100       -- fields that one call names

-- Is a before b, by their bytes? Lua's own `<` follows the locale of the server.
L.bytes_before = function(a, b)
  for i = 1, math.min(#a, #b) do
    local x, y = a:byte(i), b:byte(i)
    if x ~= y then return x < y end
  end
  return #a < #b
end

local function root_of(holder)
  local slash = holder:find('/', 1, true)
  return slash and holder:sub(1, slash - 1) or holder
end

-- ---- reading ------------------------------------------------------------------------------------

-- Rows are packed with struct, which makes the least garbage of all means available here. Strings
-- contain no NUL.
L.LEASE = '<BBBI4dddddsssssss' -- flags of the key first, see save_key()
local WAITER = '<BI4ddddddsssss'

local function pack_lease(flags, l)
  return struct.pack(L.LEASE, flags, l.state, l.mode, l.permits, l.due_ms, l.ttl_ms, l.settle_ms,
    l.since_ms, l.renewed_ms, l.holder,
    l.number, l.run, l.meta, l.place, l.reason, l.classic or '')
end

local function lease_of_row(ks, row)
  local _, state, mode, permits, due, ttl, settle, since, renewed, holder, fence, run, meta, place,
    reason, classic =
    struct.unpack(L.LEASE, row)
  return {
    ks = ks, number = fence, holder = holder, state = state, due_ms = due, mode = mode,
    permits = permits, ttl_ms = ttl,
    settle_ms = settle, since_ms = since, renewed_ms = renewed, run = run, meta = meta,
    place = place, reason = reason,
    classic = classic,
  }
end

local function waiter_of_row(ks, holder, row)
  local mode, permits, due, deadline, ttl, settle, since, seen, ticket, run, meta, place, verdict =
    struct.unpack(WAITER, row)
  return {
    ks = ks, number = ticket, holder = holder, state = @LEASE_WAITING@, due_ms = due,
    deadline_ms = deadline, mode = mode,
    permits = permits, ttl_ms = ttl, settle_ms = settle, since_ms = since, renewed_ms = seen,
    run = run, meta = meta,
    place = place, reason = '', verdict = verdict, condemned = verdict ~= '',
  }
end

local function by_number(a, b)
  return tonumber(a.number) < tonumber(b.number)
end

-- A key, including what is overdue. Without a row there is nothing.
L.load = function(c, t, k)
  local tk = t .. '\0' .. k
  local ks = { c = c, t = t, k = k, tk = tk, waiters = false }
  local row = redis.call('HGET', c.tag .. ':store', 'k\0' .. tk)
  local flags = row and row:byte() or 0
  ks.waiters = flags % 2 == HAS_WAITERS
  if flags >= HAS_MANY then
    ks.many, ks.mode, ks.permits = true, struct.unpack('<BI4', row, 2)
  elseif row and #row > 1 then
    ks.alone = lease_of_row(ks, row)
  end
  if c.classic then L.classic_look(c, ks) end
  return ks
end

-- The lease of a holder.
L.lease_of = function(ks, holder)
  if ks.alone then return ks.alone.holder == holder and ks.alone or nil end
  local row = ks.many and redis.call('HGET', ks.c.tag .. ':lh:' .. ks.tk, holder)
  return row and lease_of_row(ks, row) or nil
end

local function leases_of(ks, holders)
  local leases = {}
  for i, holder in ipairs(holders) do leases[i] = L.lease_of(ks, holder) end
  return leases
end

-- Up to `limit` leases with a greater fence, oldest first, including overdue ones.
L.lease_page = function(ks, after, limit)
  if ks.alone then
    return tonumber(ks.alone.number) > tonumber(after) and { ks.alone } or {}
  end
  if not ks.many then return {} end
  return leases_of(ks, redis.call('ZRANGEBYSCORE', ks.c.tag .. ':lf:' .. ks.tk, '(' .. after,
    '+inf', 'LIMIT', 0, limit))
end

-- The same from the newest on: leases with a fence below `before` ('+inf', or '(' and a fence).
L.lease_page_back = function(ks, before, limit)
  if ks.alone then return { ks.alone } end
  if not ks.many then return {} end
  return leases_of(ks, redis.call('ZREVRANGEBYSCORE', ks.c.tag .. ':lf:' .. ks.tk, before, '-inf',
    'LIMIT', 0, limit))
end

L.lease_of_fence = function(ks, fence)
  if ks.alone then
    return tonumber(ks.alone.number) == fence and ks.alone or nil
  end
  if not ks.many then return nil end
  return leases_of(ks, redis.call('ZRANGEBYSCORE', ks.c.tag .. ':lf:' .. ks.tk,
    N(fence), N(fence)))[1]
end

-- Leases that are due at c.now, oldest first.
L.due_leases = function(c, ks)
  if ks.alone then
    -- mutant expiry_reversed: return ks.alone.due_ms >= c.now and { ks.alone } or {}
    return ks.alone.due_ms <= c.now and { ks.alone } or {}
  end
  if not ks.many then return {} end
  local due = leases_of(ks, redis.call('ZRANGEBYSCORE', c.tag .. ':lx:' .. ks.tk, '-inf', c.now))
  table.sort(due, by_number)
  return due
end

-- The newest fence, of live and overdue leases; nil if the key has no lease.
L.newest = function(ks)
  if ks.alone then return ks.alone.number end
  return ks.many and redis.call('ZRANGE', ks.c.tag .. ':lf:' .. ks.tk, -1, -1, 'WITHSCORES')[2]
    or nil
end

L.count = function(ks)
  if ks.alone then return 1 end
  return ks.many and redis.call('ZCARD', ks.c.tag .. ':lf:' .. ks.tk) or 0
end

L.waiter_of = function(c, ks, holder)
  local row = ks.waiters and redis.call('HGET', c.tag .. ':lw:' .. ks.tk, holder)
  return row and waiter_of_row(ks, holder, row) or nil
end

-- The first in the queue that is still to be served.
L.queue_head = function(c, ks)
  local queue = c.tag .. ':lq:' .. ks.tk
  -- mutant last_in_first_out: local head = ks.waiters and redis.call('ZRANGE', queue, -1, -1)
  local head = ks.waiters and redis.call('ZRANGE', queue, 0, 0)
  return head and head[1] and L.waiter_of(c, ks, head[1]) or nil
end

L.has_queue = function(c, ks)
  return ks.waiters and redis.call('ZCARD', c.tag .. ':lq:' .. ks.tk) > 0
end

-- Waiters of a key that are dead at c.now, in the order of their tickets.
L.dead_waiters = function(c, ks)
  local dead = {}
  if not ks.waiters then return dead end
  for _, holder in ipairs(redis.call('ZRANGEBYSCORE', c.tag .. ':ld:' .. ks.tk, '-inf', c.now)) do
    dead[#dead + 1] = L.waiter_of(c, ks, holder)
  end
  table.sort(dead, by_number)
  return dead
end

-- How many waiters are still to be served and not dead.
L.live_waiters = function(c, ks)
  if not ks.waiters then return 0 end
  local queue = c.tag .. ':lq:' .. ks.tk
  local n = redis.call('ZCARD', queue)
  for _, holder in ipairs(redis.call('ZRANGEBYSCORE', c.tag .. ':ld:' .. ks.tk, '-inf', c.now,
    'LIMIT', 0, 1000)) do
    if redis.call('ZSCORE', queue, holder) then n = n - 1 end
  end
  return n
end

L.queue_position = function(c, w)
  return redis.call('ZRANK', c.tag .. ':lq:' .. w.ks.tk, w.holder) + 1
end

-- Up to `limit` waiters of the queue after a ticket, including dead ones.
L.queue_page = function(c, ks, after, limit)
  local page = {}
  if not ks.waiters then return page end
  local holders = redis.call('ZRANGEBYSCORE', c.tag .. ':lq:' .. ks.tk, '(' .. after, '+inf',
    'LIMIT', 0, limit)
  for _, holder in ipairs(holders) do
    page[#page + 1] = L.waiter_of(c, ks, holder)
  end
  return page
end

-- ---- units of work ------------------------------------------------------------------------------

-- The field of a unit of work.
L.unit_field = function(t, holder)
  return 'u\0' .. t .. '\0' .. root_of(holder)
end

local function unit_set(c, t, holder)
  return c.tag .. ':lu:' .. t .. '\0' .. root_of(holder)
end

-- The member and number of the only exclusive lease that a unit of work has, by the field of its
-- key.
local function unit_alone(c, field)
  local t, k = field:match('^k%z([^%z]*)%z(.*)$')
  local l = L.load(c, t, k).alone
  return l and 'L' .. k .. '\0' .. l.holder, l and l.number
end

-- What the unit of work of a holder has, oldest first: member, number, member, number, … If there
-- are more than `most` (nil: all), one more than that.
L.unit = function(c, t, holder, most)
  local row = redis.call('HGET', c.tag .. ':store', L.unit_field(t, holder))
  if not row then return {} end
  if row == '*' then
    return redis.call('ZRANGE', unit_set(c, t, holder), 0, most or -1, 'WITHSCORES')
  end
  return { unit_alone(c, row) }
end

-- alone: the member is an exclusive lease.
local function unit_add(c, ks, holder, kind, number, alone)
  local store, field = c.tag .. ':store', L.unit_field(ks.t, holder)
  local row = redis.call('HGET', store, field)
  if not row and alone then
    redis.call('HSET', store, field, 'k\0' .. ks.tk)
    return
  end
  local set = unit_set(c, ks.t, holder)
  if row ~= '*' then
    redis.call('HSET', store, field, '*')
    if row then
      local member, first = unit_alone(c, row)
      if member then redis.call('ZADD', set, first, member) end
    end
  end
  redis.call('ZADD', set, number, kind .. ks.k .. '\0' .. holder)
end

local function unit_remove(c, ks, holder, kind)
  local store, field = c.tag .. ':store', L.unit_field(ks.t, holder)
  local row = redis.call('HGET', store, field)
  if row == '*' then
    local set = unit_set(c, ks.t, holder)
    redis.call('ZREM', set, kind .. ks.k .. '\0' .. holder)
    if redis.call('EXISTS', set) > 0 then return end
  elseif kind ~= 'L' or row ~= 'k\0' .. ks.tk then
    return
  end
  redis.call('HDEL', store, field)
end

-- The kind (L, W, V), key and holder of a member.
L.unit_member = function(member)
  local zero = member:find('\0', 2, true)
  return member:sub(1, 1), member:sub(2, zero - 1), member:sub(zero + 1)
end

-- Of the live ones among members {key, holder, fence}, the oldest of the smallest key: {key,
-- place}; nil if none is live.
local function first_hold(c, t, held)
  while #held > 0 do
    local at = 1
    for i = 2, #held do
      local a, b = held[i], held[at]
      if a[1] == b[1] and a[3] < b[3] or a[1] ~= b[1] and L.bytes_before(a[1], b[1]) then at = i end
    end
    local l = L.lease_of(L.load(c, t, held[at][1]), held[at][2])
    if l and l.due_ms > c.now then return { l.ks.k, l.place } end
    table.remove(held, at)
  end
  return nil
end

-- What it holds now, ordered by key, so that reports do not depend on chance: { {key, place}, … }.
-- Lock order is about classes, so the first of each class is enough, however many it holds.
L.unit_holds = function(c, t, unit)
  local classes, holds = {}, {}
  for i = 1, #unit, 2 do
    local kind, key, holder = L.unit_member(unit[i])
    if kind == 'L' then
      local class = key:match('^[^:]*')
      classes[class] = classes[class] or {}
      table.insert(classes[class], { key, holder, tonumber(unit[i + 1]) })
    end
  end
  for _, held in pairs(classes) do
    holds[#holds + 1] = first_hold(c, t, held)
  end
  table.sort(holds, function(a, b) return L.bytes_before(a[1], b[1]) end)
  return holds
end

-- It waits, and also holds or waits for something else: it may be part of a deadlock.
L.unit_entangle = function(c, t, holder)
  redis.call('ZADD', c.tag .. ':lent', 0, t .. '\0' .. root_of(holder))
end

-- ---- leases -------------------------------------------------------------------------------------

-- The row of a key; none if it would be empty.
local function save_key(c, ks)
  local store, field = c.tag .. ':store', 'k\0' .. ks.tk
  local flags = ks.waiters and HAS_WAITERS or 0
  if ks.alone then
    redis.call('HSET', store, field, pack_lease(flags, ks.alone))
  elseif ks.many then
    redis.call('HSET', store, field, struct.pack('<BBI4', flags + HAS_MANY, ks.mode, ks.permits))
  elseif ks.waiters then
    redis.call('HSET', store, field, struct.pack('<B', flags))
  else
    redis.call('HDEL', store, field)
  end
end

local function due_lease(l)
  return l.mode == @MODE_EXCLUSIVE@ and 'k\0' .. l.ks.tk or 'k\0' .. l.ks.tk .. '\0' .. l.number
end

-- The fields that change during its life.
L.lease_save = function(c, l)
  local tag, ks = c.tag, l.ks
  if c.classic then L.classic_set(c, l) end
  if l.mode == @MODE_EXCLUSIVE@ then
    save_key(c, ks)
  else
    redis.call('HSET', tag .. ':lh:' .. ks.tk, l.holder, pack_lease(0, l))
    redis.call('ZADD', tag .. ':lx:' .. ks.tk, l.due_ms, l.holder)
  end
  redis.call('ZADD', tag .. ':ldue', l.due_ms, due_lease(l))
end

-- A lease with the newest fence. `l.ks` is its key.
L.lease_add = function(c, l)
  local tag, ks = c.tag, l.ks
  if not ks.many then redis.call('ZADD', tag .. ':lk:' .. ks.t, 0, ks.k) end
  if l.mode == @MODE_EXCLUSIVE@ then
    ks.alone = l
  else
    redis.call('ZADD', tag .. ':lf:' .. ks.tk, l.number, l.holder)
    if not ks.many then
      ks.many, ks.mode, ks.permits = true, l.mode, l.permits
      save_key(c, ks)
    end
  end
  L.lease_save(c, l)
  unit_add(c, ks, l.holder, 'L', l.number, l.mode == @MODE_EXCLUSIVE@)
end

L.lease_remove = function(c, l)
  local tag, ks = c.tag, l.ks
  if l.mode == @MODE_EXCLUSIVE@ then
    ks.alone = nil
  else
    redis.call('HDEL', tag .. ':lh:' .. ks.tk, l.holder)
    redis.call('ZREM', tag .. ':lf:' .. ks.tk, l.holder)
    redis.call('ZREM', tag .. ':lx:' .. ks.tk, l.holder)
    ks.many = redis.call('EXISTS', tag .. ':lf:' .. ks.tk) > 0
  end
  if not ks.many then
    save_key(c, ks)
    redis.call('ZREM', tag .. ':lk:' .. ks.t, ks.k)
  end
  redis.call('ZREM', tag .. ':ldue', due_lease(l))
  unit_remove(c, ks, l.holder, 'L')
  if c.classic then L.classic_clear(c, l) end
end

-- ---- waiters ------------------------------------------------------------------------------------

local function due_waiter(w)
  return 'w' .. ('0'):rep(16 - #w.number) .. w.number .. '\0' .. w.ks.tk .. '\0' .. w.holder
end

-- The fields that it reports itself, and when it is dropped.
L.waiter_save = function(c, w)
  local tag, tk = c.tag, w.ks.tk
  redis.call('HSET', tag .. ':lw:' .. tk, w.holder,
    struct.pack(WAITER, w.mode, w.permits, w.due_ms, w.deadline_ms, w.ttl_ms, w.settle_ms,
      w.since_ms, w.renewed_ms, w.number, w.run,
      w.meta, w.place, w.verdict))
  redis.call('ZADD', tag .. ':ld:' .. tk, w.due_ms, w.holder)
  redis.call('ZADD', tag .. ':ldue', w.due_ms, due_waiter(w))
end

-- A waiter with the newest ticket.
L.waiter_insert = function(c, w)
  local ks, tag = w.ks, c.tag
  L.waiter_save(c, w)
  redis.call('ZADD', tag .. ':lq:' .. ks.tk, w.number, w.holder)
  redis.call('HSET', tag .. ':lt', w.number, ks.tk .. '\0' .. w.holder)
  unit_add(c, ks, w.holder, 'W', w.number)
  if not ks.waiters then
    ks.waiters = true
    save_key(c, ks)
    redis.call('ZADD', tag .. ':lkw:' .. ks.t, 0, ks.k)
  end
end

L.waiter_remove = function(c, w)
  local ks, tag = w.ks, c.tag
  local rows = tag .. ':lw:' .. ks.tk
  redis.call('HDEL', rows, w.holder)
  redis.call('ZREM', tag .. ':lq:' .. ks.tk, w.holder)
  redis.call('ZREM', tag .. ':ld:' .. ks.tk, w.holder)
  redis.call('ZREM', tag .. ':ldue', due_waiter(w))
  redis.call('HDEL', tag .. ':lt', w.number)
  unit_remove(c, ks, w.holder, w.condemned and 'V' or 'W')
  if redis.call('EXISTS', rows) == 0 then
    ks.waiters = false
    save_key(c, ks)
    redis.call('ZREM', tag .. ':lkw:' .. ks.t, ks.k)
  end
end

-- It gets its verdict: it no longer blocks anyone, and only remains to be notified.
L.waiter_condemn = function(c, w, verdict)
  local ks = w.ks
  w.verdict, w.condemned = verdict, true
  L.waiter_save(c, w)
  redis.call('ZREM', c.tag .. ':lq:' .. ks.tk, w.holder)
  unit_remove(c, ks, w.holder, 'W')
  unit_add(c, ks, w.holder, 'V', w.number)
end

L.waiter_of_ticket = function(c, ticket)
  local at = redis.call('HGET', c.tag .. ':lt', ticket)
  if not at then return nil end
  local t, k, holder = at:match('^([^%z]*)%z([^%z]*)%z(.*)$')
  return L.waiter_of(c, L.load(c, t, k), holder)
end

-- ---- what has ended -----------------------------------------------------------------------------

-- How a lease ended, if that still counts: {fence, how, ago_ms}.
L.ended_of = function(c, row)
  if not row then return nil end
  local how, ended_ms, fence = struct.unpack('<Bds', row)
  if c.now - ended_ms >= @ENDED_KEEP_MS@ then return nil end
  return { fence = fence, how = how, ago_ms = c.now - ended_ms }
end

L.ended_find = function(c, tk, holder)
  return L.ended_of(c, redis.call('HGET', c.tag .. ':store', 'e\0' .. tk .. '\0' .. holder))
end

-- Forget up to `limit` of the oldest, if they no longer count or `even_if` they do.
local function forget(c, limit, even_if)
  local store, list = c.tag .. ':store', c.tag .. ':le'
  while limit > 0 do
    local fields = redis.call('LRANGE', list, 0, math.min(limit, CHUNK) - 1)
    if #fields == 0 then return end
    local n = 0
    for i, row in ipairs(redis.call('HMGET', store, unpack(fields))) do
      if row and not even_if and L.ended_of(c, row) then break end
      n = i
    end
    if n == 0 then return end
    redis.call('LTRIM', list, n, -1)
    redis.call('HDEL', store, unpack(fields, 1, n))
    if n < #fields then return end
    limit = limit - n
  end
end

-- field: e\0tk\0holder
L.ended_add = function(c, field, fence, how)
  local list = c.tag .. ':le'
  if redis.call('HSET', c.tag .. ':store', field, struct.pack('<Bds', how, c.now, fence)) == 0 then
    redis.call('LREM', list, 1, field) -- it ended before, and that was not forgotten yet
  end
  if redis.call('RPUSH', list, field) > @ENDED_MAX@ + CHUNK then
    forget(c, CHUNK, true)
  end
end

L.ended_overdue = function(c)
  local first = redis.call('LINDEX', c.tag .. ':le', 0)
  return first and not L.ended_of(c, redis.call('HGET', c.tag .. ':store', first))
end

L.ended_purge = function(c, limit)
  forget(c, limit, false)
end

end
