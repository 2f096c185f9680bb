-- classic.lua: support for classic clients that lock the same pipelines (only if the store's URL
-- says classic=yes):
--   SET pipeline_lock:TENANT:PIPELINE RUNID NX EX TTL, and compare-and-delete by value.
--
-- Such a string and the key pipeline:PIPELINE of a tenant are one lock. A string that is not ours
-- is a foreign lease (ks.foreign): nothing is granted beside it. While we hold the key in any mode,
-- the string exists: an exclusive lease sets it to the id of its run, or to its holder; shared
-- leases and permits, of which there may be many, set it to a text that says so. It expires when
-- the last of them does, and is deleted with the last of them if it still has that value. Race-free
-- because checking and setting happen in one function call, and a classic client's SET NX is one
-- command.
--
-- Classic clients do not notify us of a release: waiters check when they repeat their acquire, and
-- a sweep checks for them (lc). Nor do they notify us of a SET: listings get the names from the
-- client (classic.c).
do

local CHUNK = 100   -- leases that are read at once
-- The value of the string while several may hold the key, by mode.
local MANY = { [@MODE_SHARED@] = 'interlock:shared', [@MODE_PERMIT@] = 'interlock:permits' }

-- The name of the string, which has no tag; nil for keys of other classes. The tenant is the part
-- before the first colon: one with a colon in its name would collide with another tenant's locks,
-- so it gets no leases on pipelines here (redis.c), and sees no strings.
local function name_of(ks)
  local pipeline = not ks.t:find(':', 1, true) and ks.k:match('^pipeline:(.+)$')
  return pipeline and 'pipeline_lock:' .. ks.t .. ':' .. pipeline
end

-- The current value: a string, or false. A key of another type is a lock as well (their SET NX
-- fails), and never ours.
local function value_of(name)
  local value = redis.pcall('GET', name)
  if type(value) ~= 'table' then return value end
  return string.match(value.err, '^WRONGTYPE') and {} or redis.call('GET', name) -- fails again
end

-- A printable holder: a client may have written any bytes, but the reply is JSON, for the whole
-- batch. Text that is not UTF-8 or has control characters is shown as hex; everything is cut to the
-- 256 bytes of a holder.
local function shown(value)
  if type(value) == 'table' then return 'unknown (not a string)' end
  local n = 256
  -- not within a character
  while n > 253 and string.match(value, '^[\128-\191]', n + 1) do n = n - 1 end
  local text = string.sub(value, 1, n)
  local rest = text
  for _, character in ipairs({
    '[\194-\223][\128-\191]', '\224[\160-\191][\128-\191]',
    '[\225-\236\238\239][\128-\191][\128-\191]', '\237[\128-\159][\128-\191]',
    '\240[\144-\191][\128-\191][\128-\191]', '[\241-\243][\128-\191][\128-\191][\128-\191]',
    '\244[\128-\143][\128-\191][\128-\191]',
  }) do
    rest = string.gsub(rest, character, ' ')
  end
  if not string.find(rest, '[^ -~]') and not string.find(text, '\194[\128-\159]') then
    return text
  end
  return '0x' .. string.gsub(string.sub(value, 1, 127), '.',
    function(byte) return string.format('%02x', string.byte(byte)) end)
end

L.classic_look = function(c, ks)
  local name = name_of(ks)
  local value = name and value_of(name)
  if not value then return end
  if ks.alone and ks.alone.classic == value or ks.many and MANY[ks.mode] == value then return end
  local left = redis.call('PTTL', name)
  ks.foreign = {
    ks = ks, number = '0', holder = shown(value), state = @LEASE_HELD@, mode = @MODE_EXCLUSIVE@,
    permits = 0,
    ttl_ms = math.max(left, 0), settle_ms = 0, since_ms = c.now, renewed_ms = c.now,
    due_ms = left >= 0 and c.now + left or nil, meta = '', place = '', reason = '',
  }
end

-- A foreign string while we hold the key: an operator has deleted ours, and a classic client came.
-- The two must not both continue.
L.classic_expire = function(c, ks)
  local page = L.lease_page(ks, '0', CHUNK)
  while page[1] do
    wake_holders(c)
    for _, l in ipairs(page) do
      l.reason = 'a classic client has taken the key'
      L.lease_end(c, l, @LEASE_BROKEN@)
    end
    page = L.lease_page(ks, '0', CHUNK)
  end
end

-- A lease was granted or changed: the string exists until the key opens. One of many never shortens
-- the time of the others.
L.classic_set = function(c, l)
  local name = name_of(l.ks)
  if not name then return end
  local left = l.due_ms - c.now + (l.state == @LEASE_HELD@ and l.settle_ms or 0)
  if l.mode ~= @MODE_EXCLUSIVE@ then
    left = math.max(left, redis.call('PTTL', name))
  elseif (l.classic or '') == '' then
    l.classic = l.run ~= '0' and R.run_id(c, l.run) or l.holder
  end
  redis.call('SET', name, MANY[l.mode] or l.classic, 'PX', N(math.max(left, 1)))
end

-- A lease was removed: the string is deleted with the last one.
L.classic_clear = function(c, l)
  local name = not l.ks.many and name_of(l.ks)
  if name and value_of(name) == (MANY[l.mode] or l.classic) then
    redis.call('DEL', name)
  end
end

-- Break a classic client's lock, which has no fence: o.holder names the holder. The client cannot
-- be notified, so its lock can only be deleted.
L.classic_break = function(c, o, ks)
  local theirs = ks.foreign
  if not theirs or theirs.holder ~= o.holder then
    return { status = (theirs or L.newest(ks)) and @STATUS_STALE@ or @STATUS_NOT_HELD@,
      fence = L.newest(ks) }
  elseif (o.flags or 0) % 2 ~= @FLAG_BREAK_NOW@ then
    return { status = @STATUS_STATE@,
      detail = 'held by a classic Redis client, which cannot be notified; '
        .. 'use "now" to delete its lock' }
  end
  local item = L.item(theirs, L.live_waiters(c, ks))
  redis.call('DEL', name_of(ks))
  ks.foreign = nil
  L.offer_next(c, ks)
  return { status = @STATUS_OK@, items = { item }, now_ms = c.now, wall_ms = c.wall,
    fence = L.newest(ks) }
end

-- Merges the sorted keys of a listing with the keys of classic locks from names[at] on, each once.
-- whole: no key follows these. Also returns where the names continue.
L.classic_merge = function(keys, names, at, whole)
  local merged = {}
  for _, k in ipairs(keys) do
    while names[at] and L.bytes_before(names[at], k) do
      merged[#merged + 1], at = names[at], at + 1
    end
    if names[at] == k then at = at + 1 end
    merged[#merged + 1] = k
  end
  while whole and names[at] do
    merged[#merged + 1], at = names[at], at + 1
  end
  return merged, at
end

-- A waiter waits for a classic client: a sweep must check.
L.classic_queued = function(c, ks)
  if ks.foreign then redis.call('ZADD', c.tag .. ':lc', c.now, ks.tk) end
end

-- Those first that were checked longest ago.
L.classic_sweep = function(c, limit, counts)
  local index = c.tag .. ':lc'
  for _, tk in ipairs(redis.call('ZRANGE', index, 0, limit - 1)) do
    local t, k = tk:match('^([^%z]*)%z(.*)$')
    local ks = L.load(c, t, k)
    if ks.foreign and ks.waiters then
      redis.call('ZADD', index, c.now, tk)
    else
      redis.call('ZREM', index, tk)
      L.offer_next(c, ks, counts)
    end
  end
end

end
