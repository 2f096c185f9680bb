-- run_rows.lua: runs as Redis keeps them: single changes of rows, formatting a run for replies, its
-- log; get, list, log and the sweep. The decisions are in run.lua. Everything happens inside one
-- function call, which Redis runs alone: what was read is still true when we act on it.
--
-- Keys, after the tag (a run is named by its seq, a string of digits):
--   r:SEQ            hash    the run, by the names of the fields below
--   ri:t             hash    id -> seq
--   rr:t\0key        string  the RUNNING run of a key
--   rp:t\0key        zset    its PENDING runs, by seq
--   ra:t\0C          zset    the runs of a tenant by seq, newest last, as SEQ:key; C: `live`, or
--                    the state in which they ended
--   rk:t\0key\0C     zset    the same for one key, as SEQ:
--   rn:t             zset    the keys that have runs, by bytes
--   rc:t\0class      zset    the runs of a tenant whose keys are of a class, live and ended, by
--                    creation time
--   rt:t\0class\0ms  hash    admitted starts of a class, in 60 slots of a window of that many ms
--   rx               zset    these hashes, by the lease time at which a sweep deletes them
--   rd               zset    ended runs by purge time; seqs have 16 digits, so that among equal
--                    times the first comes first
--   rg:SEQ\0n        string  bytes n * 64 Ki .. of its log; pieces that lie entirely before the
--                    last 1 MiB are deleted
-- Live runs are few, and found without reading history; listings read only what they may show.
do
local PIECE, LOG_KEPT, LOG_READ = @LOG_PIECE_BYTES@, @LOG_BYTES_MAX@, @LOG_READ_BYTES@
-- where runs are listed: the live ones, and those that ended in a state
local CLASSES = {
  'live', '@RUN_COMPLETED@', '@RUN_FAILED@', '@RUN_CANCELLED@', '@RUN_TIMEOUT@',
  '@RUN_INTERRUPTED@',
}
R.CLASSES = CLASSES
-- a listing by prefix merges the keys one by one if there are no more than this
local KEYS_MERGED = 32
-- PENDING, RUNNING; and FAILED, CANCELLED, as which overdue ones are shown: as bits
local MAY_BE_LIVE = @RUN_BIT_PENDING@ + @RUN_BIT_RUNNING@ + @RUN_BIT_FAILED@ + @RUN_BIT_CANCELLED@

-- (redis.call does not exist yet while a library is loaded.)
local function call(...)
  return redis.call(...)
end

-- ---- rows ---------------------------------------------------------------------------------------

-- A run, or nil. Numbers are strings as stored, except the state.
local function read(c, seq)
  local raw = call('HGETALL', K(c, 'r', seq))
  if not raw[1] then return nil end
  local r = { seq = seq }
  for i = 1, #raw, 2 do r[raw[i]] = raw[i + 1] end
  r.state = tonumber(r.state)
  return r
end

local function find(c, tenant, id)
  local seq = call('HGET', K(c, 'ri', tenant), id)
  return seq and read(c, seq) or nil
end

