-- queue_end.lua: what workers and operators do to a job: heartbeat, finish, fail, snooze; cancel, retry, seal; what becomes of a
-- dead claim; and parents. The tables are in src/core/queue.md, the same decisions for the other engines in src/core/job.c.
do

local OK, STALE, MISMATCH, DUPLICATE, NOT_FOUND, WRONG_STATE = S.OK, S.STALE, S.MISMATCH, S.DUPLICATE, S.NOT_FOUND, S.STATE
local SCHEDULED, READY, RUNNING, COMPLETED, FAILED, CANCELLED = 1, 2, 3, 4, 5, 6
-- How the last attempt ended: enum il__job_last.
local LAST_FINISHED, LAST_FAILED, LAST_SNOOZED, LAST_EXPIRED, LAST_CANCELLED = 1, 2, 3, 4, 5
local FAIL_DEAD, CANCEL_NOW = 16, 32 -- of the op's flags
local FLAG_CANCEL = 8 -- of the head's
local SAY_PROCESSING_TIMEOUT = 'Processing timeout - worker may have crashed'
local SAY_EXECUTION_TIMEOUT = 'Execution timeout - worker may have crashed'
local SAY_CANCELLED = 'cancelled'
local PAGE = 500 -- children that are looked at in one go

local function has_flag(o, flag)
  return bit.band(o.flags or 0, flag) ~= 0
end

-- ---- parents -------------------------------------------------------------------------------------------------------------

-- The parent has ended: from now on its children may be purged.
local function unkeep_children(c, p)
  for _, class in ipairs({ 'c', 'f' }) do
    local ids, last
    repeat
      ids, last = Q.children(c, p, class, last, PAGE)
      for _, j in ipairs(Q.jobs(c, p[TENANT], ids)) do
        Q.purge_from(c, j, Q.purge_at(c, Q.of(c, j), j))
      end
    until #ids < PAGE
  end
end

-- Ends the parent if its last child has ended and no more can come.
function Q.settle(c, p)
  local q = Q.of(c, p)
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
    Q.end_as(c, q, p, CANCELLED)
  elseif n_failed > 0 then
    p[ERROR] = string.format('%d of %d children failed', n_failed, n)
    Q.end_as(c, q, p, FAILED)
  else
    Q.end_as(c, q, p, COMPLETED)
  end
  Q.enter(c, q, p)
  unkeep_children(c, p)
end

-- The job has changed: if it ended, its parent may end too.
function Q.look(c, j)
  local p = Q.ended(j) and Q.parent(c, j)
  if p then
    Q.settle(c, p)
  end
end

-- ---- dead claims ---------------------------------------------------------------------------------------------------------------

-- A job whose claim has run out is READY again, or has ended. True if it was so.
function Q.recover(c, q, j)
  if not Q.expired(c, j) then
    return false
  end
  Q.leave(c, q, j)
  j[LAST] = LAST_EXPIRED
  Q.count(c, q, 'recovered', 1)
  if j[ASKED] == 1 then
    Q.end_as(c, q, j, CANCELLED) -- the reason stays
  else
    j[ERROR] = Q.optimistic(q) and SAY_EXECUTION_TIMEOUT or SAY_PROCESSING_TIMEOUT
    if j[ATTEMPT] < j[MAX_ATTEMPTS] then
      j[STATE], j[EXPIRES], j[UPDATED] = READY, 0, c.wall
    else
      Q.end_as(c, q, j, FAILED)
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

-- The job that an op names, recovered if its claim is dead, and its queue. nil: there is none.
local function find_named(c, o)
  local j = Q.job(c, o.tenant, o.id)
  if not j then
    return nil
  end
  local q = Q.of(c, j)
  Q.recover(c, q, j)
  return j, q
end

-- ---- ops of the worker that has claimed it -----------------------------------------------------------------------------------------

-- The claimed job of an op of its worker, and its queue; else nil and the answer: it is not running with this token.
local function find_claimed(c, o, data)
  local j, q = find_named(c, o)
  if not j then
    return nil, { status = NOT_FOUND }
  end
  local token = tonumber(o.fence)
  if j[STATE] == RUNNING and j[IS_PARENT] == 0 and j[TOKEN] == token then
    return j, q
  end
  if j[TOKEN] == token and j[IS_PARENT] == 0 then
    if o.op == 'job_finish' and j[STATE] == COMPLETED then
      if Q.result(c, j) == data then
        return nil, Q.answer(c, j, OK)
      end
      return nil, Q.answer(c, j, MISMATCH, { say = 'other_result' })
    end
    -- Was this very op carried out already?
    if (o.op == 'job_fail' and j[LAST] == LAST_FAILED) or (o.op == 'snooze' and j[LAST] == LAST_SNOOZED) then
      return nil, Q.answer(c, j, OK)
    end
  end
  Q.count(c, q, 'stale', 1)
  return nil, Q.answer(c, j, STALE, { say = 'late' })
end

V.heartbeat = function(c, o)
  local j, q, parts = find_claimed(c, o)
  if not j then
    return q, parts
  end
  -- The executing timeout counts from the start, whatever the worker says meanwhile.
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
  return Q.answer(c, j, OK, j[ASKED] == 1 and { flags = FLAG_CANCEL, detail = j[ERROR] } or nil)
