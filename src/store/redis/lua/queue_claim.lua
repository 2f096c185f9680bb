-- queue_claim.lua: claims: what is due, in the order of its turn, as far as groups and the rate allow.
--
-- Jobs of a full group wait apart (queue_group.lua), ended ones too: so the next jobs are the first members of q.ready, whatever else there
-- is, and n of them are read, marked and moved by a handful of calls. The strategies differ where others may come in between; here nobody
-- does, and both give the same.
do

local OK, EMPTY, NOT_FOUND = S.OK, S.EMPTY, S.NOT_FOUND
local READY, RUNNING = 2, 3
local CLAIM_SILENT = 8 -- of the op's flags
local RENEWED, PAUSED, LIMITED, OPTIMISTIC = 1, 32, 64, 1024 -- of the head's
local SEEN_MS, BATCH_MAX = 60000, 1000 -- IL__WORKER_SEEN_MS; IL__RECOVER_MAX, IL__PROMOTE_MAX
local FOREVER = -1

-- A head, as JSON at once. remaining: only if nothing is given.
local function head_of(c, q, status, flags, remaining)
  flags = flags + (Q.optimistic(q) and OPTIMISTIC or 0)
  return '{"status":' .. Q.int(status) .. ',"flags":' .. Q.int(flags) .. ',"now_ms":' .. Q.int(c.now) .. ',"wall_ms":' .. Q.int(c.wall)
    .. (remaining and ',"remaining_ms":' .. N(remaining) or '') .. '}'
end

-- ---- the rate: a member for each start, by lease time ------------------------------------------------------------------

-- Forget what is older than the rate's period; how many of `limit` may start?
local function rate_left(c, q, limit)
  if q.opts.rate_n == FOREVER then
    return limit
  end
  local key = Q.key(c, q, 'start')
  redis.call('ZREMRANGEBYSCORE', key, '-inf', N(c.now - q.opts.rate_ms))
  return math.max(math.min(q.opts.rate_n - redis.call('ZCARD', key), limit), 0)
end

-- Tokens are never given twice, so they name the starts.
local function rate_add(c, q, token, n)
  if q.opts.rate_n == FOREVER then
    return
  end
  local args = {}
  for i = 1, n do
    args[2 * i - 1], args[2 * i] = N(c.now), N(token + i - 1)
  end
  redis.call('ZADD', Q.key(c, q, 'start'), unpack(args))
end

-- The rate allows none: when will it allow one more? When as many have left the period as are too many now.
local function rate_wait(c, q)
  local key = Q.key(c, q, 'start')
  local i = redis.call('ZCARD', key) - q.opts.rate_n
  local start = redis.call('ZRANGE', key, i, i, 'WITHSCORES')[2]
  return start and math.max(tonumber(start) + q.opts.rate_ms - c.now, 0) or 0
end

-- ---- before a claim -----------------------------------------------------------------------------------------------------------

-- How many there were.
local function recover(c, found)
  for _, dead in ipairs(found) do
    Q.recover_due(c, dead)
  end
  return #found
end

-- Scheduled jobs whose time has come, by run_at and seq. Whoever looks has seen them as READY already, and whoever waits for them knew when.
local function promote_due(c, q)
  local due = redis.call('ZRANGEBYSCORE', Q.key(c, q, 'later'), '-inf', N(c.wall), 'LIMIT', 0, BATCH_MAX)
  if not due[1] then
    return
  end
  for i, place in ipairs(due) do
    due[i] = string.sub(place, 9)
  end
  for _, j in ipairs(Q.jobs(c, q.tenant, due)) do
    Q.leave(c, q, j)
    j[STATE] = READY
    Q.enter(c, q, j, true)
  end
end

-- ---- workers ---------------------------------------------------------------------------------------------------------------------

local function worker_key(c, q, worker)
  return c.tag .. ':q.worker:' .. q.names .. '\0' .. worker
end

-- The worker has claimed, and got these jobs, whose ids are a text. Their tokens follow each other: the first one says them all.
local function note_worker(c, q, o, token, ids)
  local key = worker_key(c, q, o.holder)
  redis.call('ZADD', K(c, 'j.worker'), N(c.now), q.names .. '\0' .. o.holder)
  if ids then
    redis.call('SET', key, o.id .. '\0' .. N(c.now) .. '\0' .. N(token) .. '\0' .. ids)
  else
    redis.call('DEL', key) -- a claim that gave nothing is not remembered by its id
  end
end