local function set(c, r, changes)
  local args = {}
  for name, value in pairs(changes) do
    r[name] = value
    args[#args + 1], args[#args + 2] = name, value
  end
  call('HSET', K(c, 'r', r.seq), unpack(args))
end

-- Where listings find it.
local function list_as(c, r, class)
  call('ZADD', K(c, 'ra', r.tenant, class), r.seq, r.seq .. ':' .. r.key)
  call('ZADD', K(c, 'rk', r.tenant, r.key, class), r.seq, r.seq .. ':')
end

-- The class of a key: the part before its first colon.
local function class_of(key)
  return string.match(key, '^[^:]*')
end

local function unlist(c, r, class)
  call('ZREM', K(c, 'ra', r.tenant, class), r.seq .. ':' .. r.key)
  call('ZREM', K(c, 'rk', r.tenant, r.key, class), r.seq .. ':')
end

local function changed(c, r)
  wake(c, r.tenant, r.id, '#run')
end

-- The lease or waiter of a live run; nil: it is a slot.
local function hold_of(c, r)
  if r.state >= @RUN_ENDED@ or r.holder == '' then return nil end
  local h = L.find(c, r.tenant, r.key, r.holder)
  return h and h.run == r.seq and h or nil
end

-- The live run of a key that others are told about: the RUNNING one, otherwise the oldest PENDING
-- one; nil: none is live.
local function in_the_way(c, tenant, key)
  local seq = call('GET', K(c, 'rr', tenant, key))
    or call('ZRANGE', K(c, 'rp', tenant, key), 0, 0)[1]
  return seq and read(c, seq) or nil
end

-- ---- how it looks -------------------------------------------------------------------------------

-- The state in which a run will be shown: il__run_state_at().
local function state_at(c, r, h)
  if r.state >= @RUN_ENDED@ or not h or c.now < h.due_ms then return r.state end
  if h.state == @LEASE_WAITING@ then
    return h.due_ms >= h.deadline_ms and @RUN_ON_DEADLINE@ or @RUN_ON_SILENT@
  end
  return (h.state == @LEASE_CLOSING@ or r.cancelled == '1') and @RUN_CANCELLED@ or @RUN_ON_EXPIRE@
end

-- Has the tenant `max` live runs of the class of o.key? Overdue runs are not live, and runs of
-- o.key up to the state `replaced` do not count. The cost depends on the number of the tenant's
-- live runs.
local function reaches_live(c, o, max, replaced)
  local class, n = class_of(o.key), 0
  for _, member in ipairs(call('ZRANGE', K(c, 'ra', o.tenant, 'live'), 0, -1)) do
    local colon = string.find(member, ':', 1, true)
    local r = { seq = string.sub(member, 1, colon - 1), tenant = o.tenant,
      key = string.sub(member, colon + 1) }
    if class_of(r.key) == class then
      local v = call('HMGET', K(c, 'r', r.seq), 'state', 'holder', 'cancelled')
      r.state, r.holder, r.cancelled = tonumber(v[1]), v[2], v[3]
      if not (r.key == o.key and r.state <= replaced)
        and state_at(c, r, hold_of(c, r)) < @RUN_ENDED@ then
        n = n + 1
        if n >= max then return true end
      end
    end
  end
  return false
end

-- Has the tenant created `max` runs of the class of o.key since midnight, UTC?
local function reaches_day(c, o, max)
  return call('ZCOUNT', K(c, 'rc', o.tenant, class_of(o.key)), N(c.wall - c.wall % 86400000),
    '+inf') >= max
end

-- Rates of starts, as defined in core/run.h: a hash of the slots for each window of a tenant's
-- class, by place; a value is the slot and the starts that were admitted in it.
local RATES = { { 'minute_max', @RATE_MINUTE_MS@, 'run_minute_limit' },
  { 'hour_max', @RATE_HOUR_MS@, 'run_hour_limit' } }

local function each_rate(c, o, fn)
  for _, w in ipairs(RATES) do
    local max, slot_ms = o[w[1]], math.floor(w[2] / (@RATE_SLOTS@ - 1)) + 1
    if max then
      local found = fn(K(c, 'rt', o.tenant, class_of(o.key), N(w[2])), max,
        math.floor(c.now / slot_ms), slot_ms, w[3])
      if found then return found end
    end
  end
end

-- The rate that a start would exceed, as a reply; nil: none.
local function too_often(c, o)
  return each_rate(c, o, function(key, max, now, slot_ms, say)
    local n, oldest = 0, now
    for _, value in ipairs(call('HVALS', key)) do
      local slot, starts = string.match(value, '(%d+) (%d+)')
      slot = tonumber(slot)
      -- mutant rate_window_short: if slot > now - 30 then
      if slot > now - @RATE_SLOTS@ then
        n, oldest = n + tonumber(starts), math.min(oldest, slot)
      end
    end
    if n < max then return nil end
    return { status = @STATUS_LIMIT@, say = say,
      remaining_ms = math.max((oldest + @RATE_SLOTS@) * slot_ms - c.now, 1) }
  end)
end

-- A start was admitted.
local function count_start(c, o)
  each_rate(c, o, function(key, _, now, slot_ms)
    local slot, starts = string.match(call('HGET', key, N(now % @RATE_SLOTS@)) or '', '(%d+) (%d+)')
    starts = tonumber(slot) == now and tonumber(starts) + 1 or 1
    call('HSET', key, N(now % @RATE_SLOTS@), N(now) .. ' ' .. N(starts))
    -- this slot is old then: core/run.h
    call('ZADD', K(c, 'rx'), N((now + 2 * @RATE_SLOTS@) * slot_ms), key)
  end)
end

-- Its place among the pending runs of its key that have not ended. If this op has ended what was
-- overdue on the key, none has; otherwise each one's hold is checked, once for all runs of the key
-- that are shown.
local function position(c, r)
  local pending = K(c, 'rp', r.tenant, r.key)
  if c.expired == pending then return (call('ZRANK', pending, r.seq) or 0) + 1 end
  c.places = c.places or {}
  local places = c.places[pending]
  if not places then
    local n = 0
    places = {}
    for _, seq in ipairs(call('ZRANGE', pending, 0, -1)) do
      local p = { seq = seq, tenant = r.tenant, key = r.key, state = @RUN_PENDING@,
        holder = call('HGET', K(c, 'r', seq), 'holder') }
      local h = hold_of(c, p)
      if not h or c.now < h.due_ms then n = n + 1 end
      places[seq] = n
    end
    c.places[pending] = places
  end
  return places[r.seq]
end

-- A run as the wire has it.
local function show(c, r, h)
  local out = {
    id = r.id, key = r.key, holder = r.holder, trigger = r.trigger, by = r.by, meta = r.meta,
    stage = r.stage, error = r.error,
    state = r.state, cancelled = r.cancelled, n_joined = r.n_joined, progress = r.progress,
    fence = r.fence, seq = r.seq,
    log_bytes = r.log_bytes, ttl_ms = r.ttl_ms, created_at_ms = r.created_ms,
    started_at_ms = r.started_ms,
    ended_at_ms = r.ended_ms, updated_at_ms = r.updated_ms,
  }
  if h then
    out.hold_state, out.hold_ttl_ms, out.hold_due_ms, out.hold_reason =
      h.state, N(h.ttl_ms), N(h.due_ms), h.reason
    out.hold_deadline_ms = h.deadline_ms and N(h.deadline_ms)
  end
  if r.state == @RUN_PENDING@ then out.position = position(c, r) end
  return out
end

-- Put a run into a reply.
local function beside(c, head, r)
  head.now_ms, head.wall_ms = N(c.now), N(c.wall)
  head.runs = { show(c, r, hold_of(c, r)) }
  return head
end

-- A reply that shows a run. Its fence is that of the run, once it has started.
local function told(c, status, r)
  return beside(c, { status = status, fence = r.state ~= @RUN_PENDING@ and r.fence or nil }, r)
end

V.run_get = function(c, o)
  local r = find(c, o.tenant, o.id)
  return r and told(c, @STATUS_OK@, r) or { status = @STATUS_NOT_FOUND@ }
end

-- ---- the log ------------------------------------------------------------------------------------

-- Where the kept part of n bytes begins.
local function kept(n)
  return math.max(n - LOG_KEPT, 0)
end

local function piece_of(at)
  return math.floor(at / PIECE)
end

-- Drop the pieces from `first` up to, but excluding, `past`.
local function drop_pieces(c, seq, first, past)
  local names = {}
  for i = first, past - 1 do names[#names + 1] = K(c, 'rg', seq, N(i)) end
  if names[1] then call('UNLINK', unpack(names)) end
end

-- Append to the log; returns its new size.
local function log_append(c, r, data)
  local n, i = tonumber(r.log_bytes), 1
  local first = piece_of(kept(n))
  while i <= #data do
    local part = math.min(#data - i + 1, PIECE - n % PIECE)
    call('APPEND', K(c, 'rg', r.seq, N(piece_of(n))), string.sub(data, i, i + part - 1))
    n, i = n + part, i + part
  end
  drop_pieces(c, r.seq, first, piece_of(kept(n)))
  return N(n)
end

-- The bytes of the log from `first` up to, but excluding, `past`.
local function log_read(c, r, first, past)
  local parts = {}
  while first < past do
    local n = math.min(past - first, PIECE - first % PIECE)
    local at = first % PIECE
    parts[#parts + 1] = call('GETRANGE', K(c, 'rg', r.seq, N(piece_of(first))), at, at + n - 1)
    first = first + n
  end
  return table.concat(parts)
end

-- The new part of the log of a stage or finish; nil: there would be a gap. See il__run_log_part().
local function log_part(o, data, r)
  if bit.band(o.flags or 0, @FLAG_LOG_AT@) == 0 then return data end
  local first, n = o.offset or 0, tonumber(r.log_bytes)
  if first < 0 or first > n then return nil end -- below 0 it is one of 2^63 or more
  return string.sub(data, 1 + math.min(n - first, #data))
end

V.run_log = function(c, o)
  local r = find(c, o.tenant, o.id)
  if not r then return { status = @STATUS_NOT_FOUND@ } end
  local first, n = o.offset or 0, tonumber(r.log_bytes)
  local data = ''
  if first >= 0 then
    first = math.max(first, kept(n))
    data = log_read(c, r, first, math.min(n, first + LOG_READ))
  end
  local head = told(c, @STATUS_OK@, r)
  head.offset = N(first)
  return head, nil, data
end

-- ---- listing ------------------------------------------------------------------------------------

-- The sorted sets that hold what a listing may show: one per state and key, or tenant. Live ones
-- may be shown as they will end. If few keys begin with the prefix, they are read one by one:
-- otherwise all others would have to be skipped.
local function sources(c, o, states)
  local names, keys = {}, o.key and { o.key } or nil
  if not keys and o.prefix and o.prefix ~= '' then
    keys = call('ZRANGEBYLEX', K(c, 'rn', o.tenant), '[' .. o.prefix, '(' .. o.prefix .. '\255',
      'LIMIT', 0, KEYS_MERGED + 1)
    if #keys > KEYS_MERGED then keys = nil end
  end
  local may_be_live = bit.band(states, MAY_BE_LIVE) ~= 0
  for _, class in ipairs(CLASSES) do
    if class == 'live' and may_be_live or class ~= 'live'
      and bit.band(bit.rshift(states, tonumber(class)), 1) == 1 then
      for _, key in ipairs(keys or {}) do names[#names + 1] = K(c, 'rk', o.tenant, key, class) end
      if not keys then names[#names + 1] = K(c, 'ra', o.tenant, class) end
    end
  end
  return names, keys ~= nil
end

-- Advance to the next run of a source: its seq and key; they are fetched in steps. False: there is
-- none.
local function advance(s)
  s.i = s.i + 1
  if s.i > #s.page and not s.last then
    s.page = call('ZREVRANGEBYSCORE', s.name, '(' .. s.below, '-inf', 'LIMIT', 0, s.step)
    s.i, s.last = 1, #s.page < s.step
  end
  local member = s.page[s.i]
  if not member then return false end
  local colon = string.find(member, ':', 1, true)
  s.below, s.key = string.sub(member, 1, colon - 1), string.sub(member, colon + 1)
  s.seq = tonumber(s.below)
  return true
end

-- Merges the sources, newest first: a function that returns the next seq and key.
local function merged(names, below, step)
  local all, best = {}, nil
  for _, name in ipairs(names) do
    local s = { name = name, below = below, page = {}, i = 0, step = step }
    if advance(s) then all[#all + 1] = s end
  end
  return function()
    if best and not advance(all[best]) then table.remove(all, best) end
    best = nil
    for i, s in ipairs(all) do
      if not best or s.seq > all[best].seq then best = i end
    end
    if not best then return nil end
    return all[best].below, all[best].key
  end
end

V.run_list = function(c, o)
  local states = o.states and o.states ~= 0 and o.states or @RUN_BITS@
  local names, of_key = sources(c, o, states)
  local below = o.after_number and o.after_number >= 0 and N(o.after_number) or '+inf'
  local prefix = not of_key and o.prefix or ''
  local head = { status = @STATUS_OK@, now_ms = N(c.now), wall_ms = N(c.wall), runs = {} }
  local last, left = nil, o.limit + 1 + @LOOK_MAX@
  for seq, key in merged(names, below, #names > #CLASSES and 16 or 128) do
    if string.sub(key, 1, #prefix) == prefix then
      local r = read(c, seq)
      local h = hold_of(c, r)
      if bit.band(bit.rshift(states, state_at(c, r, h)), 1) == 1 then
        if #head.runs == o.limit then
          head.next = { last.id, last.seq }
          break
        end
        head.runs[#head.runs + 1] = show(c, r, h)
        last = r
      end
    end
    left = left - 1
    if left == 0 then
      head.next = { '-', seq } -- IL__NO_ID
      break
    end
  end
  return head
end

-- ---- the sweep ----------------------------------------------------------------------------------

local function purge(c, seq)
  local row = K(c, 'r', seq)
  local v = call('HMGET', row, 'tenant', 'id', 'key', 'state', 'log_bytes')
  local r = { seq = seq, tenant = v[1], id = v[2], key = v[3] }
  unlist(c, r, v[4])
  call('HDEL', K(c, 'ri', r.tenant), r.id)
  call('ZREM', K(c, 'rc', r.tenant, class_of(r.key)), seq)
  if call('EXISTS', K(c, 'rk', r.tenant, r.key, v[4])) == 0 then -- the last one of its key?
    local names = {}
    for i, class in ipairs(CLASSES) do names[i] = K(c, 'rk', r.tenant, r.key, class) end
    if call('EXISTS', unpack(names)) == 0 then call('ZREM', K(c, 'rn', r.tenant), r.key) end
  end
  local n = tonumber(v[5])
  if n > 0 then drop_pieces(c, seq, piece_of(kept(n)), piece_of(n - 1) + 1) end
  call('UNLINK', row)
end

local function due(c)
  return call('ZCOUNT', K(c, 'rd'), '-inf', N(c.wall)) > 0
end

R.overdue = function(c)
  return due(c) or call('ZCOUNT', K(c, 'rx'), '-inf', N(c.now)) > 0
end

-- Delete rates that are in no window. They do not count as purged: only results do.
local function forget_rates(c, limit)
  local old = call('ZRANGEBYSCORE', K(c, 'rx'), '-inf', N(c.now), 'LIMIT', 0, limit)
  -- mutant rates_kept: for _, key in ipairs({}) do
  for _, key in ipairs(old) do
    call('UNLINK', key)
    call('ZREM', K(c, 'rx'), key)
  end
end

-- Purge runs past their retention, the first to expire first.
V.x_sweep_runs = function(c, o)
  local gone = call('ZRANGEBYSCORE', K(c, 'rd'), '-inf', N(c.wall), 'LIMIT', 0, o.limit)
  forget_rates(c, o.limit)
  for _, member in ipairs(gone) do
    purge(c, N(tonumber(member)))
    call('ZREM', K(c, 'rd'), member)
  end
  return { status = @STATUS_OK@, sweep = { n_purged = #gone }, flags = due(c) and @OUT_MORE@ or 0 }
end

R.class_of, R.reaches_live, R.reaches_day = class_of, reaches_live, reaches_day
R.too_often, R.count_start = too_often, count_start
R.call, R.read, R.find, R.set, R.changed = call, read, find, set, changed
R.list_as, R.unlist, R.hold_of, R.in_the_way = list_as, unlist, hold_of, in_the_way
R.beside, R.told, R.log_append, R.log_part = beside, told, log_append, log_part
end
