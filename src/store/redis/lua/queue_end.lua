-- queue_end.lua: what workers and operators do to a job: heartbeat, finish, fail, snooze; cancel,
-- retry, seal; recovery of a dead claim; and parents. The decision tables are in src/core/queue.md;
-- src/core/job.c makes the same decisions for the other engines.
do

local SAY_PROCESSING_TIMEOUT = 'Processing timeout - worker may have crashed'
local SAY_EXECUTION_TIMEOUT = 'Execution timeout - worker may have crashed'
local SAY_CANCELLED = 'cancelled'
local STEP = 50 -- children that one call looks at: some 3 ms

local function has_flag(o, flag)
  return bit.band(o.flags or 0, flag) ~= 0
end

-- ---- parents ------------------------------------------------------------------------------------

-- Work on all children of a parent is done in steps, since there may be any number of them, and all
-- other clients wait meanwhile: the op that starts it does the first step, and sweeps do the
-- others.
--   j.kin   hash: seq of the parent -> what to do, the seq of the last processed child, and the
--           tenant and id of the parent
-- A new task of a parent replaces the previous one: once the parent has ended, there is nothing
-- left to cancel. A repeated cancel continues where the previous one stopped. It is race-free
-- because each step looks at the current rows: a child that has ended since is not live, and one
-- that a worker has claimed since is asked to stop.
local CANCEL, CANCEL_AT_ONCE, KEPT_COMPLETED, KEPT_FAILED = 1, 2, 3, 4
local KIN = '<Bdss'

local function kin_key(c)
  return K(c, 'j.kin')
end

local function kin_later(c, p, task, after)
  redis.call('HSET', kin_key(c), N(p[SEQ]), struct.pack(KIN, task, after, p[TENANT], p[ID]))
end

-- The pending work on its children, and where it continues; nil: none.
function Q.kin_left(c, p)
  local left = redis.call('HGET', kin_key(c), N(p[SEQ]))
  if left then
    return struct.unpack(KIN, left)
  end
end

-- The parent has ended: its children may now be purged, one step of them. Returns what is left to
-- do.
local function unkeep_step(c, p, task, after)
  local class = task == KEPT_COMPLETED and 'c' or 'f'
  local ids, last = Q.children(c, p, class, after, STEP)
  for _, j in ipairs(Q.jobs(c, p[TENANT], ids)) do
    Q.purge_from(c, j, Q.purge_at(Q.of(c, j), j, p[UPDATED]))
  end
  if last then
    return task, last
  elseif task == KEPT_COMPLETED then
    return KEPT_FAILED, 0
  end
end

-- A parent with pending work may not be purged before that is done: it leads to its children.
local function unkeep_children(c, p)
  local task, after = KEPT_COMPLETED, 0
  if redis.call('ZCARD', Q.children_key(c, p)) > STEP then
    Q.purge_from(c, p, nil)
    kin_later(c, p, unkeep_step(c, p, task, after))
    return
  end
  redis.call('HDEL', kin_key(c), N(p[SEQ])) -- a cancel that has nobody left
  while task do
    task, after = unkeep_step(c, p, task, after)
  end
end

-- Ends the parent if its last child has ended and no more can come.
function Q.end_parent(c, p)
  local q = Q.of(c, p)
  -- mutant parent_completed_early: if Q.ended(p) or Q.n_children(c, p, 'l') > 1 then
  if Q.ended(p) or Q.n_children(c, p, 'l') > 0 then
    return
  end
  local n = redis.call('ZCARD', Q.children_key(c, p))
  if p[SEALED] == 0 and not (p[N_CHILDREN] > 0 and n >= p[N_CHILDREN]) then
    return
  end
  local n_failed = Q.n_children(c, p, 'f')
  Q.leave(c, q, p)
  if p[ASKED] == 1 then
    Q.end_as(c, q, p, @JOB_ON_CANCEL@)
  elseif n_failed > 0 then
    p[ERROR] = string.format('%d of %d children failed', n_failed, n)
    Q.end_as(c, q, p, @JOB_ON_DIE@)
  else
    Q.end_as(c, q, p, @JOB_ON_FINISH@)
  end
  Q.enter(c, q, p)
  unkeep_children(c, p)
end

-- The job has changed: if it ended, its parent may end too.
function Q.look(c, j)
  local p = Q.ended(j) and Q.parent(c, j)
  if p then
    Q.end_parent(c, p)
  end
