-- once.lua: idempotency keys. The rules are in src/core/once.md.
--
-- Race-free because each op is one FCALL: a key cannot change between reading and writing it.
--
-- Keys, per tenant and key:
--   o    hash: attempt, token, print (the fingerprint, in hex), state (RUNNING, DONE), expires,
--        keep, purge, created, meta, before (of a takeover), code, answer. Only ops that show or
--        compare an answer read that field; renewing a claim does not touch it.
-- per tenant:
--   ok   sorted set of the keys, all with score 0, so ordered by their bytes: for `usage`
-- and for all of them:
--   oc   sorted set of the claims by when they are purged, in lease time: token, tenant, key
--   oa   the same for the answers, on the wall clock
-- No Redis expiry is used: the store's clock may be a test clock, and an answer may become visible
-- again if the wall clock is set back.
do

local RUNNING, DONE = '@ONCE_RUNNING@', '@ONCE_DONE@' -- as stored

local function key_of(c, o)
  return K(c, 'o', o.tenant, o.key)
end

-- Tokens have 16 digits, so entries that expire in the same millisecond are ordered by token.
local function member(o, token)
  return token .. '\0' .. o.tenant .. '\0' .. o.key
end

local function date_key(c, state)
  return K(c, state == DONE and 'oa' or 'oc')
end

-- What is stored, nil if nothing; `gone`: it has expired and counts as nothing.
local function load(c, o)
  local v = redis.call('HMGET', key_of(c, o), 'attempt', 'token', 'print', 'state', 'expires',
    'keep', 'purge', 'created',
    'meta', 'before', 'code')
  if not v[1] then
    return nil
  end
  local e = {
    attempt = v[1], token = v[2], print = v[3], state = v[4], expires = tonumber(v[5]),
    keep = tonumber(v[6]),
    purge = tonumber(v[7]), created = tonumber(v[8]), meta = v[9], before = v[10],
    code = tonumber(v[11]),
  }
  e.gone = (e.state == DONE and c.wall or c.now) >= e.purge
  return e
end

local function answer_of(c, o)
  return redis.call('HGET', key_of(c, o), 'answer')
end

-- Create a claim in place of `e`: an expired entry, a dead claim that is taken over (`takes`), or
-- nothing (nil). Returns its token.
local function claim(c, o, e, takes)
  local token = next_fence(c)
  local key = key_of(c, o)
  local expires = c.now + o.lease_ms
  local purge = N(expires + o.keep_ms)
  if e then
    redis.call('ZREM', date_key(c, e.state), member(o, e.token))
    redis.call('DEL', key)
  end
  redis.call('HSET', key, 'attempt', o.holder, 'token', token, 'print', o.fingerprint, 'state',
    RUNNING,
    'expires', N(expires), 'keep', N(o.keep_ms), 'purge', purge, 'created',
    N(takes and e.created or c.wall),
    'meta', o.meta or (takes and e.meta) or '', 'code', '0')
  if takes then
    redis.call('HSET', key, 'before', e.meta)
  end
  redis.call('ZADD', date_key(c, RUNNING), purge, member(o, token))
  redis.call('ZADD', K(c, 'ok', o.tenant), 0, o.key)
  return token
end

local function renew(c, o, e)
  local expires = c.now + o.lease_ms
  local purge = N(expires + o.keep_ms)
  redis.call('HSET', key_of(c, o), 'expires', N(expires), 'keep', N(o.keep_ms), 'purge', purge)
  redis.call('ZADD', date_key(c, RUNNING), purge, member(o, e.token))
end

-- An entry as shown to a caller that does not get the claim.
local function show(c, o, status, e)
  local head = { status = status, fence = e.token, meta = e.meta,
    age_ms = math.max(c.wall - e.created, 0) }
  if status == @STATUS_MISMATCH@ then
    head.say = 'other_request'
  elseif status == @STATUS_BUSY@ then
    head.remaining_ms = math.max(e.expires - c.now, 0)
  else
    head.remaining_ms, head.code = e.purge - c.wall, e.code
    return head, nil, answer_of(c, o)
  end
  return head
end

