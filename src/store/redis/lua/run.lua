-- run.lua: runs: start, stage, finish, cancel; and what locks report about their runs. The rules
-- are in src/core/runs.md; the rows are in run_rows.lua.
--
-- Every request is one function call, which Redis runs alone: what was read is still true when the
-- op acts on it. An op decides first and writes afterwards.
do

local call, read, find, set, changed = R.call, R.read, R.find, R.set, R.changed
local list_as, unlist, hold_of, in_the_way = R.list_as, R.unlist, R.hold_of, R.in_the_way
local beside, told, log_append, log_part = R.beside, R.told, R.log_append, R.log_part

local function flagged(o, flag)
  return bit.band(o.flags or 0, flag) ~= 0
end

-- ---- single changes -----------------------------------------------------------------------------

-- The targets of the edges of a run; a finish names its own.
local ENDS_AS = {
  cancel = @RUN_ON_CANCEL@, replace = @RUN_ON_REPLACE@, deadline = @RUN_ON_DEADLINE@,
  leave = @RUN_ON_LEAVE@, cycle = @RUN_ON_CYCLE@, silent = @RUN_ON_SILENT@,
  release = @RUN_ON_RELEASE@, ['break'] = @RUN_ON_BREAK@,
  -- mutant orphaned_run_completed: expire = @RUN_ON_COMPLETE@,
  expire = @RUN_ON_EXPIRE@,
}

-- Why it ended. The messages are those of core/run.c.
local function error_of(r, event, what, state)
  local cancelled = r.cancelled == '1'
  if event == 'expire' then
    return cancelled and r.error .. ' (worker may have crashed)'
      or 'lease expired - worker may have crashed'
  elseif event == 'silent' then
    return 'did not take its turn - worker may have crashed'
  elseif event == 'deadline' then
    return 'timed out while waiting'
  elseif event == 'leave' then
    return 'its holder stopped waiting'
  elseif event == 'break' then
    return 'broken: ' .. (what or '')
  elseif event == 'replace' then
    return 'replaced by run ' .. what
  elseif event == 'release' then
    return cancelled and r.error or 'its lease was released before it was finished'
  end
  return cancelled and state == @RUN_CANCELLED@ and r.error or what or ''
end

-- End a run; the caller ends its lease or waiter, which still exists. `what` depends on the event:
-- the reason of a cancel or break, the cycle, the error of a finish, the id of the run that
-- replaces it. The last ttl is that of its lease.
local function end_run(c, r, event, what, finish_as)
  local h = hold_of(c, r)
  local state = finish_as or ENDS_AS[event]
  -- it was asked to stop
  if state == @RUN_FAILED@ and r.cancelled == '1' then state = @RUN_CANCELLED@ end
  local changes = {
    state = N(state), error = error_of(r, event, what, state), finished = finish_as and '1' or '0',
    ended_ms = N(c.wall),
    updated_ms = N(c.wall), ttl_ms = h and N(h.ttl_ms) or r.ttl_ms, log_bytes = r.log_bytes,
  }
  if r.state == @RUN_PENDING@ then
    changes.fence = '0'
    call('ZREM', K(c, 'rp', r.tenant, r.key), r.seq)
  else
    call('DEL', K(c, 'rr', r.tenant, r.key))
  end
  unlist(c, r, 'live')
  set(c, r, changes)
  r.state = state
  list_as(c, r, N(state))
  call('ZADD', K(c, 'rd'), N(c.wall + tonumber(r.keep_ms)),
    string.format('%016.0f', tonumber(r.seq)))
  changed(c, r)
end

-- Ask a running run to stop. The first reason stays. The holder learns it when it renews, which the
-- wake-up makes it do now.
local function ask_stop(c, r, reason)
  if r.cancelled == '1' then return end
  set(c, r, { cancelled = '1', error = reason, updated_ms = N(c.wall) })
  wake_holders(c)
  changed(c, r)
end

