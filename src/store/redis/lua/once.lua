-- once.lua: idempotency keys, as src/core/once.md says.
--
-- Race-free because each op is one FCALL: nobody else changes a key between its reading and its writing.
--
-- Keys, per tenant and key:
--   o    hash: attempt, token, print (the fingerprint, in hex), state (1 RUNNING, 2 DONE), expires, keep, purge, created, meta, before (of a
--        takeover), code, answer. Only who shows or compares an answer reads that field; renewing a claim does not touch it.
-- and for all of them:
--   oc   sorted set of the claims by when they are gone, in lease time: token, tenant, key
--   oa   the same of the answers, on the wall clock
-- Nothing expires by itself: the clock of a store may be a test clock, and an answer may be seen again if the wall clock is set back.
do

local RUNNING, DONE = '1', '2'
local RENEWED, MORE, TAKEOVER = 1, 4, 128

local function key_of(c, o)
  return K(c, 'o', o.tenant, o.key)
end

-- Tokens have 16 digits, so what goes in the same millisecond goes by token.
local function member(o, token)
  return token .. '\0' .. o.tenant .. '\0' .. o.key
end

local function date_key(c, state)
  return K(c, state == DONE and 'oa' or 'oc')
end

-- What is stored, nil if there is nothing; `gone`: it is as if there were nothing.
local function load(c, o)
  local v = redis.call('HMGET', key_of(c, o), 'attempt', 'token', 'print', 'state', 'expires', 'keep', 'purge', 'created',
    'meta', 'before', 'code')
  if not v[1] then
    return nil
  end
  local e = {
    attempt = v[1], token = v[2], print = v[3], state = v[4], expires = tonumber(v[5]), keep = tonumber(v[6]),
    purge = tonumber(v[7]), created = tonumber(v[8]), meta = v[9], before = v[10], code = tonumber(v[11]),
  }
  e.gone = (e.state == DONE and c.wall or c.now) >= e.purge
  return e
end

local function answer_of(c, o)
  return redis.call('HGET', key_of(c, o), 'answer')
end

-- A new claim in the place of `e`: what is gone, a dead claim that is taken over (`takes`), or nothing (nil). Its token.
local function claim(c, o, e, takes)
  local token = next_fence(c)
  local key = key_of(c, o)
  local expires = c.now + o.ttl_ms
  local purge = N(expires + o.keep_ms)
  if e then
    redis.call('ZREM', date_key(c, e.state), member(o, e.token))
    redis.call('DEL', key)
  end
  redis.call('HSET', key, 'attempt', o.holder, 'token', token, 'print', o.fingerprint, 'state', RUNNING,
    'expires', N(expires), 'keep', N(o.keep_ms), 'purge', purge, 'created', N(takes and e.created or c.wall),
    'meta', o.meta or (takes and e.meta) or '', 'code', '0')
  if takes then
    redis.call('HSET', key, 'before', e.meta)
  end
  redis.call('ZADD', date_key(c, RUNNING), purge, member(o, token))
  return token
end

local function renew(c, o, e)
  local expires = c.now + o.ttl_ms
  local purge = N(expires + o.keep_ms)
  redis.call('HSET', key_of(c, o), 'expires', N(expires), 'keep', N(o.keep_ms), 'purge', purge)
  redis.call('ZADD', date_key(c, RUNNING), purge, member(o, e.token))
end

