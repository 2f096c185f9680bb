-- apply.lua: the functions that the client calls; the last file of the library.
--
--   FCALL NAME_write 1 TAG FLAGS REQUEST BLOB [REQUEST BLOB …]
--   FLAGS: 'c' (classic) or '-', then the client's name (16 digits), so that a client is not
--   notified of its own wake-ups. With the test clock, the lease time and the wall time in ms
--   follow, each after a space.
--   -> an array for each executed request: head, its blob, then JSON, blob, blob for each part; a
--      missing blob is nil, or omitted at the end. Or an error: this request failed. Requests after
--      one that failed or asks back were not executed.
--
-- The most frequent requests are not JSON, because reading and writing JSON is half the cost of a
-- cheap request. A request that begins with a byte other than { is packed, and so are its usual
-- replies (the others are JSON as ever). src/store/redis/packed.c is the other side. (A and R have
-- no blob, and a single integer is not put into an array.)
--   A  acquire: ttl, settle, wait, tenant, key, holder, meta, place   -> the fence, an integer
--   R  release: fence, tenant, key, holder                            -> 0
--   F  finish: token, tenant, id                                      -> the row of the job; if
--                                                                        that is still RUNNING, its
--                                                                        front is that of the last
--                                                                        COMPLETED one before it
-- The reply of a claim that returns jobs is packed, too: an array of C flags now wall (wakes), then
-- for each job its id, its row, and its payload if the row does not contain it.
--
-- A batch is one call, since entering a function is half the cost of a cheap request. The client
-- decides how long it is; all other clients wait meanwhile.
--
-- NAME_free is the same function with the flag allow-oom, for requests that add nothing new.
-- NAME_own is the same for requests that may add something, but may also be a sign of life: it
-- serves what the holder already has, and answers FULL to the rest. NAME_read has no-writes, so it
-- works when the server refuses writes; it refuses by itself on a replica.
do

local function asks(head)
  if type(head) == 'table' then
    return head.ask
  end
  return type(head) == 'string' and string.find(head, '"ask":', 1, true)
end

-- Publishes whom to wake in the same call, so that no client can die between the change and the
-- notification. It is only a hint: a user who may not publish (no longer: x_hello checks) still
-- gets a reply. Jobs have separate messages: "SENDER jTENANT NUL ID NUL ID …".
local function tell(tag, flags, wakes, jobs)
  local channel, sender = tag .. ':wake', string.sub(flags, 2, 17)
  if wakes then
    redis.pcall('PUBLISH', channel, sender .. ' [' .. table.concat(wakes, ',') .. ']')
  end
  for i = 1, jobs and #jobs or 0, 2 do
    redis.pcall('PUBLISH', channel, sender .. ' j' .. jobs[i] .. '\0' .. jobs[i + 1])
  end
end

-- The head tells the caller.
local function put_wakes(head, wakes, told)
  local text = cjson.encode(wakes)
  told[#told + 1] = string.sub(text, 2, -2)
  if type(head) == 'string' then
    return '{"wake":' .. text .. ',' .. string.sub(head, 2)
  elseif head[1] then
    head[1] = head[1] .. text -- the jobs of a claim
    return head
  end
  head.wake = wakes
  return head
end

-- Numbers and arrays are packed replies, complete as they are.
local function reply_of(head, value, parts)
  if type(head) == 'number' then
    return head
  elseif type(head) ~= 'string' then
    if head[1] then
      return head
    end
    head = cjson.encode(head)
  end
  if not parts then
    return { head, value }
  end
  local out, n = { head, value or false }, 2
  for _, part in ipairs(parts) do
    local json = part[1]
    out[n + 1] = type(json) == 'string' and json or cjson.encode(json)
    out[n + 2], out[n + 3] = part[2] or false, part[3] or false
    n = n + 3
  end
  return out
end

-- The reply of a verb that fails: a bug, or rows that someone else has changed. The rest of the
-- batch must not suffer from it.
local function failed(why)
  return redis.error_reply('ERR interlock: ' .. tostring(type(why) == 'table' and why.err or why))
end

local function unknown()
  error('unknown verb')
end

-- Converts a verb's result to a reply; also returns whether the next requests may follow.
local function answer(c, told, ok, head, parts, value)
  if not ok then
    return failed(head), false
  end
  if c.wakes then
    head = put_wakes(head, c.wakes, told)
  end
  return reply_of(head, value, parts), not asks(head)
end

-- The verb of a packed request without a blob, or nil.
local function packed(request)
  local kind = string.byte(request)
  return kind == @PACKED_ACQUIRE@ and P.acquire or kind == @PACKED_RELEASE@ and P.release or nil
end

local function carry_out(c, request, blob, told)
  -- mutant tenant_ignored: local o = cjson.decode(request) o.tenant = 'default'
  local o = cjson.decode(request)
  return answer(c, told, pcall(V[o.op] or unknown, c, o, blob))
end

-- Runs the finishes from args[i] on that form one batch: returns where it ends, the number of
-- replies, and whether others may follow.
local function carry_out_finishes(c, args, i, replies, n, told)
  local b = Q.finish_read(c, args, i)
  while i <= b.last do
    local other = Q.finish_gather(c, b, i, args, replies, n)
    if b.n > 0 then
      local ok, why = pcall(Q.finish_write, c, b)
      for k = n + 1, ok and 0 or n + b.n do
        replies[k] = failed(why)
      end
      i, n = other, n + b.n
      if not ok then
        return i, n, false
      end
    end
    if other <= b.last then
      local follow
      n, i, c.wakes, c.woke_queue, c.woke_holders = n + 1, other + 2, false, false, false
      replies[n], follow = answer(c, told,
        pcall(V.job_finish, c, Q.finish_request(b, other), args[other + 1]))
      if not follow then
        return i, n, false
      end
    end
  end
  return i, n, true
end

local function time(c, flags)
  if #flags > 17 then
    local now, wall = string.match(flags, ' (%S+) (%S+)')
    -- mutant wall_clock_as_lease_time: c.test, c.now, c.wall = true, tonumber(wall), tonumber(wall)
    c.test, c.now, c.wall = true, tonumber(now), tonumber(wall)
    return
  end
  local t = redis.call('TIME')
  c.us = t[1] * 1000000 + t[2]
  c.now = math.floor(c.us / 1000)
  c.wall = c.now
end

-- Runs a batch, of which the first reply may be known.
local function apply_all(c, args, first, follow, told)
  local replies, n, i = { first }, first and 1 or 0, first and 3 or 2
  while follow and i <= #args do
    if n > 0 then
      c.state, c.wakes, c.woke_queue, c.woke_holders, c.expired, c.places =
        false, false, false, false, false, false
    end
    local verb = packed(args[i])
    if verb then
      n = n + 1
      replies[n], follow = answer(c, told, pcall(verb, c, args[i]))
      i = i + 1
    elseif string.byte(args[i]) == @PACKED_FINISH@ then
      i, n, follow = carry_out_finishes(c, args, i, replies, n, told)
    else
      n = n + 1
      replies[n], follow = carry_out(c, args[i], args[i + 1], told)
      i = i + 2
    end
  end
  if told[1] or c.told_jobs then
    tell(c.tag, args[1], told[1] and told, c.told_jobs)
  end
  return replies
end

local function apply(keys, args, read, own)
  -- Created with all its fields: a table that grows is reallocated. What a request leaves in it for
  -- itself is removed before the next.
  local c = {
    tag = keys[1], read = read, classic = string.byte(args[1]) == 99, test = false, now = 0,
    wall = 0, us = false, state = false,
    wakes = false, told_jobs = false, woke_queue = false, woke_holders = false, expired = false,
    places = false, own = own,
  }
  time(c, args[1])
  if read and is_replica(c) then
    return redis.error_reply('READONLY this server is a replica now')
  end
  -- A single usual request wakes no one, and its reply is a number: no more tables are needed.
  local verb = not args[3] and packed(args[2])
  if verb then
    local ok, head = pcall(verb, c, args[2])
    if ok and type(head) == 'number' then
      return head
    end
    local told = {}
    local first, follow = answer(c, told, ok, head)
    return apply_all(c, args, first, follow, told)
  end
  return apply_all(c, args, nil, true, {})
end

-- Would a sweep have something to do? Changes nothing.
V.x_overdue = function(c, o)
  for _, family in ipairs({ L, R, O, Q, C, H }) do
    if family.overdue and family.overdue(c) then
      return { status = @STATUS_OK@, overdue = 1 }
    end
  end
  return { status = @STATUS_OK@, overdue = 0 }
end

redis.register_function({
  function_name = NAME .. '_write',
  callback = function(keys, args) return apply(keys, args, false) end,
})
redis.register_function({
  function_name = NAME .. '_free',
  callback = function(keys, args) return apply(keys, args, false) end,
  flags = { 'allow-oom' },
})
redis.register_function({
  function_name = NAME .. '_own',
  callback = function(keys, args) return apply(keys, args, false, true) end,
  flags = { 'allow-oom' },
})
redis.register_function({
  function_name = NAME .. '_read',
  callback = function(keys, args) return apply(keys, args, true) end,
  flags = { 'no-writes' },
})

end
