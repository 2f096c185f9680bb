-- lock.lua: acquire, renew, release and break. The decision tables are in src/core/README.md. Each
-- op loads its key, expires it, decides and writes inside one function call, which Redis runs
-- alone: what was read is still true when the op acts on it.
--
-- For runs (run is the seq of the run that a lease or waiter belongs to, a string, '0' = none), in
-- addition to the readers in lock_rows.lua:
--   L.expire(c, ks)               end what is overdue on a loaded key, and offer it to waiters
--   L.find(c, t, k, holder)       the lease or waiter of a holder, or nil
--   L.key_offer_next(c, t, k)     offer a key to its waiters, as far as it is free
--   L.lease_end(c, l, how)        end a lease in state `how`, without offering its key
--   L.waiter_leave(c, w)          remove a waiter, without offering its key
--   L.lease_grant(c, o, run)      create a lease; returns its fence
--   L.waiter_add(c, o, run)       add a waiter to the end of the queue; returns its ticket
--   L.enqueued(c, o)              the reply to a request whose waiter is new
--   L.learn(c, o, head)           report the lock order of a new request: before its grant, or
--                                 after it was queued
--   L.refused(c, o)               the reply to a new request that is refused because it ended, or
--                                 by a rank; or nil
--   L.held(c, t, k)               HELD, with the conflicting lease
--   L.acquire_do(c, o, run)       the whole table of acquire; new leases and waiters belong to
--                                 `run`
do

-- ---- what gets along ----------------------------------------------------------------------------

-- For each requested mode, the live modes that conflict with it, as bits: the conflict table of
-- src/core.
local CONFLICTS = {
  [@MODE_EXCLUSIVE@] = @CONFLICTS_EXCLUSIVE@,
  [@MODE_SHARED@] = @CONFLICTS_SHARED@,
  [@MODE_PERMIT@] = @CONFLICTS_PERMIT@,
}

-- Could a lease of this mode join the live ones? 'free', 'conflict' or 'other_n': a semaphore with
-- another N is live. The leases of a key have one mode and N, so one check is enough.
local function conflict(ks, mode, permits)
  if ks.foreign or ks.alone then return 'conflict' end
  if not ks.many then return 'free' end
  if bit.band(CONFLICTS[mode], bit.lshift(1, ks.mode)) ~= 0 then return 'conflict' end
  if mode ~= @MODE_PERMIT@ then return 'free' end
  if ks.permits ~= permits then return 'other_n' end
  return L.count(ks) < permits and 'free' or 'conflict'
end

-- ---- ending and offering to the next ------------------------------------------------------------

-- A lease is remembered, unless it was never confirmed. Its run is notified first, while the lease
-- still exists.
L.lease_end = function(c, l, how)
  if l.run ~= '0' then
    R.run_lost(c, l.run, l.state, how, l.due_ms, L.NEVER, l.reason)
  end
  L.lease_remove(c, l)
  if l.state ~= @LEASE_OFFERED@ or how == @LEASE_RELEASED@ then
    L.ended_add(c, 'e\0' .. l.ks.tk .. '\0' .. l.holder, l.number, how)
  end
end

-- Those behind it may be able to proceed: the caller hands the key to them.
L.waiter_leave = function(c, w)
  if w.run ~= '0' then
    if w.verdict ~= '' then
      R.run_cancelled_cycle(c, w.run, w.verdict)
    else
      R.run_lost(c, w.run, @LEASE_WAITING@, @LEASE_ON_LEAVE@, w.due_ms, w.deadline_ms, '')
    end
  end
  L.waiter_remove(c, w)
end

-- The head waiter's turn has come: it becomes an offered lease, and is woken after the reply.
local function offer(c, w)
  local ks = w.ks
  local l = {
    ks = ks, number = next_fence(c), holder = w.holder, state = @LEASE_ON_OFFER@,
    due_ms = c.now + math.min(w.ttl_ms, @OFFER_MS@), mode = w.mode, permits = w.permits,
    ttl_ms = w.ttl_ms, settle_ms = w.settle_ms, since_ms = c.now, renewed_ms = c.now,
    run = w.run, meta = w.meta, place = w.place, reason = '',
  }
  if w.run ~= '0' then
    R.run_offered(c, w.run, l.number)
  end
  L.waiter_remove(c, w)
  L.lease_add(c, l)
  wake(c, ks.t, ks.k, l.holder)
