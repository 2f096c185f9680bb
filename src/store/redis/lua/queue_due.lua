-- queue_due.lua: time-driven changes of jobs: claims that expire, and ended jobs past their
-- retention.
--
-- Two sorted sets. A score is the expiry of a claim or, above 2^50 (Q.CLASS), the time when an
-- ended job may be purged.
--   j.due   an entry for one job: seq T NUL Q NUL id. Changing a job changes or removes its entry.
--   j.many  an entry for all jobs of a claim, or of a batch of finishes, which share one time:
--           token T NUL Q NUL id NUL id …, where the token is that of the first job; in a claim
--           those of the others follow in sequence. A batch that covers a whole claim moves the
--           claim's entry.
-- One entry for a hundred jobs costs next to nothing; a hundred entries, created by the claim and
-- moved by the finishes, were a sixth of the cost of both. In return the entry does not change when
-- one of its jobs changes: when its time comes, it is compared with the rows, and what no longer
-- matches is skipped. A job that gets a different time (a heartbeat) has its own entry from then
-- on.
--
-- A claim looks for the dead claims of its own queue, and must not walk past those of all others.
-- So claims, but not ended jobs, have the same entry in a set of their queue, too: q.due and
-- q.many. A sweep uses the global sets.
--
-- An entry can thus outlive what it describes, until its time comes. That is bounded: a claim of
-- more than MANY_MS, and a job that ends more than MANY_MS before its claim does, have their own
-- entries; and a purge removes the entries whose last job it deletes (Q.many_gone).
do

local MANY_MS = 300000
Q.MANY_MS = MANY_MS
local MANY_MAX = 128 -- jobs in an entry: as many as finishes in a batch
local PAGE = 100
local LOOK_MAX = 10000 -- jobs that are looked at in one go: some 10 ms

local function due_key(c)
  return c.tag .. ':j.due:'
end

local function many_key(c)
  return c.tag .. ':j.many:'
end

-- Those of a queue: T NUL Q.
local function queue_due_key(c, names)
  return c.tag .. ':q.due:' .. names
end

local function queue_many_key(c, names)
  return c.tag .. ':q.many:' .. names
end

-- ---- entries of one -----------------------------------------------------------------------------

local function due_member(j)
  return struct.pack('>I8', j[SEQ]) .. j[TENANT] .. '\0' .. j[QUEUE] .. '\0' .. j[ID]
end

local function names_of(j)
  return j[TENANT] .. '\0' .. j[QUEUE]
end

-- Its claim expires then.
function Q.due_at(c, j, expires)
  local score, member = Q.int(expires), due_member(j)
  redis.call('ZADD', due_key(c), score, member)
  redis.call('ZADD', queue_due_key(c, names_of(j)), score, member)
end

-- It is no longer claimed, if it was (Q.leave).
local function claim_over(c, j, member)
  if j[WAS] == @JOB_RUNNING@ then
    redis.call('ZREM', queue_due_key(c, names_of(j)), member)
  end
end

-- It is neither claimed nor ended.
function Q.due_never(c, j)
  local member = due_member(j)
  redis.call('ZREM', due_key(c), member)
  claim_over(c, j, member)
end

-- An ended job may be purged from purge_at on; nil: not automatically.
function Q.purge_from(c, j, purge_at)
  if purge_at then
    local member = due_member(j)
    redis.call('ZADD', due_key(c), Q.int(Q.CLASS + purge_at), member)
    claim_over(c, j, member)
  else
    Q.due_never(c, j)
  end
end

-- ---- entries of many ----------------------------------------------------------------------------

local function many_member(token, q, text)
  return struct.pack('>I8', token) .. q.names .. '\0' .. text
end