end

-- ---- dead claims --------------------------------------------------------------------------------

-- Recover a job whose claim has expired: it is READY again, or has ended. Returns true if so.
function Q.recover(c, q, j)
  if not Q.expired(c, j) then
    return false
  end
  Q.leave(c, q, j)
  j[LAST] = @LAST_EXPIRED@
  Q.count(c, q, 'recovered', 1)
  if j[ASKED] == 1 then
    Q.end_as(c, q, j, @JOB_ON_CANCEL@) -- the reason stays
  else
    j[ERROR] = Q.optimistic(q) and SAY_EXECUTION_TIMEOUT or SAY_PROCESSING_TIMEOUT
    if j[ATTEMPT] < j[MAX_ATTEMPTS] then
      j[STATE], j[EXPIRES], j[UPDATED] = @JOB_ON_EXPIRE@, 0, c.wall
    else
      Q.end_as(c, q, j, @JOB_ON_DIE@)
    end
  end
  Q.enter(c, q, j)
  Q.look(c, j)
  return true
end

-- The same for one of Q.dead_claims().
function Q.recover_due(c, dead)
  local j = Q.job(c, dead.tenant, dead.id)
  local recovered = Q.recover(c, Q.of(c, j), j)
  Q.due_done(c, dead)
  return recovered
end

-- The job that an op names, recovered if its claim is dead, and its queue. nil: it does not exist.
local function find_named(c, o)
  local j = Q.job(c, o.tenant, o.id)
  if not j then
    return nil
  end
  local q = Q.of(c, j)
  Q.recover(c, q, j)
  return j, q
end

-- ---- ops of the worker that has claimed it ------------------------------------------------------

-- The claimed job of an op by its worker, and its queue; otherwise nil and the reply: it is not
-- running with this token.
local function find_claimed(c, o, data)
  local j, q = find_named(c, o)
  if not j then
    return nil, { status = @STATUS_NOT_FOUND@ }
  end
  local token = tonumber(o.fence)
  -- mutant stale_finish_accepted: if j[STATE] == @JOB_RUNNING@ and j[IS_PARENT] == 0 then
  if j[STATE] == @JOB_RUNNING@ and j[IS_PARENT] == 0 and j[TOKEN] == token then
    return j, q
  end
  if j[TOKEN] == token and j[IS_PARENT] == 0 then
    if o.op == 'job_finish' and j[STATE] == @JOB_COMPLETED@ then
      if Q.result(c, j) == data then
        return nil, Q.answer(c, j, @STATUS_OK@)
      end
      return nil, Q.answer(c, j, @STATUS_MISMATCH@, { say = 'other_result' })
    end
    -- Was this very op already executed?
    if (o.op == 'job_fail' and j[LAST] == @LAST_FAILED@)
      or (o.op == 'snooze' and j[LAST] == @LAST_SNOOZED@) then
      return nil, Q.answer(c, j, @STATUS_OK@)
    end
  end
  Q.count(c, q, 'stale', 1)
  return nil, Q.answer(c, j, @STATUS_STALE@, { say = 'late' })
end

V.heartbeat = function(c, o)
  local j, q, parts = find_claimed(c, o)
  if not j then
    return q, parts
  end
  -- The executing timeout counts from the start, whatever the worker reports meanwhile.
  if not (j[SILENT] == 1 and Q.optimistic(q)) then
    j[LEASE] = o.lease_ms or j[LEASE]
    j[EXPIRES] = c.now + j[LEASE]
    Q.due_at(c, j, j[EXPIRES])
  end
  if o.progress and o.progress >= 0 then
    j[PROGRESS] = o.progress
  end
  j[MESSAGE] = o.text or j[MESSAGE]
  j[UPDATED] = c.wall
  Q.save(c, j)
  wake(c, j[TENANT], j[ID], '#job')
  return Q.answer(c, j, @STATUS_OK@, j[ASKED] == 1 and { flags = @OUT_CANCEL@, detail = j[ERROR] }
    or nil)
end

-- The job was removed from its places and changed: put it back, and check its parent.
local function ended_attempt(c, q, j)
  Q.enter(c, q, j)
  Q.look(c, j)
  return Q.answer(c, j, @STATUS_OK@)
end