end

-- First in, first out: no one overtakes. While grants are refused nothing is offered; waiters poll.
L.offer_next = function(c, ks, counts)
  while ks.waiters do
    local w = L.queue_head(c, ks)
    -- mutant grant_without_recheck: if not w or closed(c) then
    if not w or conflict(ks, w.mode, w.permits) ~= 'free' or closed(c) then
      return
    end
    offer(c, w)
    if counts then counts.n_offered = counts.n_offered + 1 end
  end
end

-- An overdue lease ends, or its key settles first, without its run.
local function lease_expire(c, l)
  if l.state == @LEASE_HELD@ then
    -- mutant expiry_not_recorded:
    L.history_expired(c, l)
  end
  if l.state == @LEASE_HELD@ and l.settle_ms > 0 then
    if l.run ~= '0' then
      R.run_lost(c, l.run, @LEASE_HELD@, @LEASE_HELD_ON_EXPIRE@, l.due_ms, L.NEVER, l.reason)
      l.run = '0'
    end
    l.state = @LEASE_ON_SETTLE@
    l.due_ms = l.due_ms + l.settle_ms
    if l.due_ms > c.now then
      L.lease_save(c, l)
      return
    end
  end
  L.lease_end(c, l, l.state == @LEASE_CLOSING@ and @LEASE_CLOSING_ON_EXPIRE@
    or @LEASE_HELD_ON_EXPIRE@)
end

-- End what is overdue, and hand the key to the next waiters if that changed something. Returns how
-- many were overdue.
L.expire = function(c, ks, counts)
  local n_expired, n_dropped, n_runs = 0, 0, 0
  if ks.foreign then L.classic_expire(c, ks) end
  -- mutant expiry_reversed: if ks.many or (ks.alone and ks.alone.due_ms >= c.now) then
  if ks.many or (ks.alone and ks.alone.due_ms <= c.now) then
    for _, l in ipairs(L.due_leases(c, ks)) do
      n_expired = n_expired + 1
      if l.run ~= '0' then n_runs = n_runs + 1 end
      lease_expire(c, l)
    end
  end
  if ks.waiters then
    for _, w in ipairs(L.dead_waiters(c, ks)) do
      n_dropped = n_dropped + 1
      if w.run ~= '0' then n_runs = n_runs + 1 end
      L.waiter_leave(c, w)
    end
  end
  if counts then
    counts.n_expired = counts.n_expired + n_expired
    counts.n_dropped = counts.n_dropped + n_dropped
    counts.n_runs = counts.n_runs + n_runs
  end
  if n_expired + n_dropped > 0 then
    L.offer_next(c, ks, counts)
  end
  return n_expired + n_dropped
end

L.key_offer_next = function(c, t, k)
  L.offer_next(c, L.load(c, t, k))
end

-- ---- answers ------------------------------------------------------------------------------------

-- A lease or waiter in wire format.
L.item = function(h, n_waiters)
  local due = h.due_ms
  if h.state == @LEASE_WAITING@ then
    due = h.deadline_ms ~= L.NEVER and h.deadline_ms or nil
  end
  return {
    holder = h.holder, number = h.number, mode = h.mode, permits = h.permits, state = h.state,
    ttl_ms = h.ttl_ms,
    settle_ms = h.settle_ms, since_ms = h.since_ms, renewed_ms = h.renewed_ms, due_ms = due,
    meta = h.meta, place = h.place,
    reason = h.reason, n_waiters = n_waiters,
  }
end

-- HELD, with the conflicting lease: the oldest (all conflict, or none).
local function answer_held(c, ks)
  local in_the_way = L.lease_page(ks, '0', 1)[1] or ks.foreign
  local head = { status = @STATUS_HELD@, fence = L.newest(ks), now_ms = c.now, wall_ms = c.wall }
  if in_the_way then
    head.items = { L.item(in_the_way, L.live_waiters(c, ks)) }
  end
  return head
end

local function answer_queued(c, w)
  return {
    status = @STATUS_QUEUED@, ticket = w.number, position = L.queue_position(c, w),
    remaining_ms = w.deadline_ms == L.NEVER and -1 or w.deadline_ms - c.now,
  }
