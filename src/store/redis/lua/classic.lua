-- classic.lua: clients of the classic form, on the same pipelines (only when the store's URL says classic=yes):
--   SET pipeline_lock:TENANT:PIPELINE RUNID NX EX TTL, and compare-and-delete by value.
--
-- Such a string and the key pipeline:PIPELINE of a tenant are one lock. A string that is not ours is a lease of somebody else
-- (ks.foreign): nothing is granted beside it. Our exclusive leases set it, with their own expiry, to the id of their run, or to their holder;
-- it goes with them, if it still has that value. Race-free because looking and setting happen in one function call. Nobody tells us of a classic
-- client's release: waiters look when they repeat their acquire, and a sweep looks for them (lc).
do

local HELD, BROKEN, EXCLUSIVE = 3, 7, 0

-- The name of the string, which has no tag; nil for keys of other classes.
local function name_of(ks)
  local pipeline = ks.k:match('^pipeline:(.+)$')
  return pipeline and 'pipeline_lock:' .. ks.t .. ':' .. pipeline
end

-- What is there: a string, or false. What is no string is a lock as well (their SET NX fails at it), and never ours.
local function value_of(name)
  local value = redis.pcall('GET', name)
  if type(value) ~= 'table' then return value end
  return string.match(value.err, '^WRONGTYPE') and {} or redis.call('GET', name) -- fails again
end

-- A holder as it can be shown: a client may have written any bytes, but what is answered is JSON, for everybody in the batch. What
-- is not UTF-8, or has control characters, is shown as hex; all of it is cut to the 256 bytes of a holder.
local function shown(value)
  if type(value) == 'table' then return 'unknown (not a string)' end
  local n = 256
  while n > 253 and string.match(value, '^[\128-\191]', n + 1) do n = n - 1 end -- not within a character
  local text = string.sub(value, 1, n)
  local rest = text
  for _, character in ipairs({
    '[\194-\223][\128-\191]', '\224[\160-\191][\128-\191]', '[\225-\236\238\239][\128-\191][\128-\191]', '\237[\128-\159][\128-\191]',
    '\240[\144-\191][\128-\191][\128-\191]', '[\241-\243][\128-\191][\128-\191][\128-\191]', '\244[\128-\143][\128-\191][\128-\191]',
  }) do
    rest = string.gsub(rest, character, ' ')
  end
  if not string.find(rest, '[^ -~]') and not string.find(text, '\194[\128-\159]') then return text end
  return '0x' .. string.gsub(string.sub(value, 1, 127), '.', function(byte) return string.format('%02x', string.byte(byte)) end)
end

L.classic_look = function(c, ks)
  local name = name_of(ks)
  local value = name and value_of(name)
  if not value then return end
  if ks.alone and ks.alone.classic == value then return end
  local left = redis.call('PTTL', name)
  ks.foreign = {
    ks = ks, number = '0', holder = shown(value), state = HELD, mode = EXCLUSIVE, permits = 0, ttl_ms = math.max(left, 0), settle_ms = 0,
    since_ms = c.now, renewed_ms = c.now, due_ms = left >= 0 and c.now + left or nil, meta = '', place = '', reason = '',
  }
end

-- A string of somebody else while we hold the key: an operator has deleted ours, and a classic client came. Two must not go on.
L.classic_settle = function(c, ks)
  local l = ks.alone
  if not l or l.classic == '' then return end
  l.reason = 'a classic client has taken the key'
  wake_holders(c)
  L.lease_end(c, l, BROKEN)
end

-- A lease was granted, or changed: until it opens, the string is there.
L.classic_set = function(c, l)
  local name = l.mode == EXCLUSIVE and name_of(l.ks)
  if not name then return end
  if (l.classic or '') == '' then
    l.classic = l.run ~= '0' and R.run_id(c, l.run) or l.holder
  end
  local left = l.due_ms - c.now + (l.state == HELD and l.settle_ms or 0)
  redis.call('SET', name, l.classic, 'PX', N(math.max(left, 1)))
end

L.classic_clear = function(c, l)
  local name = l.classic and l.classic ~= '' and name_of(l.ks)
  if name and value_of(name) == l.classic then
    redis.call('DEL', name)
  end
end

-- Somebody waits for a classic client: a sweep is to look.
L.classic_queued = function(c, ks)
  if ks.foreign then redis.call('ZADD', c.tag .. ':lc', c.now, ks.tk) end
end

-- Those first that were not looked at longest.
L.classic_sweep = function(c, limit, counts)
  local index = c.tag .. ':lc'
  for _, tk in ipairs(redis.call('ZRANGE', index, 0, limit - 1)) do
    local t, k = tk:match('^([^%z]*)%z(.*)$')
    local ks = L.load(c, t, k)
    if ks.foreign and ks.waiters then
      redis.call('ZADD', index, c.now, tk)
    else
      redis.call('ZREM', index, tk)
      L.give_on(c, ks, counts)
    end
  end
end

end