-- End the waiter or offer of a pending run that ends in this op. An unconfirmed offer is not
-- remembered. The caller hands the key to the next waiter.
local function leave(c, r, h)
  if not h then return end -- a slot
  h.run = '0'
  wake(c, r.tenant, r.key, h.holder)
  if h.state == @LEASE_WAITING@ then
    L.waiter_leave(c, h)
  else
    L.lease_end(c, h, @LEASE_ON_BREAK_NOW@)
  end
end

-- A pending run ends in this op, and its waiter or offer with it.
local function drop_pending(c, r, event, what)
  local h = hold_of(c, r)
  end_run(c, r, event, what)
  leave(c, r, h)
end

-- ---- stage, finish, cancel ----------------------------------------------------------------------

-- Expire a key: the first step of every op that changes its runs. Returns the loaded key.
local function expire_key(c, tenant, key)
  local ks = L.load(c, tenant, key)
  L.expire(c, ks)
  c.expired = K(c, 'rp', tenant, key)
  return ks
end

-- The run that an op names, after ending what was overdue on its key.
local function current_run(c, o)
  local r = find(c, o.tenant, o.id)
  if not r then return nil end
  expire_key(c, o.tenant, r.key)
  return read(c, r.seq) -- it may have ended just now
end

-- Is it a stage or finish by the run's own holder, and which part of its log is new? Otherwise nil,
-- and the reply.
local function may_write(c, o, data, r)
  if not r then
    return nil, { status = @STATUS_NOT_FOUND@ }
  -- mutant run_fence_ignored: elseif r.state ~= @RUN_RUNNING@ then
  elseif r.state ~= @RUN_RUNNING@ or tonumber(r.fence) ~= o.fence or r.holder ~= o.holder then
    local head = told(c, @STATUS_STALE@, r)
    head.say, head.finished = 'run_not_current', r.finished
    return nil, head
  end
  local part = log_part(o, data or '', r)
  if part then return part end
  local head = told(c, @STATUS_STATE@, r)
  head.say = 'run_gap'
  return nil, head
end

V.run_stage = function(c, o, data)
  local r = current_run(c, o)
  local part, refusal = may_write(c, o, data, r)
  if not part then return refusal end
  set(c, r, {
    stage = o.stage or r.stage, progress = o.progress >= 0 and N(o.progress) or r.progress,
    log_bytes = log_append(c, r, part),
    updated_ms = N(c.wall),
  })
  changed(c, r)
  local head = told(c, @STATUS_OK@, r)
  if r.cancelled == '1' then head.flags, head.detail = @OUT_CANCEL@, r.error end
  return head
end

V.run_finish = function(c, o, data)
  local r = current_run(c, o)
  local part, refusal = may_write(c, o, data, r)
  if not part then return refusal end
  local h = hold_of(c, r)
  r.log_bytes = log_append(c, r, part)
  end_run(c, r, 'finish', o.error, o.state)
  if h then
    h.run = '0' -- it has ended already
    L.lease_end(c, h, @LEASE_ON_RELEASE@)
    L.key_offer_next(c, r.tenant, r.key)
  end
  return told(c, @STATUS_OK@, r)
end

V.run_cancel = function(c, o)
  local r = current_run(c, o)
  if not r then return { status = @STATUS_NOT_FOUND@ } end
  if r.state == @RUN_RUNNING@ then
    ask_stop(c, r, o.error)
  elseif r.state == @RUN_PENDING@ then
    drop_pending(c, r, 'cancel', o.error)
    L.key_offer_next(c, r.tenant, r.key)
  end
  return told(c, @STATUS_OK@, r)
end

-- ---- what the locks tell ------------------------------------------------------------------------
-- `run` is the seq of the run of a lease or waiter; a run that has ended is not changed again.

local function live(c, run)
  local r = read(c, run)
  return r and r.state < @RUN_ENDED@ and r or nil
end

