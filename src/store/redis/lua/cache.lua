-- cache.lua: cached values and their builds. The rules are in src/core/cache.md.
--
-- Race-free because each op is one FCALL: a key cannot change between reading and writing it. get
-- writes nothing, so a hit of a caller that tries get first is a read.
--
-- Keys, per tenant and key:
--   cv   hash, the last fill: filled (token), began, fresh, stale, purge (all on the wall clock),
--        build (ms), code, negative, bytes, value. The value itself is read only where it is shown
--        or compared.
--   cb   hash, the build, dead or alive: holder, token, expires, began (lease time), wall (clock
--        when it began)
-- per tenant:
--   cvk, cbk   sorted sets of the keys of values and of builds, all with score 0, so ordered by
--              their bytes: for counting by prefix
-- and for all of them:
--   cvd  sorted set of the values by purge (wall clock): token, tenant, key
--   cbd  the same for the builds, by expires (lease time)
-- No Redis expiry is used: the store's clock may be a test clock, and a value may become visible
-- again if the wall clock is set back.
do

local KEEP_MS = @CACHE_KEEP_MS@

local function has(flags, flag)
  return math.floor((flags or 0) / flag) % 2 == 1
end

-- Tokens have 16 digits, so entries that expire in the same millisecond are ordered by token.
local function member(o, token)
  return token .. '\0' .. o.tenant .. '\0' .. o.key
end

-- What is stored, nil if nothing. Includes expired values and dead builds, marked as such.
local function load_value(c, o)
  local v = redis.call('HMGET', K(c, 'cv', o.tenant, o.key), 'filled', 'began', 'fresh', 'stale',
    'purge', 'build', 'code', 'negative')
  if not v[1] then
    return nil
  end
  return {
    filled = v[1], began = tonumber(v[2]), fresh = tonumber(v[3]), stale = tonumber(v[4]),
    purge = tonumber(v[5]),
    build = tonumber(v[6]), code = tonumber(v[7]), negative = v[8] == '1',
    gone = c.wall >= tonumber(v[5]),
  }
end

local function load_build(c, o)
  local v = redis.call('HMGET', K(c, 'cb', o.tenant, o.key), 'holder', 'token', 'expires', 'began',
    'wall')
  if not v[1] then
    return nil
  end
  return {
    holder = v[1], token = v[2], expires = tonumber(v[3]), began = tonumber(v[4]),
    wall = tonumber(v[5]),
    dead = c.now >= tonumber(v[3]),
  }
end

local function bytes_of(c, o)
  return redis.call('HGET', K(c, 'cv', o.tenant, o.key), 'value')
end

local function value_delete(c, o, v)
  redis.call('UNLINK', K(c, 'cv', o.tenant, o.key))
  redis.call('ZREM', K(c, 'cvk', o.tenant), o.key)
  redis.call('ZREM', K(c, 'cvd'), member(o, v.filled))
end

local function build_delete(c, o, b)
  redis.call('DEL', K(c, 'cb', o.tenant, o.key))
  redis.call('ZREM', K(c, 'cbk', o.tenant), o.key)
  redis.call('ZREM', K(c, 'cbd'), member(o, b.token))
end

-- ---- lookup and get -----------------------------------------------------------------------------

-- Is it time for an early refresh? (build * early) >> 16, like il__cache_is_early(), in two halves:
-- doubles keep 53 bits.
local function is_early(o, left_ms, build_ms)
  if not o.early then
    return false
  end
  local build = math.min(build_ms, @DELAY_MS_MAX@)
  local low = build % 65536
  return left_ms <= (build - low) / 65536 * o.early + math.floor(low * o.early / 65536)
end

-- The fields of all replies that have a value.
local function show(c, o, head, v)
  head.age_ms, head.code = math.max(c.wall - v.began, 0), v.code
  if v.negative then
    head.flags = (head.flags or 0) + @OUT_NEGATIVE@
  end
  return head, nil, bytes_of(c, o)
end

local function hit(c, o, v, early)
  return show(c, o, {
    status = @STATUS_HIT@, fence = v.filled, remaining_ms = math.max(v.fresh - c.wall, 0),
    flags = early and @OUT_EARLY@ or 0,
  }, v)
end

-- Extend the build until now + lease.
local function renew(c, o, b)
  local expires = N(c.now + o.lease_ms)
  redis.call('HSET', K(c, 'cb', o.tenant, o.key), 'expires', expires)
  redis.call('ZADD', K(c, 'cbd'), expires, member(o, b.token))
end

-- Create a build in place of a dead one, or of none (nil): returns its token.
local function build_add(c, o, dead)
  local token = next_fence(c)
  local expires = N(c.now + o.lease_ms)
  if dead then
    redis.call('ZREM', K(c, 'cbd'), member(o, dead.token))
  end
  redis.call('HSET', K(c, 'cb', o.tenant, o.key), 'holder', o.holder, 'token', token, 'expires',
    expires, 'began', N(c.now),
    'wall', N(c.wall))
  redis.call('ZADD', K(c, 'cbk', o.tenant), 0, o.key)
  redis.call('ZADD', K(c, 'cbd'), expires, member(o, token))
  return token