V.job_finish = function(c, o, data)
  data = data or ''
  local j, q, parts = find_claimed(c, o, data)
  if not j then
    return q, parts
  end
  Q.leave(c, q, j)
  j[LAST] = @LAST_FINISHED@
  Q.set_result(c, j, data)
  Q.end_as(c, q, j, @JOB_ON_FINISH@)
  return ended_attempt(c, q, j)
end

-- The backoff before the next attempt: doubled each time, with jitter from a hash of id and attempt
-- that is the same on all engines.
local function backoff_ms(q, j)
  local base, max = q.opts.backoff_ms, q.opts.backoff_max_ms
  local h = j[ATTEMPT] % 16777213
  for i = 1, #j[ID] do
    h = (h * 257 + string.byte(j[ID], i)) % 16777213
  end
  for _ = 2, j[ATTEMPT] do
    if base >= max then
      break
    end
    base = base * 2
  end
  return math.max(math.floor(math.min(base, max) * (750 + h % 501) / 1000), 1)
end

local function again_at(c, j, run_at)
  j[STATE], j[EXPIRES], j[RUN_AT], j[UPDATED] = @JOB_ON_AGAIN@, 0, run_at, c.wall
end

V.job_fail = function(c, o)
  local j, q, parts = find_claimed(c, o)
  if not j then
    return q, parts
  end
  Q.leave(c, q, j)
  j[LAST] = @LAST_FAILED@
  Q.count(c, q, 'failed_attempts', 1)
  if j[ASKED] == 1 then
    Q.end_as(c, q, j, @JOB_ON_CANCEL@) -- the reason of the cancel stays
  else
    j[ERROR] = o.text or ''
    if has_flag(o, @FLAG_FAIL_FINAL@) or j[ATTEMPT] >= j[MAX_ATTEMPTS] then
      Q.end_as(c, q, j, @JOB_ON_DIE@)
    else
      again_at(c, j, c.wall + (o.delay_ms or backoff_ms(q, j)))
    end
  end
  return ended_attempt(c, q, j)
end

V.snooze = function(c, o)
  local j, q, parts = find_claimed(c, o)
  if not j then
    return q, parts
  end
  Q.leave(c, q, j)
  j[LAST] = @LAST_SNOOZED@
  Q.count(c, q, 'snoozed', 1)
  if j[ASKED] == 1 then
    Q.end_as(c, q, j, @JOB_ON_CANCEL@)
  else
    j[ATTEMPT] = math.max(j[ATTEMPT] - 1, 0)
    again_at(c, j, c.wall + (o.delay_ms or 0))
  end
  return ended_attempt(c, q, j)
end

-- ---- operators ----------------------------------------------------------------------------------

local function reason_of(o)
  return o.text and o.text ~= '' and o.text or SAY_CANCELLED
end

-- Cancel a live job that is not a parent. Its own parent is not checked.
local function cancel_one(c, q, j, o)
  local now = has_flag(o, @FLAG_CANCEL_NOW@)
  local running, asked = j[STATE] == @JOB_RUNNING@, j[ASKED] == 1
  if running and not now and asked then
    return
  end
  if not asked then
    j[ASKED], j[ERROR] = 1, reason_of(o) -- the first reason stays
  end
  if running and not now then
    j[UPDATED] = c.wall
    Q.save(c, j)
    wake(c, j[TENANT], j[ID], '#job')
    return
  end
  Q.leave(c, q, j)
  if running then
    j[LAST] = @LAST_CANCELLED@
  end
  Q.end_as(c, q, j, @JOB_ON_CANCEL@)
  Q.enter(c, q, j)
end

-- One step of its live children: those that end on the way leave the class, the others lie after
-- the last one.
local function cancel_step(c, p, task, after, reason)
  local o = { flags = task == CANCEL_AT_ONCE and @FLAG_CANCEL_NOW@ or 0, text = reason }
  local ids, last = Q.children(c, p, 'l', after, STEP)
  for _, j in ipairs(Q.jobs(c, p[TENANT], ids)) do
    j[UP] = p
    cancel_one(c, Q.of(c, j), j, o)
  end
  if last then
    kin_later(c, p, task, last)
    return
  end
  redis.call('HDEL', kin_key(c), N(p[SEQ]))
  Q.end_parent(c, p)
end