end

local function answer_lease(c, l)
  return { status = @STATUS_OK@, fence = l.number, remaining_ms = l.due_ms - c.now }
end

local function answer_ended(ended)
  return { status = @STATUS_LOST@, say = 'lost', ended_fence = ended.fence, ended_how = ended.how,
    ended_ago_ms = ended.ago_ms }
end

-- A run's lease was renewed: report the stop, if one was requested.
local function tell_stop(c, l, head)
  local why = R.run_stop(c, l.run)
  if why then
    head.flags = (head.flags or 0) + @OUT_CANCEL@
    head.detail = why
  end
end

-- ---- acquire ------------------------------------------------------------------------------------

-- The holder already has a lease on the key: it confirms an offer, renews, or requests something
-- else.
local function own_lease(c, o, l)
  if l.mode ~= (o.mode or @MODE_EXCLUSIVE@) or l.permits ~= (o.permits or 0) then
    return { status = @STATUS_MISMATCH@, say = 'other_mode' }
  end
  if l.state == @LEASE_CLOSING@ then
    return { status = @STATUS_LOST@, say = 'closing', reason = l.reason }
  end
  local offered = l.state == @LEASE_OFFERED@
  l.state = @LEASE_ON_CONFIRM@
  l.ttl_ms = o.ttl_ms
  l.renewed_ms = c.now
  l.due_ms = c.now + o.ttl_ms
  L.lease_save(c, l)
  local head = answer_lease(c, l)
  if not offered then head.flags = @OUT_RENEWED@ end
  if l.run ~= '0' then
    if offered then R.run_confirmed(c, l.run, l.number) end
    tell_stop(c, l, head)
  end
  return head
end

local function set_waiter_times(c, w, wait_ms)
  local never = wait_ms < 0 or wait_ms > @WAIT_MS_MAX@
  w.renewed_ms = c.now
  w.deadline_ms = never and L.NEVER or c.now + wait_ms
  w.due_ms = math.min(w.deadline_ms, c.now + @WAITER_DROP_MS@)
end

local function own_wait(c, o, ks, w)
  if w.verdict ~= '' then
    L.waiter_leave(c, w)
    L.offer_next(c, ks)
    return { status = @STATUS_DEADLOCK@, detail = w.verdict }
  end
  if w.mode ~= (o.mode or @MODE_EXCLUSIVE@) or w.permits ~= (o.permits or 0) then
    return { status = @STATUS_MISMATCH@, say = 'waits_in_other_mode' }
  end
  if (o.wait_ms or 0) == 0 then
    local head = answer_held(c, ks)
    L.waiter_leave(c, w)
    L.offer_next(c, ks)
    return head
  end
  set_waiter_times(c, w, o.wait_ms)
  L.waiter_save(c, w)
  return answer_queued(c, w)
end

local function hold_of(c, o, ks, run)
  return {
    ks = ks, holder = o.holder, mode = o.mode or @MODE_EXCLUSIVE@, permits = o.permits or 0,
    ttl_ms = o.ttl_ms, settle_ms = o.settle_ms or 0,
    since_ms = c.now, renewed_ms = c.now, meta = o.meta or '', place = o.place or '', reason = '',
    verdict = '', run = run or '0',
    classic = c.classic and run ~= '0' and o.id or nil, -- the run of a start has no row yet
  }
end

-- unit: what the unit of work has, loaded before.
local function grant(c, o, ks, run, unit)
  local l = hold_of(c, o, ks, run)
  l.state = @LEASE_ON_GRANT@
  l.number = next_fence(c)
  l.due_ms = c.now + l.ttl_ms
  for i = 1, #unit, 2 do
    if unit[i]:byte() == 87 then -- W: it waits elsewhere
      L.unit_entangle(c, ks.t, o.holder)
      break
    end
  end
  L.lease_add(c, l)
  return l
end

local function enqueue(c, o, ks, run)
  local w = hold_of(c, o, ks, run)
  w.state = @LEASE_ON_QUEUE@
  w.number = next_ticket(c)
  set_waiter_times(c, w, o.wait_ms or 0)
  L.waiter_insert(c, w)
  if c.classic then L.classic_queued(c, ks) end
  return w
