-- queue_finish.lua: batches of finishes. Most jobs have no group, no parent and no unique key: then
-- a finish changes nothing but the job itself, and a handful of calls read and write what many of
-- them need. All others go through V.job_finish one by one, in their turn.
--
-- A batch is read at once: b = Q.finish_read(…). Then its finishes are gathered in order
-- (Q.finish_gather) and written (Q.finish_write) up to one that is not the usual case, which is
-- executed by itself; and so on. What was read stays true meanwhile: no other verb or client can
-- intervene, no job is in a batch twice with its token, and a finish changes its own job, its
-- parent, and places of READY ones, but no other RUNNING job and no parent.
do

local NEVER = -1

local function set_of(keys)
  local set = {}
  for i = 1, #keys do
    set[keys[i]] = true
  end
  return set
end

-- The finishes from args[from] on, up to another kind of request or to a job that is named a second
-- time. While each token is greater than the last one, duplicates are not searched for: a job that
-- is named twice then has another token, and whichever is not its own is not the usual case.
function Q.finish_read(c, args, from)
  local b = { from = from, last = from - 2, tokens = {}, tenants = {}, ids = {}, keys = {},
    rows = false, n = 0 }
  local tokens, tenants, ids, keys, n = b.tokens, b.tenants, b.ids, b.keys, 0
  local byte, unpack_request, prefix, prefix_of, seen, last =
    string.byte, struct.unpack, '', false, false, 0
  for i = from, #args, 2 do
    local request = args[i]
    if byte(request) ~= @PACKED_FINISH@ then
      break
    end
    local token, tenant, id = unpack_request('<dss', request, 2)
    if tenant ~= prefix_of then
      prefix, prefix_of = Q.job_key(c, tenant, ''), tenant
    end
    local key = prefix .. id
    seen = seen or token <= last and set_of(keys)
    if seen then
      if seen[key] then
        break
      end
      seen[key] = true
    end
    n, last = n + 1, token
    tokens[n], tenants[n], ids[n], keys[n] = token, tenant, id, key
  end
  b.last = from + 2 * (n - 1)
  b.rows = redis.call('MGET', unpack(b.keys))
  return b
end

-- As V.job_finish wants it.
function Q.finish_request(b, i)
  local k = (i - b.from) / 2 + 1
  return { op = 'job_finish', tenant = b.tenants[k], id = b.ids[k], fence = b.tokens[k] }
end

-- A queue of the batch, and its changes; false if its jobs are not independent. From its first job:
-- the token, and whether it shares an entry of j.many.
local function queue_of(c, b, tenant, name, token, is_many)
  local names = tenant .. '\0' .. name
  local g = b.queues[names]
  if g == nil then
    local q = Q.find(c, tenant, name)
    local keep = q and q.opts.keep_ms ~= NEVER and q.opts.keep_ms
    g = keep and { q = q, purge_at = c.wall + keep, is_many = is_many, token = token, jobs = {},
      ids = {}, seqs = {}, n = 0 } or false
    b.queues[names] = g
  end
  return g
end

-- Gathers finishes from args[at] on, as long as they are the usual case, with their replies;
-- returns the position of the first other one. b.at says how far it has come, in case it fails. The
-- first one's reply is its new row, those of the others their old ones: the client replaces their
-- front with that of the first.
local function gather(c, b, at, args, replies, n)
  local rows, tokens, tenants, ids, keys, from, marks =
    b.rows, b.tokens, b.tenants, b.ids, b.keys, b.from, b.marks
  local peek, completed_rank, now, small = Q.peek, Q.completed_rank, c.now, Q.SMALL
  -- a single one has its own entry
  local many_until = b.last > from and now + Q.MANY_MS or 0
  local g, name, stamp, stamp_bytes = false, false, false, -1
  for i = at, b.last, 2 do
    b.at = i
    local k, data = (i - from) / 2 + 1, args[i + 1]
    local row, tenant, id = rows[k], tenants[k], ids[k]
    if not row or #data > small then
      return i
    end
    local state, token, expires, is_plain, seq, queue = peek(row)
    if state ~= @JOB_RUNNING@ or token ~= tokens[k] or expires <= now or not is_plain then
      return i
    end
    if not g or queue ~= name or tenant ~= g.q.tenant then
      g, name, stamp_bytes = queue_of(c, b, tenant, queue, token, expires <= many_until), queue, -1
      if not g then
        return i
      end
    end
    if g.is_many ~= (expires <= many_until) then
      return i
    end
    if #data ~= stamp_bytes then
      stamp, stamp_bytes = Q.finish_stamp(g.is_many and g.purge_at or 0, c.wall, #data), #data
    end
    local m = b.n + 1
    b.n = m
    marks[3 * m - 2], marks[3 * m - 1], marks[3 * m] =
      keys[k], stamp, data ~= '' and stamp .. string.sub(row, Q.STAMP_BYTES + 1) .. data
    m = g.n + 1
    g.n = m
    g.jobs[2 * m - 1], g.jobs[2 * m], g.ids[m], g.seqs[m] = completed_rank(seq), id, id, seq
    replies[n + (i - at) / 2 + 1] = i > at and row or stamp .. string.sub(row, Q.STAMP_BYTES + 1)
  end
  return b.last + 2
end

-- The same; a broken row is not the usual case.
function Q.finish_gather(c, b, at, args, replies, n)
  b.n, b.queues, b.marks = 0, {}, {}
  local ok, other = pcall(gather, c, b, at, args, replies, n)
  return ok and other or b.at
end

-- Write what was gathered. If a row has no result, only its front changes and is overwritten:
-- rebuilding the rows and writing them all at once costs twice as much, although it is one call
-- instead of many. A result requires a new row: APPEND would leave it with twice the memory it
-- needs. Places come before rows: if this fails halfway, a repeated finish writes all of it again.
function Q.finish_write(c, b)
  local call, marks = redis.call, b.marks
  for _, g in pairs(b.queues) do
    if g and g.n > 0 then
      call('ZADD', Q.key(c, g.q, 'jobs'), unpack(g.jobs))
      local text = table.concat(g.ids, '\0')
      if g.is_many then
        Q.many_ended(c, g.q, g.token, text, g.purge_at)
      else
        Q.ended_due(c, g.q, g.seqs, g.ids, g.purge_at)
      end
      wake_jobs(c, g.q.tenant, text)
    end
  end
  for i = 1, 3 * b.n, 3 do
    if marks[i + 2] then
      call('SET', marks[i], marks[i + 2])
    else
      call('SETRANGE', marks[i], '0', marks[i + 1])
    end
  end
end

end
