-- queue_show.lua: formats jobs for replies; get, list and purge.
do

local TEXT_BYTES_MAX = @TEXT_BYTES_MAX@ -- a listing leaves out what is larger
local PAGE = 200

-- ---- one job ------------------------------------------------------------------------------------

-- Cache of recurring pieces of replies, kept between calls up to a bound: converting numbers to
-- text is most of the cost of showing a job.
local ints, names, facts, births, touches, n_pieces = {}, {}, {}, {}, {}, 0

local function remember(pieces, key, text)
  if n_pieces == 2000 then
    ints, names, facts, births, touches, n_pieces = {}, {}, {}, {}, {}, 0
  else
    pieces[key], n_pieces = text, n_pieces + 1
  end
  return text
end

-- A recurring number: a small one, or a time that many jobs share.
function Q.int(x)
  return ints[x] or remember(ints, x, N(x))
end

-- The same for the name of a worker, as JSON.
local function show_worker(name)
  return names[name] or remember(names, name, cjson.encode(name))
end

-- What most jobs share with many others.
local function show_facts(j)
  local key = ((j[MAX_ATTEMPTS] * 1048576 + j[ATTEMPT]) * 128 + j[PROGRESS] + 1) * 64
    + j[LAST] * 8 + j[STATE]
  return facts[key] or remember(facts, key,
    string.format('"state":%d,"last":%d,"attempt":%d,"max_attempts":%d,"progress":%d',
    j[STATE], j[LAST], j[ATTEMPT], j[MAX_ATTEMPTS], j[PROGRESS]))
end

-- Two times that are often the same.
local function show_birth(j)
  local at = j[CREATED]
  if j[RUN_AT] ~= at then
    return ',"run_at_ms":' .. Q.int(j[RUN_AT]) .. ',"created_at_ms":' .. Q.int(at)
  end
  return births[at] or remember(births, at,
    string.format(',"run_at_ms":%d,"created_at_ms":%d', at, at))
end

local function show_touch(j)
  local at = j[UPDATED]
  if j[STARTED] ~= at then
    return ',"started_at_ms":' .. Q.int(j[STARTED]) .. ',"updated_at_ms":' .. Q.int(at)
  end
  return touches[at] or remember(touches, at,
    string.format(',"started_at_ms":%d,"updated_at_ms":%d', at, at))
end

local TEXTS = { [PARENT] = 'parent', [GROUP] = 'group', [UNIQUE_KEY] = 'unique_key',
  [ERROR] = 'error', [MESSAGE] = 'message' }

