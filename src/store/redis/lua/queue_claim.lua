-- queue_claim.lua: claims. A claim takes due jobs in claiming order, as far as group limits and the
-- rate allow.
--
-- Jobs of a full group wait apart (queue_group.lua), and so do ended ones, so the next jobs are
-- always the first members of q.ready, and a handful of calls read, mark and move n of them. The
-- strategies differ only if others can intervene; here nothing can, and both give the same result.
do

local FOREVER = -1

-- A head, directly as JSON. remaining: only if nothing is returned.
local function head_of(c, q, status, flags, remaining)
  flags = flags + (Q.optimistic(q) and @OUT_OPTIMISTIC@ or 0)
  return '{"status":' .. Q.int(status) .. ',"flags":' .. Q.int(flags)
    .. ',"now_ms":' .. Q.int(c.now) .. ',"wall_ms":' .. Q.int(c.wall)
    .. (remaining and ',"remaining_ms":' .. N(remaining) or '') .. '}'
end

-- ---- the rate: a member for each start, by lease time -------------------------------------------

-- Forget starts older than the rate's period; how many of `limit` may start?
local function rate_left(c, q, limit)
  if q.opts.rate_n == FOREVER then
    return limit
  end
  local key = Q.key(c, q, 'start')
  -- mutant rate_by_wall_clock: local since = c.wall - q.opts.rate_ms
  local since = c.now - q.opts.rate_ms
  redis.call('ZREMRANGEBYSCORE', key, '-inf', N(since))
  return math.max(math.min(q.opts.rate_n - redis.call('ZCARD', key), limit), 0)
end

-- Tokens are never reused, so they name the starts.
local function rate_add(c, q, token, n)
  if q.opts.rate_n == FOREVER then
    return
  end
  local args = {}
  for i = 1, n do
    -- mutant rate_by_wall_clock: args[2 * i - 1], args[2 * i] = N(c.wall), N(token + i - 1)
    args[2 * i - 1], args[2 * i] = N(c.now), N(token + i - 1)
  end
  redis.call('ZADD', Q.key(c, q, 'start'), unpack(args))
end

-- The rate allows none: when will it allow one more? When as many starts have left the period as
-- are in excess now.
local function rate_wait(c, q)
  local key = Q.key(c, q, 'start')
  local i = redis.call('ZCARD', key) - q.opts.rate_n
  local start = redis.call('ZRANGE', key, i, i, 'WITHSCORES')[2]
  return start and math.max(tonumber(start) + q.opts.rate_ms - c.now, 0) or 0
end

-- ---- before a claim -----------------------------------------------------------------------------

-- How many there were.
local function recover(c, found)
  for _, dead in ipairs(found) do
    Q.recover_due(c, dead)
  end
end

-- Scheduled jobs whose time has come, by run_at and seq. Readers have seen them as READY already,
-- and waiters knew the time.
local function promote_due(c, q)
  local due = redis.call('ZRANGEBYSCORE', Q.key(c, q, 'later'), '-inf', N(c.wall), 'LIMIT', 0,
    @PROMOTE_MAX@)
  if not due[1] then
    return
  end
  for i, place in ipairs(due) do
    due[i] = string.sub(place, 9)
  end
  for _, j in ipairs(Q.jobs(c, q.tenant, due)) do
    Q.leave(c, q, j)
    j[STATE] = @JOB_ON_DUE@
    Q.enter(c, q, j, true)
  end
end

-- ---- workers ------------------------------------------------------------------------------------

local function worker_key(c, q, worker)
  return c.tag .. ':q.worker:' .. q.names .. '\0' .. worker
end

-- Record that the worker has claimed these jobs, whose ids are a string. Their tokens are
-- consecutive, so the first one determines them all.
local function note_worker(c, q, o, token, ids)
  local key = worker_key(c, q, o.holder)
  redis.call('ZADD', K(c, 'j.worker'), N(c.now), q.names .. '\0' .. o.holder)
  redis.call('ZADD', Q.key(c, q, 'seen'), N(c.now), o.holder)
  if ids then
    redis.call('SET', key, o.id .. '\0' .. N(c.now) .. '\0' .. N(token) .. '\0' .. ids)
  else
    redis.call('DEL', key) -- a claim that gave nothing is not remembered by its id
  end
end

