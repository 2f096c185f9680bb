-- queue_group.lua: groups with a limit: which jobs are in the claiming order, and which wait apart
-- until the group has room.
--
-- q.group has a member for each READY or claimed job of a group: group NUL lane place, where the
-- lanes are b: READY, and the group is full (also in q.full); n: claimed; r: READY (also in
-- q.ready). Invariant, for each group of a queue with a limit: if a job is in lane b, then n + r >=
-- limit, and every r comes before every b. So a claim takes from q.ready without counting, in the
-- right order, and never sees the backlog of a full group. A claim changes neither side of it. A
-- job enters when it becomes READY, and leaves when it stops being claimed or READY.
do

local NEVER = -1

function Q.group_member(j, lane)
  return j[GROUP] .. '\0' .. lane .. (lane == 'n' and j[ID] or Q.turn(j))
end

local function turn_before(a, b)
  local ap, at, as = struct.unpack('>I2I8I8', a)
  local bp, bt, bs = struct.unpack('>I2I8I8', b)
  if ap ~= bp then
    return ap < bp
  end
  if at ~= bt then
    return at < bt
  end
  return as < bs
end

-- How many jobs of the group are claimed, or READY and next to be claimed: lanes n and r.
local function n_inside(key, group)
  local n = redis.call('ZLEXCOUNT', key, '[' .. group .. '\0n', '(' .. group .. '\0s')
  -- mutant group_limit_off_by_one: return math.max(n - 1, 0)
  return n
end

-- The first turn of the jobs that wait for the group, or nil.
local function first_blocked(key, group)
  local m = redis.call('ZRANGEBYLEX', key, '[' .. group .. '\0b', '(' .. group .. '\0c',
    'LIMIT', 0, 1)[1]
  return m and string.sub(m, #group + 3)
end

-- The last turn of the jobs that can be claimed, or nil.
local function last_ready(key, group)
  local m = redis.call('ZREVRANGEBYLEX', key, '(' .. group .. '\0s', '[' .. group .. '\0r',
    'LIMIT', 0, 1)[1]
  return m and string.sub(m, #group + 3)
end

-- A READY job goes to lane b or r.
local function move(c, q, key, group, turn, lane)
  local other = lane == 'b' and 'r' or 'b'
  redis.call('ZREM', key, group .. '\0' .. other .. turn)
  redis.call('ZADD', key, 0, group .. '\0' .. lane .. turn)
  redis.call('ZREM', Q.key(c, q, lane == 'b' and 'ready' or 'full'), turn)
  redis.call('ZADD', Q.key(c, q, lane == 'b' and 'full' or 'ready'), 0, turn)
end

-- A job becomes READY: must it wait for its group?
local function is_blocked(c, q, j, turn)
  local limit, group = q.opts.group_limit, j[GROUP]
  if limit == NEVER then
    return false
  end
  local key = Q.key(c, q, 'group')
  if n_inside(key, group) < limit then
    -- One place is free. It goes to the first blocked job, if that comes before this one.
    local first = first_blocked(key, group)
    if not first or turn_before(turn, first) then
      return false
    end
    move(c, q, key, group, first, 'r')
    return true
  end
  -- None is free. This job takes the place of the last ready one, if it comes before that.
  local last = last_ready(key, group)
  if not last or turn_before(last, turn) then
    return true
  end
  move(c, q, key, group, last, 'b')
  return false
end

function Q.enter_ready(c, q, j)
  local turn = Q.turn(j)
  local blocked = j[GROUP] ~= '' and is_blocked(c, q, j, turn)
  if j[GROUP] ~= '' then
    redis.call('ZADD', Q.key(c, q, 'group'), 0,
      j[GROUP] .. '\0' .. (blocked and 'b' or 'r') .. turn)
  end
  redis.call('ZADD', Q.key(c, q, blocked and 'full' or 'ready'), 0, turn)
end

-- A job of the group no longer counts: the first one that waits takes its place.
function Q.group_leave(c, q, j)
  local limit, group = q.opts.group_limit, j[GROUP]
  if limit == NEVER then
    return
  end
  local key = Q.key(c, q, 'group')
  local first = first_blocked(key, group)
  if first and n_inside(key, group) < limit then
    move(c, q, key, group, first, 'r')
    Q.wake(c, q)
  end
end

-- The READY jobs of a group in claiming order: each r comes before each b. (A job that was just
-- moved to b is found there again, and stays.)
local function regroup_one(c, q, key, group)
  local limit = q.opts.group_limit
  local n = redis.call('ZLEXCOUNT', key, '[' .. group .. '\0n', '(' .. group .. '\0o')
  for _, lane in ipairs({ 'r', 'b' }) do
    for _, m in ipairs(redis.call('ZRANGEBYLEX', key, '[' .. group .. '\0' .. lane,
      '(' .. group .. '\0' .. lane .. '\255')) do
      local goes = (limit == NEVER or n < limit) and 'r' or 'b'
      n = n + 1
      if goes ~= lane then
        move(c, q, key, group, string.sub(m, #group + 3), goes)
      end
    end
  end
end

-- The limit of a queue's groups has changed: move each group's READY jobs to the right lanes.
function Q.regroup(c, q)
  local key, from = Q.key(c, q, 'group'), '-'
  while true do
    local m = redis.call('ZRANGEBYLEX', key, from, '+', 'LIMIT', 0, 1)[1]
    if not m then
      return
    end
    local group = string.match(m, '^([^%z]*)')
    regroup_one(c, q, key, group)
    from = '[' .. group .. '\1'
  end
end

end