end

-- The job has left its places and was changed: put it back, and look at its parent.
local function ended_attempt(c, q, j)
  Q.enter(c, q, j)
  Q.look(c, j)
  return Q.answer(c, j, OK)
end

V.job_finish = function(c, o, data)
  data = data or ''
  local j, q, parts = find_claimed(c, o, data)
  if not j then
    return q, parts
  end
  Q.leave(c, q, j)
  j[LAST] = LAST_FINISHED
  Q.set_result(c, j, data)
  Q.end_as(c, q, j, COMPLETED)
  return ended_attempt(c, q, j)
end

-- Before the attempt after this one: doubled each time, spread by a hash of id and attempt that every engine computes alike.
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
  j[STATE], j[EXPIRES], j[RUN_AT], j[UPDATED] = SCHEDULED, 0, run_at, c.wall
end

V.job_fail = function(c, o)
  local j, q, parts = find_claimed(c, o)
  if not j then
    return q, parts
  end
  Q.leave(c, q, j)
  j[LAST] = LAST_FAILED
  Q.count(c, q, 'failed', 1)
  if j[ASKED] == 1 then
    Q.end_as(c, q, j, CANCELLED) -- the reason of the cancel stays
  else
    j[ERROR] = o.text or ''
    if has_flag(o, FAIL_DEAD) or j[ATTEMPT] >= j[MAX_ATTEMPTS] then
      Q.end_as(c, q, j, FAILED)
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
  j[LAST] = LAST_SNOOZED
  Q.count(c, q, 'snoozed', 1)
  if j[ASKED] == 1 then
    Q.end_as(c, q, j, CANCELLED)
  else
    j[ATTEMPT] = math.max(j[ATTEMPT] - 1, 0)
    again_at(c, j, c.wall + (o.delay_ms or 0))
  end
  return ended_attempt(c, q, j)
end

-- ---- operators -----------------------------------------------------------------------------------------------------------------------

local function reason_of(o)
  return o.text and o.text ~= '' and o.text or SAY_CANCELLED
end

-- Cancel a job that is live and no parent. Its own parent is not looked at.
local function cancel_one(c, q, j, o)
  local now = has_flag(o, CANCEL_NOW)
  local running, asked = j[STATE] == RUNNING, j[ASKED] == 1
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
    j[LAST] = LAST_CANCELLED
  end
  Q.end_as(c, q, j, CANCELLED)
  Q.enter(c, q, j)
end

-- Sealed, its live children cancelled, and it ends with the last of them.
local function cancel_parent(c, p, o)
  if p[ASKED] == 0 then
    p[ASKED], p[SEALED], p[UPDATED], p[ERROR] = 1, 1, c.wall, reason_of(o)
    Q.save(c, p)
  end
  wake(c, p[TENANT], p[ID], '#job')
  local ids, last
  repeat -- those that end on the way leave the class; the others lie before `last`
    ids, last = Q.children(c, p, 'l', last, PAGE)
    for _, j in ipairs(Q.jobs(c, p[TENANT], ids)) do
      j[UP] = p
      cancel_one(c, Q.of(c, j), j, o)
    end
  until #ids < PAGE
  Q.settle(c, p)
end

V.job_cancel = function(c, o)
  local j, q = find_named(c, o)
  if not j then
    return { status = NOT_FOUND }
  end
  if j[STATE] == RUNNING then
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
  return Q.answer(c, j, OK)
end

-- Why a job cannot be retried, or nil.
local function refuse_retry(j, state)
  if j[IS_PARENT] == 1 then
    return 'no_retry_parent'
  elseif state == RUNNING then
    return 'no_retry_running'
  elseif state == COMPLETED then
    return 'no_retry_completed'
  end
  return nil
end

V.job_retry = function(c, o)
  local j, q = find_named(c, o)
  if not j then
    return { status = NOT_FOUND }
  end
  local state = Q.view(c, j)
  local refused = refuse_retry(j, state)
  if refused then
    return Q.answer(c, j, WRONG_STATE, { say = refused })
  end
  if Q.ended(j) and j[UNIQUE_KEY] ~= '' then
    local keeper = Q.keeper(c, q, j[UNIQUE_KEY])
    if keeper and keeper[SEQ] ~= j[SEQ] then
      return Q.answer(c, keeper, DUPLICATE)
    end
  end
  if state ~= READY then
    Q.leave(c, q, j)
    if state >= COMPLETED then
      j[ATTEMPT], j[ASKED] = 0, 0
    end
    j[STATE], j[RUN_AT], j[UPDATED] = READY, c.wall, c.wall
    Q.enter(c, q, j)
  end
  return Q.answer(c, j, OK)
end

V.job_seal = function(c, o)
  local j = find_named(c, o)
  if not j then
    return { status = NOT_FOUND }
  end
  if j[IS_PARENT] == 0 then
    return Q.answer(c, j, WRONG_STATE, { say = 'not_a_parent' })
  end
  if not Q.ended(j) then
    if j[SEALED] == 0 then
      j[SEALED], j[UPDATED] = 1, c.wall
      Q.save(c, j)
      wake(c, j[TENANT], j[ID], '#job')
    end
    Q.settle(c, j)
  end
  return Q.answer(c, j, OK)
end

end
