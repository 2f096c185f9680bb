-- base.lua: what all verbs share: key names, numbers, counters, wake-ups, and when grants are
-- refused.
--
-- The files of this folder are concatenated (base first, apply last) and loaded as one function
-- library. Each request is one FCALL, and Redis runs one FCALL at a time, so every verb is
-- race-free. A script that fails halfway is not rolled back, so verbs decide first and write
-- afterwards.
--
-- A verb:  V.name = function(c, o, data) return head, parts, value end
--   c      the call: now, wall (ms), tag, read (must not write), classic (the URL says
--          classic=yes), own (memory is full: only keep alive or release what the holder already
--          has; see full())
--   o      the request, decoded; data: its blob, or nil
--   head   a table, or its JSON text ("{…}") where that is worth it
--   parts  nil, or an array of { table or JSON text, blob or false, blob2 or false }
--   value  nil, or the blob of the head
-- While the library is loaded, only redis.register_function exists: string, table, math, bit, cjson
-- and redis.call can be used inside functions, not at file level. Lua 5.1 allows at most 200 locals
-- per chunk and 60 upvalues per function, so files are wrapped in do … end and share these tables:
local V = {} -- verbs
local P = {} -- verbs whose requests are packed (apply.lua)
-- inner functions of locks, runs, idempotency, cache, queues, history
local L, R, O, C, Q, H = {}, {}, {}, {}, {}, {}

-- Fences, tickets, tokens and seqs have 16 digits: tostring() and cjson keep 14 (%d is a long here,
-- exact below 2^53). Everything that leaves Lua goes through N().
local function N(x)
  return string.format('%d', x)
end

-- The name of one of our keys: the store's tag, a kind, and names, which contain no NUL.
local function K(c, kind, ...)
  return c.tag .. ':' .. kind .. ':' .. table.concat({ ... }, '\0')
end

-- The store's own row, a hash: fence, ticket (last drawn), server (run id of the server that
-- granted last), promoted, synced, closed (no grants before, ms), why, lost (when leases may last
-- have been lost, ms), max_ttl (ms), clock, classic, born, layout; and rows of locks
-- (lock_rows.lua).
local function store_key(c)
  return c.tag .. ':store'
end

-- The part of it that a grant needs, read once per call.
local function state(c)
  local s = c.state
  if not s then
    local v = redis.call('HMGET', c.tag .. ':store', 'fence', 'server', 'closed', 'why')
    s = { fence = tonumber(v[1]), server = v[2], closed = tonumber(v[3]), why = v[4] }
    c.state = s
  end
  return s
end

-- The server's clock in microseconds. (With the test clock c.now is something else.)
local function server_us(c)
  if not c.us then
    local t = redis.call('TIME')
    c.us = t[1] * 1000000 + t[2]
  end
  return c.us
end

-- Draw n fences; returns the first, as a number. Greater than the last one, and not below the
-- server's clock, so that a lost counter (a restart without persistence, a promoted replica that
-- lags) does not repeat numbers. The test clock stands still, so there only the creation of the
-- counter uses it. The caller writes the field 'fence' (N(c.state.fence)).
local function draw_fences(c, n)
  local s = state(c)
  -- mutant fence_not_incremented: local first = s.fence or 1
  local first = (s.fence or 0) + 1
  -- mutant fence_behind_clock: if not s.fence then
  if not c.test or not s.fence then
    first = math.max(first, server_us(c))
  end
  s.fence = first + n - 1
  return first
end

-- Draw and write.
local function next_fences(c, n)
  local first = draw_fences(c, n)
  redis.call('HSET', c.tag .. ':store', 'fence', N(c.state.fence))
  return first
end

-- One, as text.
local function next_fence(c)
  return N(next_fences(c, 1))
end

-- The next ticket or seq.
local function next_ticket(c)
  return N(redis.call('HINCRBY', c.tag .. ':store', 'ticket', 1))
end