end

local function learn(c, o, head, unit)
  local holds = #unit > 0 and L.unit_holds(c, o.tenant, unit) or unit
  if #holds > 0 then
    head.holds = holds
    head.order_n = redis.call('HLEN', c.tag .. ':lo')
  end
end

-- The waiter is new. A cycle can close only if its unit of work also holds or waits for something
-- else.
local function enqueued(c, o, w)
  local head = answer_queued(c, w)
  local unit = L.unit(c, o.tenant, o.holder)
  if #unit > 2 then
    -- mutant deadlock_not_searched:
    head.ask = 'search'
    L.unit_entangle(c, o.tenant, o.holder)
  end
  learn(c, o, head, unit)
  return head
end

-- The rank of the key's class, counted from 1; nil if it has none.
local function rank_of(ranks, key)
  local class = key:match('^[^:]*')
  for i, name in ipairs(ranks) do
    if name == class then return i end
  end
  return nil
end

-- Does a declared rank forbid a new request? Then returns the reply, with the first hold that it
-- conflicts with.
local function rank(c, o, unit)
  local asked = o.ranks and #unit > 0 and rank_of(o.ranks, o.key)
  if not asked then return nil end
  for _, hold in ipairs(L.unit_holds(c, o.tenant, unit)) do
    local held = rank_of(o.ranks, hold[1])
    if held and asked < held then
      return { status = @STATUS_ORDER@, against = hold }
    end
  end
  return nil
end

local function acquire_new(c, o, ks, run)
  local mode, permits = o.mode or @MODE_EXCLUSIVE@, o.permits or 0
  local unit = L.unit(c, o.tenant, o.holder)
  local refused = rank(c, o, unit)
  if refused then return refused end
  local verdict = conflict(ks, mode, permits)
  if verdict == 'other_n' then
    return { status = @STATUS_MISMATCH@, say = 'other_permits' }
  end
  if verdict == 'free' and not L.has_queue(c, ks) then
    refused = closed(c)
    if refused then return refused end
    local head = {}
    learn(c, o, head, unit)
    local l = grant(c, o, ks, run, unit)
    head.status, head.fence, head.remaining_ms = @STATUS_OK@, l.number, l.ttl_ms
    return head
  end
  if (o.wait_ms or 0) == 0 then
    return answer_held(c, ks)
  end
  return enqueued(c, o, enqueue(c, o, ks, run))
end

L.acquire_do = function(c, o, run)
  local ks = L.load(c, o.tenant, o.key)
  L.expire(c, ks)
  local own = L.lease_of(ks, o.holder)
  if own then return own_lease(c, o, own) end
  local ended = L.ended_find(c, ks.tk, o.holder)
  if ended then return answer_ended(ended) end
  own = L.waiter_of(c, ks, o.holder)
  if not own then return c.own and full() or acquire_new(c, o, ks, run) end
  -- Nothing was offered while grants were refused, or while the key was held by a classic client,
  -- whose release we are not notified of.
  L.offer_next(c, ks)
  local offered = L.lease_of(ks, o.holder)
  return offered and own_lease(c, o, offered) or own_wait(c, o, ks, own)
end

-- The usual case: the key is free and has no waiters (it has no row), the unit of work has nothing
-- else, and this (key, holder) did not end recently. Then only the grant is left to decide: one
-- call to read, one to write, and the two indexes. Returns the fence, as a number and as text; nil:
-- it is not the usual case.
local function acquire_alone(c, t, k, holder, ttl, settle, meta, place)
  local call, tag = redis.call, c.tag
  local store, tk = tag .. ':store', t .. '\0' .. k
  local key, unit = 'k\0' .. tk, L.unit_field(t, holder)
  local v = call('HMGET', store, key, unit, 'e\0' .. tk .. '\0' .. holder, 'fence', 'server',
    'closed')
  if v[1] or v[2] or (v[3] and L.ended_of(c, v[3])) then return nil end
  c.state = { fence = tonumber(v[4]), server = v[5], closed = tonumber(v[6]) }
  if closed(c) then
    c.state = false -- to be read with the reason
    return nil
  end
  local now, number = c.now, draw_fences(c, 1)
  local fence, due = N(number), now + ttl
  call('HSET', store, 'fence', fence, unit, key,
    key, struct.pack(L.LEASE, 0, @LEASE_ON_GRANT@, @MODE_EXCLUSIVE@, 0, due, ttl, settle, now, now,
      holder, fence,
      '0', meta, place, '', ''))
  call('ZADD', tag .. ':ldue', N(due), key)
  call('ZADD', tag .. ':lk:' .. t, '0', k)
  return number, fence