-- What few jobs have.
local function show_more(c, j)
  local more = {}
  for i, name in pairs(TEXTS) do
    if j[i] ~= '' then
      more[#more + 1] = ',"' .. name .. '":' .. cjson.encode(j[i])
    end
  end
  if j[IS_PARENT] == 1 then
    more[#more + 1] = string.format(
      ',"is_parent":1,"n_children":%d,"n_children_completed":%d,"n_children_failed":%d',
      redis.call('ZCARD', Q.children_key(c, j)), Q.n_children(c, j, 'c'), Q.n_children(c, j, 'f'))
  end
  if j[PRIORITY] ~= 0 then
    more[#more + 1] = ',"priority":' .. Q.int(j[PRIORITY])
  end
  if j[ASKED] == 1 then
    more[#more + 1] = ',"cancelled":1'
  end
  return table.concat(more)
end

-- A part of a reply: the job, payload and result (nil: not shown), and sizes of blobs as fields. It
-- is written directly as JSON.
function Q.show(c, j, payload, result, sizes)
  local more = sizes or ''
  if j[STATE] == @JOB_RUNNING@ then
    more = ',"expires_ms":' .. Q.int(j[EXPIRES]) .. more
  elseif j[STATE] >= @JOB_ENDED@ then
    more = ',"completed_at_ms":' .. Q.int(j[UPDATED]) .. more
  end
  if j[PARENT] ~= '' or j[GROUP] ~= '' or j[UNIQUE_KEY] ~= '' or j[ERROR] ~= '' or j[MESSAGE] ~= ''
    or j[IS_PARENT] == 1
    or j[PRIORITY] ~= 0 or j[ASKED] == 1 then
    more = more .. show_more(c, j)
  end
  local queue, id = j[QUEUE], j[ID]
  if j[TRAITS] % 2 == 1 then
    queue, id = string.sub(cjson.encode(queue), 2, -2), string.sub(cjson.encode(id), 2, -2)
  end
  local text = '{' .. show_facts(j) .. ',"queue":"' .. queue .. '","id":"' .. id
    .. '","worker":' .. show_worker(j[WORKER]) .. ',"token":' .. N(j[TOKEN])
    .. ',"seq":' .. N(j[SEQ]) .. show_birth(j) .. show_touch(j) .. more .. '}'
  return { text, payload or false, result or false }
end

-- The reply to an op that names a job: status, the job, and the other fields of the head.
function Q.answer(c, j, status, head)
  local parts = { Q.show(c, j) }
  if not head then
    return '{"status":' .. Q.int(status) .. ',"now_ms":' .. Q.int(c.now)
      .. ',"wall_ms":' .. Q.int(c.wall) .. '}', parts
  end
  head.status, head.now_ms, head.wall_ms = status, c.now, c.wall
  return head, parts
end

V.job_get = function(c, o)
  local j = Q.job(c, o.tenant, o.id)
  if not j then
    return { status = @STATUS_NOT_FOUND@ }
  end
  return { status = @STATUS_OK@, now_ms = c.now, wall_ms = c.wall },
    { Q.show(c, j, Q.payload(c, j), Q.result(c, j)) }
end

-- ---- pages --------------------------------------------------------------------------------------

local function has_state(states, state)
  return bit.band(states, bit.lshift(1, state)) ~= 0
end

-- The classes of q.jobs that contain jobs in one of these states, and whether some of them are in
-- another state: SCHEDULED ones whose time has come are READY.
local function classes_of(states)
  local classes = {}
  for state, class in pairs(Q.CLASS_OF) do
    local later = state == @JOB_SCHEDULED@
    if has_state(states, state) or later and has_state(states, @JOB_READY@) then
      classes[#classes + 1] = { class, later and not (has_state(states, @JOB_SCHEDULED@)
        and has_state(states, @JOB_READY@)) }
    end
  end
  return classes
end

-- Adds to `found` the next jobs of a class, at most n: { seq, id } each. from, to: bounds of their
-- seqs, or nil. is_meant(q, ids, seqs) returns those of the ids that match; nil: all do. look: how
-- many may be read, or nil. Returns the seq of the last one, if no more were.
local function gather(c, q, class, newest, from, to, n, is_meant, found, look)
  local n_found = 0
  while n_found < n do
    local ids, seqs = Q.ids_of_class(c, q, class, newest, from, to, PAGE)
    local last = #ids == PAGE and seqs[ids[PAGE]]
    ids = is_meant and is_meant(q, ids, seqs) or ids
    for i = 1, math.min(#ids, n - n_found) do
      found[#found + 1] = { seqs[ids[i]], ids[i] }
    end
    n_found = n_found + #ids
    look = look and look - PAGE
    if not last then
      return nil
    elseif look and look <= 0 and n_found < n then
      return last
    end
    if newest then
      to = last
    else
      from = last
    end
  end
end

-- The newest n jobs of the listed queues. Once n are known, another queue is searched only for
-- newer ones than the last of these. Also returns a seq, if some of those below were not read: then
-- none of them is returned.
local function newest(c, o, queues, n)
  local states = o.states or @JOB_BITS@
  local found, oldest, floor = {}, nil, nil
  local function is_meant(q, ids, seqs)
    if not ids[1] then return ids end
    local meant, places, due = {}, {}, has_state(states, @JOB_READY@)
    for i, id in ipairs(ids) do
      places[i] = struct.pack('>I8', seqs[id]) .. id
    end
    for i, run_at in ipairs(redis.call('ZMSCORE', Q.key(c, q, 'later'), unpack(places))) do
      if run_at and (tonumber(run_at) <= c.wall) == due then
        meant[#meant + 1] = ids[i]
      end
    end
    return meant
  end
  for _, q in ipairs(queues) do
    for _, class in ipairs(classes_of(states)) do
      local n_before = #found
      local cut = gather(c, q, class[1], true, oldest, o.after_number, n,
        class[2] and is_meant or nil, found, class[2] and n + @LOOK_MAX@)
      floor = cut and math.max(cut, floor or 0) or floor
      if #found > n_before then
        table.sort(found, function(a, b) return a[1] > b[1] end)
        for i = #found, n + 1, -1 do
          found[i] = nil
        end
        oldest = found[n] and found[n][1] or oldest
      end
    end
  end
  while floor and found[1] and found[#found][1] < floor do
    found[#found] = nil
  end
  return found, floor
end

local function queues_of(c, o)
  if o.key then
    return { Q.find(c, o.tenant, o.key) } -- an unknown one has no jobs
  end
  local queues = {}
  for _, name in ipairs(redis.call('ZRANGE', K(c, 'q.names', o.tenant), 0, -1)) do
    queues[#queues + 1] = Q.find(c, o.tenant, name)
  end
  return queues
end

-- A blob that is not too large, or nil and its size as a field.
local function small(name, n_bytes, blob, c, j)
  if n_bytes > TEXT_BYTES_MAX then
    return nil, string.format(',"%s":%d', name, n_bytes)
  end
  return blob(c, j), ''
end

V.job_list = function(c, o)
  local found, floor = newest(c, o, queues_of(c, o), o.limit + 1)
  local head, parts, ids = { status = @STATUS_OK@, now_ms = c.now, wall_ms = c.wall }, {}, {}
  for i = 1, math.min(#found, o.limit) do
    ids[i] = found[i][2]
  end
  for i, j in ipairs(Q.jobs(c, o.tenant, ids)) do
    local payload, size = small('payload_bytes', j[PAYLOAD_BYTES], Q.payload, c, j)
    local result, size2 = small('result_bytes', j[RESULT_BYTES], Q.result, c, j)
    parts[i] = Q.show(c, j, payload, result, size .. size2)
  end
  if #found > o.limit then
    head.next = { found[o.limit][2], N(found[o.limit][1]) }
  elseif floor then
    head.next = { '-', N(floor) } -- IL__NO_ID
  end
  return head, parts
end

-- ---- purge --------------------------------------------------------------------------------------

-- RUNNING is never among the states. The children of a live parent stay, and so does an ended one
-- that still has to release its children.
local function purgeable(c, o, q, n)
  local found = {}
  local function is_old(state, updated)
    return has_state(o.states, state) and c.wall - updated >= (o.older_ms or 0)
  end
  local function is_meant(_, ids)
    local meant = {}
    for _, j in ipairs(Q.jobs(c, q.tenant, ids, is_old)) do
      local p = Q.parent(c, j)
      if (not p or Q.ended(p)) and not (j[IS_PARENT] == 1 and Q.kin_left(c, j)) then
        meant[#meant + 1] = j[ID]
      end
    end
    return meant
  end
  for _, class in ipairs(classes_of(o.states)) do
    gather(c, q, class[1], false, nil, nil, n, is_meant, found)
  end
  table.sort(found, function(a, b) return a[1] < b[1] end)
  return found
end

V.job_purge = function(c, o)
  local q = Q.find(c, o.tenant, o.key)
  local found = q and purgeable(c, o, q, o.limit + 1) or {}
  local n, times = math.min(#found, o.limit), {}
  for i = 1, n do
    local j = Q.job(c, o.tenant, found[i][2])
    wake(c, j[TENANT], j[ID], '#job')
    if j[STATE] == @JOB_COMPLETED@ and j[EXPIRES] > 0 then
      times[j[EXPIRES]] = true -- an entry of j.many names it
    end
    Q.delete(c, q, j)
  end
  if n > 0 then
    Q.many_gone(c, q, times)
  end
  return { status = @STATUS_OK@, flags = #found > o.limit and @OUT_MORE@ or nil,
    sweep = { n_purged = n } }
end

end