-- Wake after the reply has been sent; suffix: a holder, or '#run', '#once', '#queue', '#job',
-- '#cache'.
local function wake(c, tenant, name, suffix)
  local wakes = c.wakes or {}
  wakes[#wakes + 1] = { tenant, name, suffix }
  c.wakes = wakes
end

-- The same for changed jobs of a tenant, by their ids, separated by NULs. The jobs themselves
-- notify the caller, a separate message the others: claims and finishes change many.
local function wake_jobs(c, tenant, ids)
  local told = c.told_jobs or {}
  told[#told + 1], told[#told + 2] = tenant, ids
  c.told_jobs = told
end

-- A lease was broken or a build dropped: holders check whether it was theirs.
local function wake_holders(c)
  if not c.woke_holders then
    c.woke_holders = true
    c.wakes = c.wakes or {}
    c.wakes[#c.wakes + 1] = {}
  end
end

-- The reply to a request that would add something while memory is full (c.own).
local function full()
  return {
    status = @STATUS_FULL@,
    detail = 'the server is out of memory (maxmemory); new data is refused until some is released',
  }
end

local closed, new_server, is_replica
do

-- The value of `name` in a section of INFO.
local function info(section, name)
  return string.match(redis.call('INFO', section), '\n' .. name .. ':([^\r\n]*)')
end

-- This server's run id. A restart creates a new one, and a new library with it.
local own
local function run_id()
  own = own or info('server', 'run_id')
  return own
end

-- Has this server become a replica? It then refuses functions that write; one that reads must
-- check, or a client that only reads would get outdated replies forever. INFO costs more than a
-- cheap read, so it is called every 10 ms.
local LOOK_US = 10000
local role, looked_us
is_replica = function(c)
  local us = server_us(c)
  if not role or us < looked_us or us >= looked_us + LOOK_US then
    role, looked_us = info('replication', 'role'), us
  end
  return role ~= 'master'
end

-- Another server (or this one, restarted) serves the store from now on: what the last one granted
-- may be lost, so nothing is granted until the longest lease of that time is over. `safe`: nothing
-- can have been lost. max_ttls: the greatest TTL of each store that clients of this server have
-- said hello to, so that it is still known if the row is lost.
local max_ttls = {}
local function change_server(c, s, safe, why)
  s.server = run_id()
  if safe then
    redis.call('HSET', store_key(c), 'server', s.server)
    return
  end
  local max_ttl = tonumber(redis.call('HGET', store_key(c), 'max_ttl') or max_ttls[c.tag] or 60000)
  s.closed, s.why = c.now + max_ttl, why
  redis.call('HSET', store_key(c), 'server', s.server, 'closed', N(s.closed), 'why', why,
    'lost', N(c.now))
end

local EMPTIED = 'the store was flushed'

-- May leases be granted? nil, or the head to answer with. Call it before a lease is granted or
-- offered: an acquire returns the head; handing a key to the next waiter does nothing (waiters poll
-- every 5 s). Renewals, confirmations and releases are not affected.
closed = function(c)
  if c.test then
    return nil
  end
  local s = state(c)
  if s.server ~= run_id() and not c.read then
    -- On a live connection, whose x_hello has written it: either the database was emptied (then the
    -- client says hello again, since it knows how long a lease may be, and repeats the request:
    -- redis.c), or a replica was promoted (a restart cuts the connection, and x_hello comes first
    -- then).
    if not s.server then
      error({ err = 'say hello' })
    end
    change_server(c, s, false, 'a replica was promoted')
  end
  if not s.closed or c.now >= s.closed then
    return nil
  end
  return {
    status = @STATUS_STORE@,
    detail = string.format(
      'no leases are granted for another %.0f s: %s, and leases unknown to it may still be held',
      math.ceil((s.closed - c.now) / 1000), s.why or 'the server has changed'),
  }
end

-- For x_hello: compare the server with the one that the store and the client (o.was) know.
new_server = function(c, o)
  local s = state(c)
  local replication = redis.call('INFO', 'replication')
  local role = string.match(replication, '\nrole:([^\r\n]*)')
  if c.test then
    return role
  end
  local id, at = string.match(replication, 'master_replid2:(%x*)'),
    string.match(replication, 'second_repl_offset:(%-?%d+)')
  local promoted = (at and tonumber(at) >= 0 and id) and id .. ':' .. at or ''
  local v = redis.call('HMGET', store_key(c), 'promoted', 'synced', 'lost')
  local before, synced, lost = v[1] or '', v[2] or '0', tonumber(v[3] or 0)
  if synced ~= N(o.synced or 0) then
    redis.call('HSET', store_key(c), 'synced', N(o.synced or 0))
  end
  if promoted ~= before then
    redis.call('HSET', store_key(c), 'promoted', promoted)
  end
  if not s.server then
    -- Apparently new, but a client that has known the store knows better.
    change_server(c, s, not o.was,
      o.was == run_id() and EMPTIED or 'the server was restarted and has lost the store')
  elseif promoted ~= '' and promoted ~= before then
    change_server(c, s, false, 'a replica was promoted')
  elseif s.server ~= run_id() then
    -- Every acknowledged write is in the file that was loaded at the start, if each write was
    -- synced, before as now.
    change_server(c, s, o.synced == 1 and synced == '1', 'the server was restarted')
  elseif o.was and lost ~= o.lost and lost + o.max_ttl_ms > (s.closed or 0) then
    -- The client was connected before the loss, and knows of longer leases than the one that
    -- noticed it.
    s.closed = lost + o.max_ttl_ms
    redis.call('HSET', store_key(c), 'closed', N(s.closed))
  end
  return role
end

-- The first request on every connection: creates the store if it is missing, and detects another
-- server.
--   layout: of the rows, as the client knows it; clock 'test' or 'server', classic 0/1, existing
--   0/1, was: last known run id, synced 0/1: appendonly, and appendfsync is always; max_ttl_ms: the
--   greatest that the client knows of, lost: as last reported to it
--   -> found 0: it does not exist and may not be created; layout, clock, classic: as the store was
--      created; server: run id; closed_ms; max_ttl_ms: the greatest of all its users; lost: when
--      leases may last have been lost; mute: why it may not publish, then nothing was done
-- max_ttl and lost are published to all listeners, so that the first client after a loss knows how
-- long leases were before it.
V.x_hello = function(c, o)
  local key = store_key(c)
  local v = redis.call('HMGET', key, 'born', 'clock', 'classic', 'max_ttl', 'layout', 'lost')
  local born = v[1]
  if not born then
    if o.existing == 1 then
      return { status = @STATUS_OK@, found = 0 }
    end
    v[2], v[3], v[5] = o.clock, N(o.classic or 0), N(o.layout)
  end
  local head = { status = @STATUS_OK@, found = 1, layout = v[5] or '0', clock = v[2],
    classic = v[3], server = run_id() }
  if tonumber(head.layout) ~= o.layout or v[2] ~= o.clock or tonumber(v[3]) ~= (o.classic or 0) then
    return head
  end
  local max_ttl = math.max(tonumber(v[4] or 0), max_ttls[c.tag] or 0, o.max_ttl_ms)
  local said = redis.pcall('PUBLISH', c.tag .. ':wake',
    '0000000000000000 m' .. N(max_ttl) .. ' ' .. (v[6] or '0'))
  if type(said) == 'table' and said.err then
    head.mute = said.err -- whom it made way for would never hear of it, and lose his turn
    return head
  end
  if not born then
    -- A value of more than 64 bytes converts it to a hash table at once: a listpack would be read
    -- from its front each time.
    redis.call('HSET', key, 'born', N(math.floor(server_us(c) / 1000)), 'clock', v[2], 'classic',
      v[3], 'layout', v[5],
      'what', 'Interlock: counters, leases, units of work and what has ended; see src/store/redis')
  end
  if tonumber(v[4] or 0) < max_ttl then
    redis.call('HSET', key, 'max_ttl', N(max_ttl))
  end
  max_ttls[c.tag] = max_ttl
  head.role = new_server(c, o)
  head.max_ttl_ms, head.lost = max_ttl, tonumber(redis.call('HGET', key, 'lost') or 0)
  local s = state(c)
  if not c.test and s.closed and s.closed > c.now then
    head.closed_ms, head.why = s.closed - c.now, s.why
  end
  return head
end

end