-- Jobs of a claim, by their ids, whose tokens follow this one; turns: their places; text: the ids
-- separated by NULs.
function Q.claim_due(c, q, ids, turns, text, token, lease)
  local expires, args, n = Q.int(c.now + lease), {}, #ids
  if n == 1 or lease > MANY_MS then
    for i = 1, n do
      args[2 * i - 1], args[2 * i] = expires, Q.turn_place(turns[i]) .. q.names .. '\0' .. ids[i]
    end
    redis.call('ZADD', due_key(c), unpack(args))
    redis.call('ZADD', queue_due_key(c, q.names), unpack(args))
    return
  end
  for i = 1, n, MANY_MAX do
    if n > MANY_MAX then
      text = table.concat(ids, '\0', i, math.min(i + MANY_MAX - 1, n))
    end
    args[#args + 1], args[#args + 2] = expires, many_member(token + i - 1, q, text)
  end
  redis.call('ZADD', many_key(c), unpack(args))
  redis.call('ZADD', queue_many_key(c, q.names), unpack(args))
end

-- RUNNING jobs, by their seqs and ids, are about to end.
function Q.ended_due(c, q, seqs, ids, purge_at)
  local score, args, members = Q.int(Q.CLASS + purge_at), {}, {}
  for i = 1, #ids do
    local member = struct.pack('>I8', seqs[i]) .. q.names .. '\0' .. ids[i]
    args[2 * i - 1], args[2 * i], members[i] = score, member, member
  end
  redis.call('ZADD', due_key(c), unpack(args))
  redis.call('ZREM', queue_due_key(c, q.names), unpack(members))
end

-- The same for the jobs of a batch, with one entry: the first one's token, and their ids as a
-- string.
function Q.many_ended(c, q, token, text, purge_at)
  local member = many_member(token, q, text)
  redis.call('ZADD', many_key(c), Q.int(Q.CLASS + purge_at), member)
  redis.call('ZREM', queue_many_key(c, q.names), member)
end

-- ---- what has come ------------------------------------------------------------------------------

-- Decode an entry, if it belongs to this queue (nil: to any). number: a seq, or a token if it is
-- one of many.
local function entry_of(member, score, is_many, names)
  local tenant, queue, at = string.match(member, '^([^%z]*)%z([^%z]*)%z()', 9)
  if names and tenant .. '\0' .. queue ~= names then
    return nil
  end
  local ids = {}
  for id in string.gmatch(string.sub(member, at), '[^%z]+') do
    ids[#ids + 1] = id
  end
  return {
    member = member, is_many = is_many, score = score, number = struct.unpack('>I8', member),
    tenant = tenant, queue = queue, names = tenant .. '\0' .. queue,
    ids = ids, left = 0,
  }
end

-- Does the i-th job of an entry, whose row this is, still match the entry? Returns its seq, if so.
local function is_dead(e, i, row)
  local state, token, expires, _, seq, queue = Q.peek(row)
  local is_its = e.is_many and token == e.number + i - 1 or not e.is_many and seq == e.number
  return is_its and queue == e.queue and state == @JOB_RUNNING@ and expires == e.score and seq
end

local function is_old(e, _, row)
  local state, _, purge_at, _, seq, queue = Q.peek(row)
  local is_its = e.is_many and purge_at == e.score - Q.CLASS or not e.is_many and seq == e.number
  return is_its and queue == e.queue and state >= @JOB_ENDED@ and seq
end

-- Adds to `found` the jobs that still match an entry. False if there are none.
local function add_jobs(c, e, is_so, found, seen)
  local keys, any = {}, false
  for i, id in ipairs(e.ids) do
    keys[i] = Q.job_key(c, e.tenant, id)
  end
  for i, row in ipairs(redis.call('MGET', unpack(keys))) do
    local seq = row and is_so(e, i, row)
    any = any or seq
    if seq and not seen[keys[i]] then
      seen[keys[i]], e.left = true, e.left + 1
      found[#found + 1] = { entry = e, tenant = e.tenant, id = e.ids[i], score = e.score,
        seq = seq }
    end
  end
  return any
end

-- The entry matches no job: delete it. An entry that is missing in the global set is not needed in
-- its queue's set. Not the other way round: sweeps use the global set.
local function forget(c, key, e)
  local own = (e.is_many and queue_many_key or queue_due_key)(c, e.names)
  redis.call('ZREM', key, e.member)
  if e.score < Q.CLASS and key ~= own then
    redis.call('ZREM', own, e.member)
  end
end

-- The same for the entries of a set with scores from low to high, until n are found and, of many,
-- all that have the last one's score: entries of one are ordered by seq. Entries that match no job
-- are deleted. found.more: it gave up early, after LOOK_MAX.
local function gather(c, key, is_many, low, high, n, names, is_so, found, seen)
  local n_before, n_looked, skip, last = #found, 0, 0, nil
  while true do
    local page = redis.call('ZRANGEBYSCORE', key, low, high, 'WITHSCORES', 'LIMIT', skip, PAGE)
    for i = 1, #page, 2 do
      local score = tonumber(page[i + 1])
      if #found - n_before >= n and (score ~= last or not is_many) then
        return
      elseif n_looked >= LOOK_MAX then
        found.more = true
        return
      end
      local e = entry_of(page[i], score, is_many, names)
      n_looked, last = n_looked + (e and #e.ids or 1), score
      if not e or add_jobs(c, e, is_so, found, seen) then
        skip = skip + 1
      else
        forget(c, key, e)
      end
    end
    if #page < 2 * PAGE then
      return
    end
  end
end

-- Both sets; by score and seq, at most n.
local function come(c, due, many, low, high, n, is_so)
  local found, seen = {}, {}
  gather(c, due, false, low, high, n, nil, is_so, found, seen)
  gather(c, many, true, low, high, n, nil, is_so, found, seen)
  table.sort(found, function(a, b)
    if a.score ~= b.score then
      return a.score < b.score
    end
    return a.seq < b.seq
  end)
  for i = #found, n + 1, -1 do
    found[i] = nil
  end
  return found
end

-- Jobs whose claim has expired, by expiry and seq: at most n; names: of this queue (nil: of any).
-- After changing one, call Q.due_done(). `more`: there may be others that were not read.
function Q.dead_claims(c, n, names)
  local due, many = due_key(c), many_key(c)
  if names then
    due, many = queue_due_key(c, names), queue_many_key(c, names)
  end
  return come(c, due, many, '-inf', N(c.now), n, is_dead)
end

-- Ended jobs past their retention, by purge time and seq.
function Q.old_jobs(c, n)
  return come(c, due_key(c), many_key(c), N(Q.CLASS), N(Q.CLASS + c.wall), n, is_old)
end

-- An entry of many is deleted with its last job. (Those of one change with their job.)
function Q.due_done(c, found)
  local e = found.entry
  e.left = e.left - 1
  if e.is_many and e.left == 0 then
    forget(c, many_key(c), e)
  end
end

-- Are there due entries? Changes nothing.
function Q.is_due(c)
  for _, key in ipairs({ due_key(c), many_key(c) }) do
    if redis.call('ZRANGEBYSCORE', key, '-inf', N(c.now), 'LIMIT', 0, 1)[1]
      or redis.call('ZRANGEBYSCORE', key, N(Q.CLASS), N(Q.CLASS + c.wall), 'LIMIT', 0, 1)[1] then
      return true
    end
  end
  return false
end

-- Ended jobs of a queue, which could be purged at these times, were deleted: delete the entries of
-- many that have none left. `times` is a set.
function Q.many_gone(c, q, times)
  local key = many_key(c)
  for purge_at in pairs(times) do
    local score = N(Q.CLASS + purge_at)
    gather(c, key, true, score, score, 1, q.names, is_old, {}, {})
  end
end

end