-- What the worker's last claim gave, if that had this id: its ids, and the first token.
local function find_last(c, q, o)
  local last = redis.call('GET', worker_key(c, q, o.holder))
  if not last or string.sub(last, 1, #o.id + 1) ~= o.id .. '\0' then
    return nil
  end
  local words = {}
  for word in string.gmatch(last, '[^%z]+') do
    words[#words + 1] = word
  end
  if c.now - tonumber(words[2]) >= SEEN_MS then
    return nil
  end
  return { unpack(words, 4) }, tonumber(words[3])
end

-- The answer got lost: here it is again, as far as it still holds.
local function claim_again(c, q, ids, token)
  local parts = {}
  for i, id in ipairs(ids) do
    local j = Q.job(c, q.tenant, id)
    if j and j[STATE] == RUNNING and j[TOKEN] == token + i - 1 and not Q.expired(c, j) then
      parts[#parts + 1] = Q.show(c, j, Q.payload(c, j))
    end
  end
  if not parts[1] then
    return head_of(c, q, EMPTY, RENEWED, FOREVER)
  end
  return head_of(c, q, OK, RENEWED), parts
end

-- ---- a claim -----------------------------------------------------------------------------------------------------------------------

local function lease_of(q, o)
  if bit.band(o.flags or 0, CLAIM_SILENT) ~= 0 then
    return Q.optimistic(q) and q.opts.executing_timeout_ms or q.opts.processing_timeout_ms
  end
  return o.lease_ms or q.opts.lease_ms
end

-- The first n jobs of the queue: their turns, ids, keys and rows. A turn whose job is not there (somebody has deleted keys) is forgotten, so
-- that it does not stand in the way of the others for ever.
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

-- Make the first n jobs RUNNING: many jobs, a handful of calls. Nobody changes them between reading and writing. The answer, whose head is
-- still to be said; or nil, and the head that says why there are none: somebody may be at work on them under a claim that this server does
-- not know of.
local function take_first(c, q, o, n)
  local turns, ids, keys, rows = first_rows(c, q, n)
  if not turns[1] then
    return turns
  end
  local refused = closed(c)
  if refused then
    return nil, refused
  end
  local lease, silent = lease_of(q, o), bit.band(o.flags or 0, CLAIM_SILENT) ~= 0 and 1 or 0
  local token = next_fences(c, #ids) -- and those that follow it
  local claimed_row, stamp = Q.claimed_row, Q.claim_stamp(c, o.holder, silent, lease)
  local sets, answer, n_answer = {}, { false }, 1
  move_groups(c, q, rows, ids)
  for i = 1, #ids do
    local id, k = ids[i], 2 * i
    local row, is_large = claimed_row(rows[i], token + i - 1, stamp)
    sets[k - 1], sets[k] = keys[i], row
    answer[n_answer + 1], answer[n_answer + 2] = id, row
    n_answer = n_answer + 2
    if is_large then
      n_answer = n_answer + 1
      answer[n_answer] = Q.large_payload(c, q.tenant, id)
    end
  end
  redis.call('ZREMRANGEBYRANK', Q.key(c, q, 'ready'), 0, #ids - 1)
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

-- Nothing was given: when may there be something by itself?
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

-- Jobs are answered as they are stored (src/store/redis/packed.c): a claim makes each row anew anyway.
local function claim_jobs(c, q, o, n_dead)
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
  local flags = more and LIMITED or 0
  if given == 0 then
    -- Sweeps find all that an older version has left; should there be none, this does so little by little.
    if n_dead == 0 and left > 0 and recover(c, Q.dead_among_all(c, q.names)) > 0 then
      return claim_jobs(c, q, o, 1)
    end
    note_worker(c, q, o)
    return head_of(c, q, EMPTY, flags, empty_wait(c, q, left == 0 and more))
  end
  answer[1] = struct.pack('<c1I4dd', 'C', flags + (Q.optimistic(q) and OPTIMISTIC or 0), c.now, c.wall)
  return answer
end

V.claim = function(c, o)
  local q = Q.find(c, o.tenant, o.key)
  if not q then
    return { status = NOT_FOUND }
  end
  local ids, token = find_last(c, q, o)
  if ids then
    return claim_again(c, q, ids, token)
  end
  local ticks = o.ticked and {} or Q.due_ticks(c, q)
  if ticks[1] then
    return { status = OK, ask = 'tick', now_ms = c.now, wall_ms = c.wall }, ticks
  end
  local n_dead = recover(c, Q.dead_claims(c, BATCH_MAX, q.names))
  promote_due(c, q)
  if q.opts.paused == 0 then
    return claim_jobs(c, q, o, n_dead)
  end
  note_worker(c, q, o)
  return head_of(c, q, EMPTY, PAUSED, FOREVER)
end

end