-- Seal it and cancel its live children; it ends with the last of them.
local function cancel_parent(c, p, o)
  if p[ASKED] == 0 then
    p[ASKED], p[SEALED], p[UPDATED], p[ERROR] = 1, 1, c.wall, reason_of(o)
    Q.save(c, p)
  end
  wake(c, p[TENANT], p[ID], '#job')
  local task = has_flag(o, @FLAG_CANCEL_NOW@) and CANCEL_AT_ONCE or CANCEL
  local begun, after = Q.kin_left(c, p)
  cancel_step(c, p, task, begun == task and after or 0, reason_of(o))
end

-- One step for the children of some parent. False: nothing is left.
function Q.kin_step(c)
  local seq = redis.call('HRANDFIELD', kin_key(c))
  if not seq then
    return false
  end
  local task, after, tenant, id = struct.unpack(KIN, redis.call('HGET', kin_key(c), seq))
  local p = Q.job(c, tenant, id)
  if not p or N(p[SEQ]) ~= seq then
    redis.call('HDEL', kin_key(c), seq)
  elseif task <= CANCEL_AT_ONCE then
    wake_holders(c)
    cancel_step(c, p, task, after, p[ERROR])
  else
    task, after = unkeep_step(c, p, task, after)
    if task then
      kin_later(c, p, task, after)
    else
      redis.call('HDEL', kin_key(c), seq)
      Q.purge_from(c, p, Q.purge_at(Q.of(c, p), p, p[UPDATED]))
    end
  end
  return redis.call('HLEN', kin_key(c)) > 0
end

function Q.has_kin_left(c)
  return redis.call('EXISTS', kin_key(c)) == 1
end

V.job_cancel = function(c, o)
  local j, q = find_named(c, o)
  if not j then
    return { status = @STATUS_NOT_FOUND@ }
  end
  if j[STATE] == @JOB_RUNNING@ then
    wake_holders(c) -- its worker, or those of its children, are told
  end
  if not Q.ended(j) then
    if j[IS_PARENT] == 1 then
      cancel_parent(c, j, o)
    else
      cancel_one(c, q, j, o)
      Q.look(c, j)
    end
  end
  local more = j[IS_PARENT] == 1 and not Q.ended(j) and Q.kin_left(c, j)
  return Q.answer(c, j, @STATUS_OK@, more and { flags = @OUT_MORE@ } or nil)
end

-- Why a job cannot be retried, or nil.
local function refuse_retry(j, state)
  if j[IS_PARENT] == 1 then
    return 'no_retry_parent'
  elseif state == @JOB_RUNNING@ then
    return 'no_retry_running'
  elseif state == @JOB_COMPLETED@ then
    return 'no_retry_completed'
  end
  return nil
end

V.job_retry = function(c, o)
  local j, q = find_named(c, o)
  if not j then
    return { status = @STATUS_NOT_FOUND@ }
  end
  local state = Q.view(c, j)
  local refused = refuse_retry(j, state)
  if refused then
    return Q.answer(c, j, @STATUS_STATE@, { say = refused })
  end
  if Q.ended(j) and j[UNIQUE_KEY] ~= '' then
    local keeper = Q.keeper(c, q, j[UNIQUE_KEY])
    if keeper and keeper[SEQ] ~= j[SEQ] then
      return Q.answer(c, keeper, @STATUS_DUPLICATE@)
    end
  end
  if state ~= @JOB_READY@ then
    Q.leave(c, q, j)
    if state >= @JOB_ENDED@ then
      j[ATTEMPT], j[ASKED] = 0, 0
    end
    j[STATE], j[RUN_AT], j[UPDATED] = @JOB_ON_RETRY@, c.wall, c.wall
    Q.enter(c, q, j)
  end
  return Q.answer(c, j, @STATUS_OK@)
end

V.job_seal = function(c, o)
  local j = find_named(c, o)
  if not j then
    return { status = @STATUS_NOT_FOUND@ }
  end
  if j[IS_PARENT] == 0 then
    return Q.answer(c, j, @STATUS_STATE@, { say = 'not_a_parent' })
  end
  if not Q.ended(j) then
    if j[SEALED] == 0 then
      j[SEALED], j[UPDATED] = 1, c.wall
      Q.save(c, j)
      wake(c, j[TENANT], j[ID], '#job')
    end
    Q.end_parent(c, j)
  end
  return Q.answer(c, j, @STATUS_OK@)
end

end