end

-- v: the value unless it has expired; own: this holder's build, which continues, or nil; dead: a
-- dead one, or nil.
local function lead(c, o, v, own, dead)
  local head = { status = @STATUS_LEAD@, remaining_ms = o.lease_ms,
    flags = own and @OUT_RENEWED@ or 0 }
  if own then
    renew(c, o, own)
    head.fence = own.token
  else
    head.fence = build_add(c, o, dead)
  end
  if v and c.wall < v.fresh then
    head.flags = head.flags + @OUT_EARLY@
  end
  if v and c.wall < v.stale then
    return show(c, o, head, v)
  end
  return head
end

-- Both ops; only a lookup may lead, and thus write.
local function look(c, o)
  local may_build = o.op == 'cache_lookup'
  local v = load_value(c, o)
  v = v and not v.gone and v or nil
  if not may_build and v and c.wall < v.fresh and not is_early(o, v.fresh - c.wall, v.build) then
    return hit(c, o, v, false) -- a plain hit: nobody cares who builds
  end
  local stored = load_build(c, o)
  local b = stored and not stored.dead and stored or nil

  if may_build and b and b.holder == o.holder then
    return lead(c, o, v, b)
  end
  if v and o.fence and tonumber(v.filled) >= tonumber(o.fence) then
    return hit(c, o, v, false) -- however old: it is the one that was waited for
  end
  if v and c.wall < v.fresh then
    local early = not b and is_early(o, v.fresh - c.wall, v.build)
    if early and may_build then
      return lead(c, o, v, nil, stored)
    end
    return hit(c, o, v, early)
  end
  if v and c.wall < v.stale and (b or not may_build) then
    return show(c, o, { status = @STATUS_STALE_HIT@, fence = b and b.token or 0,
      remaining_ms = v.stale - c.wall }, v)
  end
  if b then
    return { status = @STATUS_WAIT@, fence = b.token, remaining_ms = b.expires - c.now }
  end
  if may_build then
    return lead(c, o, v, nil, stored)
  end
  return { status = @STATUS_NOT_FOUND@ }
end

V.cache_lookup = look
V.cache_get = look

-- ---- fill, abandon, drop ------------------------------------------------------------------------