-- Its lease or waiter, which still exists, ends, and so does the run. was: its state; how:
-- RELEASED, EXPIRED, BROKEN. For a waiter the first event counts, not the latest by the time
-- someone looks.
R.run_lost = function(c, run, was, how, due_ms, deadline_ms, reason)
  local r = live(c, run)
  if not r then return end
  local event
  if was == @LEASE_WAITING@ then
    event = c.now < due_ms and 'leave' or due_ms >= deadline_ms and 'deadline' or 'silent'
  elseif how == @LEASE_RELEASED@ then
    event = 'release'
  elseif how == @LEASE_BROKEN@ then
    event = 'break'
  else
    event = was == @LEASE_OFFERED@ and 'silent' or 'expire'
  end
  end_run(c, r, event, reason)
end

-- Its waiter has become an offered lease.
R.run_offered = function(c, run, fence)
  call('HSET', K(c, 'r', run), 'fence', fence)
end

-- It is RUNNING.
local function begin(c, r, fence)
  set(c, r, {
    state = N(@RUN_ON_START@), holder = r.holder, fence = fence, ttl_ms = r.ttl_ms,
    started_ms = N(c.wall), updated_ms = N(c.wall),
  })
  r.state = @RUN_ON_START@
  call('ZREM', K(c, 'rp', r.tenant, r.key), r.seq)
  call('SET', K(c, 'rr', r.tenant, r.key), r.seq)
  changed(c, r)
end

-- Its offer was confirmed.
R.run_confirmed = function(c, run, fence)
  local r = live(c, run)
  if r and r.state == @RUN_PENDING@ then begin(c, r, fence) end
end

-- Why it should stop, if a stop was requested.
R.run_stop = function(c, run)
  local v = call('HMGET', K(c, 'r', run), 'cancelled', 'error')
  return v[1] == '1' and v[2] or nil
end

-- Its lease will be broken: it should stop.
R.run_broken = function(c, run, reason)
  local r = live(c, run)
  if r then ask_stop(c, r, 'broken: ' .. (reason or '')) end
end

-- Its waiter, which the caller removes, was cancelled to break a cycle of holders.
R.run_cancelled_cycle = function(c, run, verdict)
  local r = live(c, run)
  if r then end_run(c, r, 'cycle', verdict) end
end

R.run_id = function(c, run)
  return call('HGET', K(c, 'r', run), 'id')
end

-- ---- start --------------------------------------------------------------------------------------

-- The acquire inside a start.
local function lock_op(o, meta)
  return {
    op = 'acquire', tenant = o.tenant, key = o.key, holder = o.holder, ttl_ms = o.ttl_ms,
    wait_ms = o.wait_ms,
    settle_ms = o.settle_ms, meta = meta, place = o.place, ranks = o.ranks, id = o.id,
  }
end

-- A run takes the key, which is free.
local function grant(c, lock, seq)
  local head = {}
  L.learn(c, lock, head)
  head.status, head.fence, head.remaining_ms = @STATUS_OK@, L.lease_grant(c, lock, seq), lock.ttl_ms
  return head
end

-- HELD, with the conflicting lease, if any, and the run, if given.
local function answer_held(c, o, r)
  local head = L.held(c, o.tenant, o.key)
  return r and beside(c, head, r) or head
end

-- Does the key have no holders and no waiters?
local function is_free(c, ks)
  return not L.newest(ks) and not ks.foreign and not L.has_queue(c, ks)
end

-- May this holder request the key for a run? nil, or why not.
local function unwanted(c, o, ks)
  local own = L.lease_of(ks, o.holder) or L.waiter_of(c, ks, o.holder)
  if own and own.state == @LEASE_CLOSING@ then
    return { status = @STATUS_LOST@, say = 'closing', reason = own.reason }
  elseif own and own.state ~= @LEASE_WAITING@ then
    return { status = @STATUS_MISMATCH@, say = 'has_otherwise' }
  end
  local refusal = L.refused(c, o)
  if own and not (refusal and refusal.status == @STATUS_LOST@) then
    return { status = @STATUS_MISMATCH@, say = 'waits_otherwise' }
  end
  return refusal