end

V.acquire = function(c, o)
  if not o.mode and not c.classic and not c.own then
    local _, fence = acquire_alone(c, o.tenant, o.key, o.holder, o.ttl_ms, o.settle_ms or 0,
      o.meta or '', o.place or '')
    if fence then
      return '{"status":@STATUS_OK@,"fence":"' .. fence .. '","remaining_ms":' .. o.ttl_ms .. '}'
    end
  end
  return L.acquire_do(c, o, '0')
end

-- The packed form: exclusive, without ranks. The reply is the fence, and a TTL has begun; or that
-- of the other form.
P.acquire = function(c, request)
  local ttl, settle, wait, t, k, holder, meta, place = struct.unpack('<dddsssss', request, 2)
  -- mutant tenant_ignored: t = 'default' local number = not c.classic and not c.own
  local number = not c.classic and not c.own
    and acquire_alone(c, t, k, holder, ttl, settle, meta, place)
  if number then return number end
  return L.acquire_do(c, {
    op = 'acquire', tenant = t, key = k, holder = holder, ttl_ms = ttl, settle_ms = settle,
    wait_ms = wait, meta = meta, place = place,
  }, '0')
end

-- ---- seams with runs ----------------------------------------------------------------------------

L.find = function(c, t, k, holder)
  local ks = L.load(c, t, k)
  return L.lease_of(ks, holder) or L.waiter_of(c, ks, holder)
end

-- Whatever is there.
L.lease_grant = function(c, o, run)
  return grant(c, o, L.load(c, o.tenant, o.key), run, L.unit(c, o.tenant, o.holder)).number
end

L.waiter_add = function(c, o, run)
  return enqueue(c, o, L.load(c, o.tenant, o.key), run).number
end

L.learn = function(c, o, head)
  learn(c, o, head, L.unit(c, o.tenant, o.holder))
end

-- Its turn may have come already.
L.enqueued = function(c, o)
  local h = L.find(c, o.tenant, o.key, o.holder)
  if h.state == @LEASE_WAITING@ then return enqueued(c, o, h) end
  local head = {}
  L.learn(c, o, head)
  for name, value in pairs(own_lease(c, o, h)) do head[name] = value end
  return head
end

L.refused = function(c, o)
  local ended = L.ended_find(c, o.tenant .. '\0' .. o.key, o.holder)
  if ended then return answer_ended(ended) end
  return rank(c, o, L.unit(c, o.tenant, o.holder))
end

L.held = function(c, t, k)
  return answer_held(c, L.load(c, t, k))
end

-- ---- renew, release, break ----------------------------------------------------------------------

-- renew and release of a lease that is not (or no longer) held by this holder with this fence.
local function answer_not_current(c, o, ks, own)
  local ended = L.ended_find(c, ks.tk, o.holder)
  local head
  if own then
    head = { status = @STATUS_STALE@, say = 'other_fence' }
  elseif ended and o.op == 'release' and ended.how == @LEASE_RELEASED@
    and tonumber(ended.fence) == tonumber(o.fence) then
    head = { status = @STATUS_OK@ }
  elseif ended then
    head = answer_ended(ended)
  elseif L.newest(ks) then
    return answer_held(c, ks)
  else
    head = { status = @STATUS_NOT_HELD@ }
  end
  head.fence = L.newest(ks)
  return head
end

-- The lease that a renew or release names, after L.expire() of its key; if it is not current, nil
-- and the holder's own.
local function find_current(o, ks)
  local l = L.lease_of(ks, o.holder)
  local current = l and tonumber(l.number) == tonumber(o.fence)
  -- mutant release_without_compare: if current or o.op == 'release' then return l or ks.alone end
  if current then return l end
  return nil, l
end