-- The worker has finished.
local function forget_worker(c, q, worker)
  redis.call('DEL', worker_key(c, q, worker))
  redis.call('ZREM', K(c, 'j.worker'), q.names .. '\0' .. worker)
  redis.call('ZREM', Q.key(c, q, 'seen'), worker)
end

-- The jobs of the worker's last claim, if it had this id: their ids, and the first token.
local function find_last(c, q, o)
  local last = redis.call('GET', worker_key(c, q, o.holder))
  if not last or string.sub(last, 1, #o.id + 1) ~= o.id .. '\0' then
    return nil
  end
  local words = {}
  for word in string.gmatch(last, '[^%z]+') do
    words[#words + 1] = word
  end
  if c.now - tonumber(words[2]) >= @WORKER_SEEN_MS@ then
    return nil
  end
  return { unpack(words, 4) }, tonumber(words[3])
end

-- The reply was lost: return it again, as far as it is still valid.
local function claim_again(c, q, ids, token)
  local parts = {}
  for i, id in ipairs(ids) do
    local j = Q.job(c, q.tenant, id)
    if j and j[STATE] == @JOB_RUNNING@ and j[TOKEN] == token + i - 1 and not Q.expired(c, j) then
      parts[#parts + 1] = Q.show(c, j, Q.payload(c, j))
    end
  end
  if not parts[1] then
    return head_of(c, q, @STATUS_EMPTY@, @OUT_RENEWED@, FOREVER)
  end
  return head_of(c, q, @STATUS_OK@, @OUT_RENEWED@), parts
end

-- ---- a claim ------------------------------------------------------------------------------------

local function lease_of(q, o)
  if bit.band(o.flags or 0, @FLAG_CLAIM_SILENT@) ~= 0 then
    return Q.optimistic(q) and q.opts.executing_timeout_ms or q.opts.processing_timeout_ms
  end
  return o.lease_ms or q.opts.lease_ms
end

-- The first n jobs of the queue: their turns, ids, keys and rows. A turn whose job is missing
-- (someone has deleted keys) is removed, so that it does not block the others forever.
local function first_rows(c, q, n)
  local ready, prefix, turn_id = Q.key(c, q, 'ready'), Q.job_key(c, q.tenant, ''), Q.turn_id
  while true do
    local turns, ids, keys, gone = redis.call('ZRANGE', ready, 0, n - 1), {}, {}, false
    if not turns[1] then
      return turns
    end
    for i = 1, #turns do
      local id = turn_id(turns[i])
      ids[i], keys[i] = id, prefix .. id
    end
    local rows = redis.call('MGET', unpack(keys))
    for i = 1, #turns do
      if not rows[i] then
        gone = true
        redis.call('ZREM', ready, turns[i])
      end
    end
    if not gone then
      return turns, ids, keys, rows
    end
  end
end

-- Jobs of a group that become claimed.
local function move_groups(c, q, rows, ids)
  local key, out, inside = Q.key(c, q, 'group'), {}, {}
  if redis.call('EXISTS', key) == 0 then
    return
  end
  for i, row in ipairs(rows) do
    local j = Q.unpack_job(row, q.tenant, ids[i])
    if j[GROUP] ~= '' then
      out[#out + 1] = Q.group_member(j, 'r')
      inside[#inside + 1] = 0
      inside[#inside + 1] = Q.group_member(j, 'n')
    end
  end
  if out[1] then
    redis.call('ZREM', key, unpack(out))
    redis.call('ZADD', key, unpack(inside))
  end
end

-- How many of these jobs a claim may return: as many as fit into its reply, but at least the first
-- one.
local function n_that_fit(rows, n_bytes_left)
  local n_bytes = 0
  for i = 1, #rows do
    n_bytes = n_bytes + Q.payload_bytes(rows[i]) + @JOB_BYTES@
    -- mutant claim_without_budget: if i < 1 then
    if i > 1 and n_bytes > n_bytes_left then
      return i - 1
    end
  end
  return #rows
end

-- Make the first n jobs RUNNING: many jobs, a handful of calls. They cannot change between reading
-- and writing. Returns the reply, still without its head; or nil, and the head that says why there
-- are none: a worker may be active on them under a claim that this server does not know.
local function take_first(c, q, o, n)
  local turns, ids, keys, rows = first_rows(c, q, n)
  if not turns[1] then
    return turns
  end
  local refused = closed(c)
  if refused then
    return nil, refused
  end
  for i = #ids, n_that_fit(rows, o.bytes) + 1, -1 do
    turns[i], ids[i], keys[i], rows[i] = nil, nil, nil, nil
  end
  local lease, silent = lease_of(q, o), bit.band(o.flags or 0, @FLAG_CLAIM_SILENT@) ~= 0 and 1 or 0
  local token = next_fences(c, #ids) -- and those that follow it
  local claimed_row, stamp = Q.claimed_row, Q.claim_stamp(c, o.holder, silent, lease)
  local sets, ranks, answer, n_answer = {}, {}, { false }, 1
  move_groups(c, q, rows, ids)
  for i = 1, #ids do
    local id, k = ids[i], 2 * i
    -- mutant token_not_renewed: local given = math.max(select(2, Q.peek(rows[i])), 1)
    local given = token + i - 1
    local row, is_large = claimed_row(rows[i], given, stamp)
    sets[k - 1], sets[k] = keys[i], row
    ranks[k - 1], ranks[k] = Q.claimed_rank(turns[i]), id
    answer[n_answer + 1], answer[n_answer + 2] = id, row
    n_answer = n_answer + 2
    if is_large then
      n_answer = n_answer + 1
      answer[n_answer] = Q.large_payload(c, q.tenant, id)
    end
  end
  redis.call('ZREMRANGEBYRANK', Q.key(c, q, 'ready'), 0, #ids - 1)
  redis.call('ZADD', Q.key(c, q, 'jobs'), unpack(ranks))
  local text = table.concat(ids, '\0')
  Q.claim_due(c, q, ids, turns, text, token, lease)
  redis.call('MSET', unpack(sets))
  Q.count(c, q, 'claimed', #ids)
  rate_add(c, q, token, #ids)
  note_worker(c, q, o, token, text)
  wake_jobs(c, q.tenant, text)
  return answer, #ids
end

local function is_ready_left(c, q)
  return redis.call('EXISTS', Q.key(c, q, 'ready'), Q.key(c, q, 'full')) > 0
end

-- Nothing was claimed: when might a job become available by itself?
local function empty_wait(c, q, rated)
  local at = math.huge
  local due = redis.call('ZRANGE', Q.key(c, q, 'later'), 0, 0, 'WITHSCORES')[2]
  local tick = Q.next_tick(c, q)
  at = math.min(tonumber(due) or at, tick or at)
  local wait = math.max(at - c.wall, 0)
  if rated then
    wait = math.min(wait, rate_wait(c, q))
  end
  return wait < math.huge and wait or FOREVER
end

-- Jobs are returned as stored (src/store/redis/packed.c): a claim rebuilds each row anyway.
local function claim_jobs(c, q, o)
  local left = rate_left(c, q, o.limit)
  local answer, n = {}, 0
  if left > 0 then
    answer, n = take_first(c, q, o, left)
  end
  if not answer then
    return n -- refused
  end
  local given = answer[2] and n or 0
  local more = given < o.limit and is_ready_left(c, q)
  local flags = more and @OUT_LIMITED@ or 0
  if given == 0 then
    note_worker(c, q, o)
    return head_of(c, q, @STATUS_EMPTY@, flags, empty_wait(c, q, left == 0 and more))
  end
  answer[1] = struct.pack('<BI4dd', @PACKED_CLAIMED@,
    flags + (Q.optimistic(q) and @OUT_OPTIMISTIC@ or 0), c.now, c.wall)
  return answer
end

V.claim = function(c, o)
  local q = Q.find(c, o.tenant, o.key)
  if not q then
    return { status = @STATUS_NOT_FOUND@ }
  end
  if bit.band(o.flags or 0, @FLAG_CLAIM_LEAVE@) ~= 0 then
    forget_worker(c, q, o.holder)
    return head_of(c, q, @STATUS_EMPTY@, 0, FOREVER)
  end
  local ids, token = find_last(c, q, o)
  if ids then
    return claim_again(c, q, ids, token)
  end
  local ticks = o.ticked and {} or Q.due_ticks(c, q)
  if ticks[1] then
    return { status = @STATUS_OK@, ask = 'tick', now_ms = c.now, wall_ms = c.wall }, ticks
  end
  recover(c, Q.dead_claims(c, @RECOVER_MAX@, q.names))
  promote_due(c, q)
  if q.opts.paused == 0 then
    return claim_jobs(c, q, o)
  end
  note_worker(c, q, o)
  return head_of(c, q, @STATUS_EMPTY@, @OUT_PAUSED@, FOREVER)
end

end