end

-- A caller wants to execute a slot: it becomes RUNNING, if nothing is in its way.
local function start_slot(c, o, r, ks)
  local refusal = unwanted(c, o, ks)
  if refusal then return refusal end
  local free, other = is_free(c, ks), in_the_way(c, o.tenant, o.key)
  local first = other.seq == r.seq
  if not free or not first then
    local head = answer_held(c, o, not first and other or nil)
    if free then head.say = 'older_pending' end
    return head
  end
  refusal = closed(c)
  if refusal then return refusal end -- nothing is granted now
  local head = grant(c, lock_op(o, r.meta), r.seq)
  r.holder, r.ttl_ms = o.holder, N(o.ttl_ms)
  begin(c, r, head.fence)
  return beside(c, head, r)
end

-- The holder repeats the start of a run that it executes or waits for: a repeated acquire.
local function start_again(c, o, r)
  local head = L.acquire_do(c, lock_op(o, o.meta), r.seq)
  if head.status == @STATUS_LOST@ then head.fence = r.fence end
  return beside(c, head, read(c, r.seq))
end

local function start_known(c, o, r, ks)
  local slot, is_slot = flagged(o, @FLAG_RUN_SLOT@), r.state == @RUN_PENDING@ and r.holder == ''
  if r.state >= @RUN_ENDED@ then
    local head = told(c, @STATUS_STATE@, r)
    head.say = 'run_refuse'
    return head
  elseif is_slot and slot then
    local head = told(c, @STATUS_OK@, r)
    head.flags = @OUT_RENEWED@
    return head
  elseif is_slot then
    return c.own and full() or start_slot(c, o, r, ks)
  elseif slot or r.holder ~= o.holder then
    return told(c, @STATUS_DUPLICATE@, r)
  end
  return start_again(c, o, r)
end

local function add(c, o, seq, state, holder, fence)
  local r = { seq = seq }
  set(c, r, {
    tenant = o.tenant, id = o.id, key = o.key, holder = holder, fence = fence, state = N(state),
    cancelled = '0', finished = '0',
    error = '', trigger = o.trigger or '', by = o.by or '', meta = o.meta or '', stage = '',
    progress = '-1', n_joined = '0',
    log_bytes = '0', ttl_ms = N(o.ttl_ms), keep_ms = N(o.keep_ms), created_ms = N(c.wall),
    started_ms = state == @RUN_RUNNING@ and N(c.wall) or '0', ended_ms = '0',
    updated_ms = N(c.wall),
  })
  r.state = state
  call('HSET', K(c, 'ri', o.tenant), o.id, seq)
  call('ZADD', K(c, 'rn', o.tenant), 0, o.key)
  call('ZADD', K(c, 'rc', o.tenant, R.class_of(o.key)), N(c.wall), seq)
  list_as(c, r, 'live')
  if state == @RUN_RUNNING@ then
    call('SET', K(c, 'rr', o.tenant, o.key), seq)
  else
    call('ZADD', K(c, 'rp', o.tenant, o.key), seq, seq)
  end
  changed(c, r)
  return r
end

-- The new run replaces the pending ones of the key, which end, oldest first, and asks the running
-- one to stop; then the key goes to the next waiter.
local function replace(c, o, seq)
  if o.policy < @POLICY_REPLACE_PENDING@ then return end
  local running = call('GET', K(c, 'rr', o.tenant, o.key))
  if o.policy == @POLICY_CANCEL_RUNNING@ and running and running ~= seq then
    ask_stop(c, read(c, running), 'replaced by run ' .. o.id)
  end
  for _, other in ipairs(call('ZRANGE', K(c, 'rp', o.tenant, o.key), 0, -1)) do
    if other ~= seq then drop_pending(c, read(c, other), 'replace', o.id) end
  end
  L.key_offer_next(c, o.tenant, o.key)