V.renew = function(c, o)
  local ks = L.load(c, o.tenant, o.key)
  L.expire(c, ks)
  local l, own = find_current(o, ks)
  if not l then return answer_not_current(c, o, ks, own) end
  if l.state == @LEASE_OFFERED@ then
    return { status = @STATUS_LOST@, say = 'unconfirmed', fence = L.newest(ks) }
  end
  if l.state == @LEASE_CLOSING@ then
    return { status = @STATUS_LOST@, say = 'closing', reason = l.reason, fence = L.newest(ks) }
  end
  l.ttl_ms = o.ttl_ms or l.ttl_ms
  l.renewed_ms = c.now
  l.due_ms = c.now + l.ttl_ms
  L.lease_save(c, l)
  local head = answer_lease(c, l)
  if l.run ~= '0' then tell_stop(c, l, head) end
  return head
end

-- The usual case, as in an acquire: the key has one lease, exclusive, HELD, current and of no run,
-- the unit of work nothing else, and there are no waiters. Returns true if so.
local function release_alone(c, t, k, holder, number)
  local call, tag = redis.call, c.tag
  local store, tk = tag .. ':store', t .. '\0' .. k
  local key, unit = 'k\0' .. tk, L.unit_field(t, holder)
  local v = call('HMGET', store, key, unit)
  -- flags: it has waiters, or is not exclusive
  if v[2] ~= key or not v[1] or v[1]:byte() ~= 0 then return false end
  local state, due, of, fence, run =
    struct.unpack('<xBxxxxxdxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxsss', v[1])
  if of ~= holder or tonumber(fence) ~= number or state ~= @LEASE_HELD@ or due <= c.now
    or run ~= '0' then
    return false
  end
  call('HDEL', store, key, unit)
  call('ZREM', tag .. ':ldue', key)
  call('ZREM', tag .. ':lk:' .. t, k)
  L.ended_add(c, 'e\0' .. tk .. '\0' .. holder, fence, @LEASE_ON_RELEASE@)
  return true
end

local function release(c, o)
  local ks = L.load(c, o.tenant, o.key)
  L.expire(c, ks)
  local l, own = find_current(o, ks)
  if not l then return answer_not_current(c, o, ks, own) end
  L.lease_end(c, l, @LEASE_ON_RELEASE@)
  L.offer_next(c, ks)
  return { status = @STATUS_OK@, fence = L.newest(ks) }
end

V.release = function(c, o)
  if not c.classic and release_alone(c, o.tenant, o.key, o.holder, o.fence) then
    return '{"status":@STATUS_OK@}'
  end
  return release(c, o)
end

-- The packed form. The reply is 0, since no other fence is left; or that of the other form.
P.release = function(c, request)
  local fence, t, k, holder = struct.unpack('<dsss', request, 2)
  if not c.classic and release_alone(c, t, k, holder, fence) then return 0 end
  return release(c, { op = 'release', tenant = t, key = k, holder = holder, fence = fence })
end

local function break_lease(c, o, ks, l)
  local now = (o.flags or 0) % 2 == @FLAG_BREAK_NOW@
  local head = { status = @STATUS_OK@, items = { L.item(l, L.live_waiters(c, ks)) }, now_ms = c.now,
    wall_ms = c.wall }
  wake_holders(c) -- the holder is told
  if l.state == @LEASE_HELD@ then L.history_broken(c, l, o) end
  l.reason = o.reason or ''
  if now or l.state == @LEASE_OFFERED@ then
    L.lease_end(c, l, @LEASE_ON_BREAK_NOW@)
    L.offer_next(c, ks)
  else
    l.state = @LEASE_HELD_ON_BREAK@
    L.lease_save(c, l)
    if l.run ~= '0' then R.run_broken(c, l.run, l.reason) end
  end
  head.fence = L.newest(ks)
  return head
end

V['break'] = function(c, o)
  local ks = L.load(c, o.tenant, o.key)
  L.expire(c, ks)
  if not o.fence then return L.classic_break(c, o, ks) end
  local l = L.lease_of_fence(ks, o.fence)
  if l then return break_lease(c, o, ks, l) end
  local newest = L.newest(ks)
  return { status = newest and @STATUS_STALE@ or @STATUS_NOT_HELD@, fence = newest }
end

end