-- Store the value that the build b made, in place of `old` (or nil): returns how long it is fresh.
local function value_put(c, o, data, b, old)
  -- mutant fresh_from_the_end: local fresh = c.wall + o.ttl_ms
  local fresh = b.wall + o.ttl_ms
  local stale = fresh + (o.grace_ms or 0)
  local purge = N(math.max(stale, c.wall + KEEP_MS))
  if old then
    redis.call('ZREM', K(c, 'cvd'), member(o, old.filled))
  end
  redis.call('HSET', K(c, 'cv', o.tenant, o.key), 'filled', b.token, 'began', N(b.wall), 'fresh',
    N(fresh), 'stale', N(stale),
    'purge', purge, 'build', N(math.max(c.now - b.began, 1)), 'code', N(o.code or 0),
    'negative', has(o.flags, @FLAG_CACHE_NEGATIVE@) and '1' or '0', 'bytes', N(#data), 'value',
    data)
  redis.call('ZADD', K(c, 'cvk', o.tenant), 0, o.key)
  redis.call('ZADD', K(c, 'cvd'), purge, member(o, b.token))
  return math.max(fresh - c.wall, 0)
end

-- This op's build, dead or alive.
local function is_build_of(b, o)
  return b and tonumber(b.token) == tonumber(o.fence) and b.holder == o.holder
end

V.cache_fill = function(c, o, data)
  local v, b = load_value(c, o), load_build(c, o)
  if is_build_of(b, o) and not b.dead then
    local rest = value_put(c, o, data, b, v)
    build_delete(c, o, b)
    wake(c, o.tenant, o.key, '#cache')
    return { status = @STATUS_OK@, fence = b.token, remaining_ms = rest }
  end
  if v and not v.gone and tonumber(v.filled) == tonumber(o.fence) then
    local head = { status = @STATUS_OK@, fence = v.filled,
      remaining_ms = math.max(v.fresh - c.wall, 0) }
    if v.negative ~= has(o.flags, @FLAG_CACHE_NEGATIVE@) or v.code ~= (o.code or 0)
      or bytes_of(c, o) ~= data then
      head.status, head.say = @STATUS_MISMATCH@, 'other_value'
    end
    return head
  end
  local token = b and not b.dead and b.token or v and not v.gone and v.filled or 0
  return { status = @STATUS_STALE@, fence = token, say = 'not_the_build' }
end

V.cache_abandon = function(c, o)
  local b = load_build(c, o)
  if is_build_of(b, o) then
    build_delete(c, o, b)
    wake(c, o.tenant, o.key, '#cache')
  elseif b and not b.dead then
    return { status = @STATUS_STALE@, fence = b.token, say = 'not_the_build' }
  end
  return { status = @STATUS_OK@ }
end

V.cache_drop = function(c, o)
  local v, b = load_value(c, o), load_build(c, o)
  if v and (v.gone or not has(o.flags, @FLAG_DROP_STALE@)) then
    value_delete(c, o, v)
  elseif v and c.wall < v.fresh then -- stale from now on, with its grace
    local grace = v.stale - v.fresh
    local purge = N(c.wall + math.max(grace, KEEP_MS))
    redis.call('HSET', K(c, 'cv', o.tenant, o.key), 'fresh', N(c.wall), 'stale', N(c.wall + grace),
      'purge', purge)
    redis.call('ZADD', K(c, 'cvd'), purge, member(o, v.filled))
  end
  -- mutant fill_after_drop_accepted: if false then
  if b then -- void: its fill will find no build with its token
    build_delete(c, o, b)
    wake(c, o.tenant, o.key, '#cache')
    wake_holders(c) -- whoever builds it is told
  end
  return { status = @STATUS_OK@ }
end

-- ---- counting -----------------------------------------------------------------------------------

-- The keys of a sorted set by bytes that begin with the prefix, after the cursor's; at most n.
local function next_keys(index, o, n)
  return Q.names(index, { prefix = o.prefix, after_key = o.after_key }, n)
end

-- How many of two sorted lists of keys are among the first n keys of both; the last of these, and
-- whether there are more.
local function merge_keys(a, b, n)
  local i, k, last = 1, 1, nil
  for _ = 1, n do
    local x, y = a[i], b[k]
    if not (x or y) then break end
    last = not y and x or not x and y or L.bytes_before(y, x) and y or x
    if x == last then i = i + 1 end
    if y == last then k = k + 1 end
  end
  return i - 1, k - 1, last, (a[i] or b[k]) ~= nil
end

local function count_value(c, o, key, info)
  local v = redis.call('HMGET', K(c, 'cv', o.tenant, key), 'fresh', 'stale', 'negative', 'bytes')
  local fresh = c.wall < tonumber(v[1])
  if fresh or c.wall < tonumber(v[2]) then
    info.n_entries = info.n_entries + 1
    info.n_bytes = info.n_bytes + tonumber(v[4])
    info.n_fresh = info.n_fresh + (fresh and 1 or 0)
    info.n_stale = info.n_stale + (fresh and 0 or 1)
    info.n_negative = info.n_negative + tonumber(v[3])
  end
end

-- A page of keys that have a value or a build.
V.cache_stats = function(c, o)
  local info = { n_entries = 0, n_bytes = 0, n_fresh = 0, n_stale = 0, n_negative = 0,
    n_building = 0 }
  local values = next_keys(K(c, 'cvk', o.tenant), o, o.limit + 1)
  local builds = next_keys(K(c, 'cbk', o.tenant), o, o.limit + 1)
  local n_values, n_builds, last, more = merge_keys(values, builds, o.limit)
  for i = 1, n_values do
    count_value(c, o, values[i], info)
  end
  for i = 1, n_builds do
    if c.now < tonumber(redis.call('HGET', K(c, 'cb', o.tenant, builds[i]), 'expires')) then
      info.n_building = info.n_building + 1
    end
  end
  return { status = @STATUS_OK@, cache = info, next = more and { last, 0 } or nil }
end

-- ---- retention ----------------------------------------------------------------------------------

-- Delete up to `limit` members of a sorted set that expired by `until_ms`; `delete` removes their
-- data. Returns how many.
local function purge(c, dates, until_ms, limit, delete)
  local due = redis.call('ZRANGEBYSCORE', dates, '-inf', N(until_ms), 'LIMIT', 0, limit)
  for _, m in ipairs(due) do
    local token, tenant, key = string.match(m, '^(%d+)%z([^%z]*)%z(.*)$')
    delete(c, { tenant = tenant, key = key }, { filled = token, token = token })
  end
  return #due
end

C.overdue = function(c)
  return redis.call('ZCOUNT', K(c, 'cvd'), '-inf', N(c.wall)) > 0
    or redis.call('ZCOUNT', K(c, 'cbd'), '-inf', N(c.now)) > 0
end

-- Expired values and dead builds, which are no longer visible. Only values count as purged.
V.x_sweep_cache = function(c, o)
  local n = purge(c, K(c, 'cvd'), c.wall, o.limit, value_delete)
  purge(c, K(c, 'cbd'), c.now, o.limit, build_delete)
  return { status = @STATUS_OK@, sweep = { n_purged = n },
    flags = C.overdue(c) and @OUT_MORE@ or 0 }
end

end