-- An entry as it is shown to somebody who does not get the claim.
local function show(c, o, status, e)
  local head = { status = status, fence = e.token, meta = e.meta, age_ms = math.max(c.wall - e.created, 0) }
  if status == S.MISMATCH then
    head.say = 'other_request'
  elseif status == S.BUSY then
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
    local refused = c.own and full() or closed(c) -- somebody may be at work under a claim that this server does not know of
    if refused then
      return refused
    end
    return { status = S.OK, fence = claim(c, o, e, false), remaining_ms = o.ttl_ms, meta = '' }
  end
  if e.print ~= o.fingerprint then
    return show(c, o, S.MISMATCH, e)
  end
  if e.state == DONE then
    return show(c, o, S.REPLAY, e)
  end
  local head = { status = S.OK, remaining_ms = o.ttl_ms, age_ms = math.max(c.wall - e.created, 0) }
  if c.now >= e.expires then
    local refused = c.own and e.attempt ~= o.holder and full() or closed(c) -- or it may have been renewed
    if refused then
      return refused
    end
    head.flags, head.meta = TAKEOVER, e.meta
    head.fence = claim(c, o, e, true)
  elseif e.attempt ~= o.holder then
    return show(c, o, S.BUSY, e)
  else
    head.flags, head.meta = e.before and RENEWED + TAKEOVER or RENEWED, e.before or ''
    head.fence = e.token
    renew(c, o, e)
  end
  return head
end

V.once_get = function(c, o)
  local e = load(c, o)
  if not e or e.gone then
    return { status = S.NOT_FOUND }
  end
  return show(c, o, e.state == DONE and S.REPLAY or S.BUSY, e)
end

-- The claim becomes the answer.
local function finish(c, o, e, data)
  local purge = N(c.wall + e.keep)
  redis.call('HSET', key_of(c, o), 'state', DONE, 'purge', purge, 'code', N(o.code or 0), 'answer', data)
  redis.call('ZREM', date_key(c, RUNNING), member(o, e.token))
  redis.call('ZADD', date_key(c, DONE), purge, member(o, e.token))
  wake(c, o.tenant, o.key, '#once')
  return { status = S.OK, fence = e.token, remaining_ms = e.keep }
end

-- Does the op's attempt have this claim, with this token?
local function is_claim_of(e, o)
  return e.state == RUNNING and tonumber(e.token) == tonumber(o.fence) and e.attempt == o.holder
end

V.once_finish = function(c, o, data)
  local e = load(c, o)
  if not e or e.gone then
    return { status = S.STALE, say = 'not_the_claim' }
  end
  if is_claim_of(e, o) and c.now < e.expires then
    return finish(c, o, e, data)
  end
  if e.state ~= DONE or tonumber(e.token) ~= tonumber(o.fence) then
    return { status = S.STALE, fence = e.token, say = 'not_the_claim' }
  end
  if e.code ~= (o.code or 0) or answer_of(c, o) ~= data then
    return { status = S.MISMATCH, fence = e.token, say = 'other_answer' }
  end
  return { status = S.OK, fence = e.token, remaining_ms = e.purge - c.wall }
end

V.once_abandon = function(c, o)
  local e = load(c, o)
  if not e or e.gone then
    return { status = S.OK }
  end
  if not is_claim_of(e, o) then
    return { status = S.STALE, fence = e.token, say = 'not_the_claim' }
  end
  redis.call('DEL', key_of(c, o))
  redis.call('ZREM', date_key(c, RUNNING), member(o, e.token))
  wake(c, o.tenant, o.key, '#once')
  return { status = S.OK }
end

-- ---- retention -------------------------------------------------------------------------------------------------------

-- Forget up to `limit` of those in a sorted set that went by `until_ms`: how many.
local function purge(c, dates, until_ms, limit)
  local due = redis.call('ZRANGEBYSCORE', dates, '-inf', N(until_ms), 'LIMIT', 0, limit)
  for _, m in ipairs(due) do
    redis.call('UNLINK', K(c, 'o', string.match(m, '^%d+%z(.*)$'))) -- tenant, NUL, key
    redis.call('ZREM', dates, m)
  end
  return #due
end

O.overdue = function(c)
  return redis.call('ZCOUNT', date_key(c, RUNNING), '-inf', N(c.now)) > 0
    or redis.call('ZCOUNT', date_key(c, DONE), '-inf', N(c.wall)) > 0
end

V.x_sweep_once = function(c, o)
  local n = purge(c, date_key(c, RUNNING), c.now, o.limit) + purge(c, date_key(c, DONE), c.wall, o.limit)
  return { status = S.OK, sweep = { n_purged = n }, flags = O.overdue(c) and MORE or 0 }
end

end