end

-- The new run takes the key or queues for it; then the runs that it replaces end, and its turn may
-- have come already.
local function place(c, o, ks)
  local lock = lock_op(o, o.meta)
  if is_free(c, ks) then
    local refusal = closed(c)
    if refusal then return refusal end -- nothing is granted now
    local seq = next_ticket(c)
    local head = grant(c, lock, seq)
    local r = add(c, o, seq, @RUN_ON_START@, o.holder, head.fence)
    replace(c, o, seq)
    return beside(c, head, r)
  end
  local seq = next_ticket(c)
  L.waiter_add(c, lock, seq)
  add(c, o, seq, @RUN_ON_QUEUE@, o.holder, '0')
  replace(c, o, seq)
  local head = L.enqueued(c, lock)
  return beside(c, head, read(c, seq))
end

local function begin_new(c, o, ks)
  if not flagged(o, @FLAG_RUN_SLOT@) then return place(c, o, ks) end
  local r = add(c, o, next_ticket(c), @RUN_ON_QUEUE@, '', '0')
  replace(c, o, r.seq)
  return beside(c, { status = @STATUS_OK@ }, r)
end

-- A new run, unless a limit of the tenant is reached.
local function begin_limited(c, o, ks)
  local replaced = o.policy == @POLICY_CANCEL_RUNNING@ and @RUN_RUNNING@
    or o.policy == @POLICY_REPLACE_PENDING@ and @RUN_PENDING@ or @RUN_NONE@
  -- mutant run_limit_ignored: if o.live_max == 0 then
  if o.live_max and R.reaches_live(c, o, o.live_max, replaced) then
    return { status = @STATUS_LIMIT@, say = 'run_live_limit' }
  elseif o.day_max and R.reaches_day(c, o, o.day_max) then
    return { status = @STATUS_LIMIT@, say = 'run_day_limit' }
  end
  return begin_new(c, o, ks)
end

local function start_new(c, o, ks)
  local other = in_the_way(c, o.tenant, o.key)
  if not other then
    if (o.policy >= @POLICY_QUEUE@ and not flagged(o, @FLAG_RUN_SLOT@)) or is_free(c, ks) then
      return begin_limited(c, o, ks)
    end
    return answer_held(c, o)
  elseif o.policy == @POLICY_JOIN@ then
    set(c, other, { n_joined = N(tonumber(other.n_joined) + 1) })
    return told(c, @STATUS_DUPLICATE@, other)
  elseif o.policy == @POLICY_SKIP@ then
    local head = told(c, @STATUS_DUPLICATE@, other)
    head.flags = @OUT_SKIPPED@
    return head
  elseif o.policy == @POLICY_REJECT@ then
    return answer_held(c, o, other)
  elseif o.policy == @POLICY_QUEUE@ then
    local n = call('ZCARD', K(c, 'rp', o.tenant, o.key))
    if n >= o.queue_max then return { status = @STATUS_LIMIT@, say = 'run_limit', n = n } end
  end
  return begin_limited(c, o, ks)
end

V.run_start = function(c, o)
  local r = find(c, o.tenant, o.id)
  o.policy = o.policy or @POLICY_JOIN@
  if r and r.key ~= o.key then
    local head = told(c, @STATUS_MISMATCH@, r)
    head.say = 'run_other_key'
    return head
  end
  local ks = expire_key(c, o.tenant, o.key)
  if r then return start_known(c, o, read(c, r.seq), ks) end -- it may have ended just now
  local refusal = not flagged(o, @FLAG_RUN_SLOT@) and unwanted(c, o, ks) -- a slot takes nothing
  refusal = refusal or c.own and full() or R.too_often(c, o)
  if refusal then return refusal end
  local head = start_new(c, o, ks)
  if head.status ~= @STATUS_LIMIT@ then R.count_start(c, o) end -- refused by another limit
  return head
end
end