V.once_begin = function(c, o)
  local e = load(c, o)
  if not e or e.gone then
    -- a worker may be active under a claim that this server does not know
    local refused = c.own and full() or closed(c)
    if refused then
      return refused
    end
    return { status = @STATUS_OK@, fence = claim(c, o, e, false), remaining_ms = o.lease_ms,
      meta = '' }
  end
  if e.print ~= o.fingerprint then
    return show(c, o, @STATUS_MISMATCH@, e)
  end
  if e.state == DONE then
    return show(c, o, @STATUS_REPLAY@, e)
  end
  local head = { status = @STATUS_OK@, remaining_ms = o.lease_ms,
    age_ms = math.max(c.wall - e.created, 0) }
  -- mutant live_claim_taken_over: if c.now >= e.expires or e.attempt ~= o.holder then
  if c.now >= e.expires then
    -- or it may have been renewed
    local refused = c.own and e.attempt ~= o.holder and full() or closed(c)
    if refused then
      return refused
    end
    head.flags, head.meta = @OUT_TAKEOVER@, e.meta
    head.fence = claim(c, o, e, true)
  elseif e.attempt ~= o.holder then
    return show(c, o, @STATUS_BUSY@, e)
  else
    head.flags, head.meta =
      e.before and @OUT_RENEWED@ + @OUT_TAKEOVER@ or @OUT_RENEWED@, e.before or ''
    head.fence = e.token
    renew(c, o, e)
  end
  return head
end

V.once_get = function(c, o)
  local e = load(c, o)
  if not e or e.gone then
    return { status = @STATUS_NOT_FOUND@ }
  end
  return show(c, o, e.state == DONE and @STATUS_REPLAY@ or @STATUS_BUSY@, e)
end

-- The claim becomes the answer.
local function finish(c, o, e, data)
  local purge = N(c.wall + e.keep)
  redis.call('HSET', key_of(c, o), 'state', DONE, 'purge', purge, 'code', N(o.code or 0), 'answer',
    data)
  redis.call('ZREM', date_key(c, RUNNING), member(o, e.token))
  redis.call('ZADD', date_key(c, DONE), purge, member(o, e.token))
  wake(c, o.tenant, o.key, '#once')
  return { status = @STATUS_OK@, fence = e.token, remaining_ms = e.keep }
end

-- Does the op's attempt have this claim, with this token?
local function is_claim_of(e, o)
  return e.state == RUNNING and tonumber(e.token) == tonumber(o.fence) and e.attempt == o.holder
end

V.once_finish = function(c, o, data)
  local e = load(c, o)
  if not e or e.gone then
    return { status = @STATUS_STALE@, say = 'not_the_claim' }
  end
  if is_claim_of(e, o) and c.now < e.expires then
    return finish(c, o, e, data)
  end
  if e.state ~= DONE or tonumber(e.token) ~= tonumber(o.fence) then
    return { status = @STATUS_STALE@, fence = e.token, say = 'not_the_claim' }
  end
  if e.code ~= (o.code or 0) or answer_of(c, o) ~= data then
    return { status = @STATUS_MISMATCH@, fence = e.token, say = 'other_answer' }
  end
  return { status = @STATUS_OK@, fence = e.token, remaining_ms = e.purge - c.wall }
end

V.once_abandon = function(c, o)
  local e = load(c, o)
  if not e or e.gone then
    return { status = @STATUS_OK@ }
  end
  if not is_claim_of(e, o) then
    return { status = @STATUS_STALE@, fence = e.token, say = 'not_the_claim' }
  end
  redis.call('DEL', key_of(c, o))
  redis.call('ZREM', date_key(c, RUNNING), member(o, e.token))
  redis.call('ZREM', K(c, 'ok', o.tenant), o.key)
  wake(c, o.tenant, o.key, '#once')
  return { status = @STATUS_OK@ }
end

-- ---- retention ----------------------------------------------------------------------------------

-- Forget up to `limit` members of a sorted set that expired by `until_ms`: returns how many.
local function purge(c, dates, until_ms, limit)
  local due = redis.call('ZRANGEBYSCORE', dates, '-inf', N(until_ms), 'LIMIT', 0, limit)
  for _, m in ipairs(due) do
    local tenant, key = string.match(m, '^%d+%z([^%z]*)%z(.*)$')
    redis.call('UNLINK', K(c, 'o', tenant, key))
    redis.call('ZREM', K(c, 'ok', tenant), key)
    redis.call('ZREM', dates, m)
  end
  return #due
end

O.overdue = function(c)
  return redis.call('ZCOUNT', date_key(c, RUNNING), '-inf', N(c.now)) > 0
    or redis.call('ZCOUNT', date_key(c, DONE), '-inf', N(c.wall)) > 0
end

V.x_sweep_once = function(c, o)
  local n = purge(c, date_key(c, RUNNING), c.now, o.limit)
    + purge(c, date_key(c, DONE), c.wall, o.limit)
  return { status = @STATUS_OK@, sweep = { n_purged = n },
    flags = O.overdue(c) and @OUT_MORE@ or 0 }
end

end
