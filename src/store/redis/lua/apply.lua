-- apply.lua: the functions that the client calls; the last file of the library.
--
--   FCALL NAME_write 1 TAG FLAGS NOW WALL REQUEST BLOB [REQUEST BLOB …]
--   FLAGS: 'c' (classic) or '-', and the client's name: what it wakes is not told to itself.
--   NOW, WALL: ms of the test clock, or '' for the server's.
--   -> for each request that was carried out an array: head, its blob, then for each part JSON, blob, blob; a blob that is not there is nil,
--      and at the end left out. Or an error: this request failed. What stands behind one that failed or asks back was not carried out.
--
-- A batch is one call: half of what a cheap request costs is the way into a function. It is as long as the client makes it; everybody else
-- waits meanwhile.
--
-- NAME_free is the same function with the flag allow-oom, for all that brings nothing new; NAME_read has no-writes.
do

local function asks(head)
  if type(head) == 'table' then
    return head.ask
  end
  return string.find(head, '"ask":', 1, true)
end

-- Other processes are told whom to wake in the same call, so that nobody can die between the change and the news of it. That is a hint: a
-- user who may not publish still gets an answer.
local function tell(tag, wakes, flags)
  redis.pcall('PUBLISH', tag .. ':wake', string.sub(flags, 2) .. ' [' .. table.concat(wakes, ',') .. ']')
end

-- The head says it to the caller.
local function put_wakes(head, wakes, told)
  local text = cjson.encode(wakes)
  told[#told + 1] = string.sub(text, 2, -2)
  if type(head) == 'string' then
    return '{"wake":' .. text .. ',' .. string.sub(head, 2)
  end
  head.wake = wakes
  return head
end

local function reply_of(head, value, parts)
  if type(head) ~= 'string' then
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

-- What a verb says when it breaks: a bug, or rows that somebody else has changed. The others of the batch must not suffer from it.
local function failed(why)
  return redis.error_reply('ERR interlock: ' .. tostring(type(why) == 'table' and why.err or why))
end

local function unknown()
  error('there is no such verb')
end

local function apply(keys, args, read)
  local tag, classic, test = keys[1], string.byte(args[1]) == 99, args[2] ~= ''
  local us, now, wall = false, false, false
  if test then
    now, wall = tonumber(args[2]), tonumber(args[3])
  else
    local t = redis.call('TIME')
    us = t[1] * 1000000 + t[2]
    now = math.floor(us / 1000)
    wall = now
  end
  local replies, told, n = {}, false, 0
  for i = 4, #args, 2 do
    local o = cjson.decode(args[i])
    -- With all the fields that it will have: a table that grows is made anew.
    local c = { tag = tag, read = read, classic = classic, test = test, now = now, wall = wall, us = us, state = false, wakes = false }
    local ok, head, parts, value = pcall(V[o.op] or unknown, c, o, args[i + 1])
    if ok and c.wakes then
      told = told or {}
      head = put_wakes(head, c.wakes, told)
    end
    n = n + 1
    replies[n] = ok and reply_of(head, value, parts) or failed(head)
    if not ok or asks(head) then
      break
    end
  end
  if told then
    tell(tag, told, args[1])
  end
  return replies
end

-- Would a sweep find something? Changes nothing.
V.x_overdue = function(c, o)
  for _, family in ipairs({ L, R, O, Q, C }) do
    if family.overdue and family.overdue(c) then
      return { status = S.OK, overdue = 1 }
    end
  end
  return { status = S.OK, overdue = 0 }
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
  function_name = NAME .. '_read',
  callback = function(keys, args) return apply(keys, args, true) end,
  flags = { 'no-writes' },
})

end
