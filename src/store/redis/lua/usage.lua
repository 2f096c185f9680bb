-- usage.lua: how much a tenant stores, one page of rows at a time; src/core/usage.h describes the
-- paging. Only lengths are read, never values. All other clients wait meanwhile, so a page has at
-- most 200 rows, however many were requested.
do

local PAGE = 200
local LOG_KEPT = @LOG_BYTES_MAX@

local function length(key, ...)
  local n = 0
  for i = 1, select('#', ...) do
    n = n + redis.call('HSTRLEN', key, (select(i, ...)))
  end
  return n
end

-- A page of the names in a sorted set. `bytes`: returns the size of one of them.
local function add_names(c, u, names, bytes)
  local from = u.name == '' and '-' or '(' .. u.name
  local page = redis.call('ZRANGEBYLEX', names, from, '+', 'LIMIT', 0, u.left)
  for _, name in ipairs(page) do
    u.n_rows, u.n_bytes = u.n_rows + 1, u.n_bytes + #name + bytes(name)
    u.left, u.name = u.left - 1, name
  end
end

local KINDS = {
  [@USAGE_CACHE@] = function(c, u)
    add_names(c, u, K(c, 'cvk', u.tenant), function(key)
      return length(K(c, 'cv', u.tenant, key), 'value')
    end)
  end,

  [@USAGE_ONCE@] = function(c, u)
    add_names(c, u, K(c, 'ok', u.tenant), function(key)
      return length(K(c, 'o', u.tenant, key), 'meta', 'answer')
    end)
  end,

  -- Queue by queue, by the score of q.jobs. A queue counts as one visited row, because a tenant may
  -- have many empty ones.
  [@USAGE_JOBS@] = function(c, u)
    local names = K(c, 'q.names', u.tenant)
    local queue = u.name
    if queue == '' then
      queue = redis.call('ZRANGEBYLEX', names, '-', '+', 'LIMIT', 0, 1)[1]
    end
    while queue and u.left > 0 do
      local page = redis.call('ZRANGEBYSCORE', K(c, 'q.jobs', u.tenant, queue), '(' .. N(u.number),
        '+inf', 'WITHSCORES', 'LIMIT', 0, u.left)
      u.name = queue
      for i = 1, #page, 2 do
        local id = page[i]
        u.n_rows, u.left, u.number = u.n_rows + 1, u.left - 1, tonumber(page[i + 1])
        u.n_bytes = u.n_bytes + #id + redis.call('STRLEN', Q.job_key(c, u.tenant, id)) +
          redis.call('STRLEN', K(c, 'j.data', u.tenant, id)) +
          redis.call('STRLEN', K(c, 'j.result', u.tenant, id))
      end
      if u.left > 0 then
        queue = redis.call('ZRANGEBYLEX', names, '(' .. queue, '+', 'LIMIT', 0, 1)[1]
        if queue then
          u.name, u.number, u.left = queue, 0, u.left - 1
        end
      end
    end
  end,

  -- Class by class, by seq.
  [@USAGE_RUNS@] = function(c, u)
    local reached = u.name == ''
    for _, class in ipairs(R.CLASSES) do
      reached = reached or class == u.name
      if reached and u.left > 0 then
        if class ~= u.name then u.number = 0 end
        local page = redis.call('ZRANGEBYSCORE', K(c, 'ra', u.tenant, class), '(' .. N(u.number),
          '+inf', 'WITHSCORES', 'LIMIT', 0, u.left)
        u.name = class
        for i = 1, #page, 2 do
          u.number = tonumber(page[i + 1])
          local row = K(c, 'r', N(u.number))
          u.n_rows, u.left = u.n_rows + 1, u.left - 1
          local log = tonumber(redis.call('HGET', row, 'log_bytes') or '0')
          u.n_bytes = u.n_bytes + length(row, 'id', 'meta', 'error') + math.min(log, LOG_KEPT)
        end
      end
    end
  end,

  -- The row of a schedule is one packed string.
  [@USAGE_CRONS@] = function(c, u)
    add_names(c, u, K(c, 'cron.names', u.tenant), function(name)
      return redis.call('STRLEN', K(c, 'cron', u.tenant, name))
    end)
  end,
}

V.usage = function(c, o)
  local u = {
    tenant = o.tenant, left = math.min(o.limit, PAGE), n_rows = 0, n_bytes = 0,
    name = o.after_key or '', number = o.after_number or 0,
  }
  local head = { status = @STATUS_OK@ }
  for kind = o.kind or @USAGE_CACHE@, @USAGE_CRONS@ do
    KINDS[kind](c, u)
    if u.left == 0 then
      head.kind, head.next = kind, { u.name, N(u.number) }
      break
    end
    u.name, u.number = '', 0
  end
  head.usage = { n_rows = u.n_rows, n_bytes = u.n_bytes }
  return head
end

end
