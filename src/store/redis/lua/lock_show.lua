-- lock_show.lua: get, list and check_fence. They change nothing, not even what is overdue: that is only left out.
do

local HELD = 3
local LIST_WAITERS = 2 -- enum il_op_flags
local PAGE_MAX = 1000
local CHUNK = 100 -- keys, or waiters, that a listing reads at once

-- Is a lease live at c.now? One that has expired while its key settles is.
local function lives(c, l)
  return l.due_ms > c.now or (l.state == HELD and l.settle_ms > 0 and l.due_ms + l.settle_ms > c.now)
end

-- Call `each` for the live leases of a key after a fence, oldest first, until it says false.
local function for_leases(c, ks, after, each)
  local page
  repeat
    page = L.lease_page(ks, after, CHUNK)
    for _, l in ipairs(page) do
      after = l.number
      if lives(c, l) and each(l) == false then return false end
    end
  until ks.alone or #page < CHUNK
  return true
end

-- The fence of the newest live lease of a key, or nil.
local function newest_live(c, ks)
  local before, page = '+inf', nil
  repeat
    page = L.lease_page_back(ks, before, CHUNK)
    for _, l in ipairs(page) do
      before = '(' .. l.number
      if lives(c, l) then return l.number end
    end
  until ks.alone or #page < CHUNK
end

V.get = function(c, o)
  local ks = L.load(c, o.tenant, o.key)
  local head = { status = S.NOT_HELD, now_ms = c.now, wall_ms = c.wall, items = {} }
  local n_waiters = L.live_waiters(c, ks)
  for_leases(c, ks, '0', function(l)
    head.items[#head.items + 1] = L.item(l, n_waiters)
    return #head.items < PAGE_MAX
  end)
  if #head.items > 0 then
    head.status, head.fence = S.OK, newest_live(c, ks)
  elseif ks.foreign then
    head.status, head.items = S.OK, { L.item(ks.foreign, n_waiters) }
  end
  return head
end

V.check_fence = function(c, o)
  local ks = L.load(c, o.tenant, o.key)
  local l = L.lease_of_fence(ks, o.fence)
  local current = l and l.state == HELD and l.due_ms > c.now
  return { status = current and S.OK or S.STALE, fence = newest_live(c, ks) }
end

-- ---- listing ---------------------------------------------------------------------------------------------------------

-- Put one more on the page. False: it is full, and `next` says where the next one begins.
local function put(c, head, o, h, n_waiters)
  if #head.items == o.limit then
    local last = head.items[o.limit]
    head.next = { last.key, last.number }
    return false
  end
  local item = L.item(h, n_waiters)
  item.key = h.ks.k
  head.items[#head.items + 1] = item
  return true
end

local function put_leases(c, head, o, ks, after)
  local n_waiters = L.live_waiters(c, ks)
  return for_leases(c, ks, N(after), function(l) return put(c, head, o, l, n_waiters) end)
end

-- In the order of the queue; those with a verdict are not in it.
local function put_waiters(c, head, o, ks, after)
  local n_waiters = L.live_waiters(c, ks)
  local page
  repeat
    page = L.queue_page(c, ks, N(after), CHUNK)
    for _, w in ipairs(page) do
      after = tonumber(w.number)
      if w.due_ms > c.now and not put(c, head, o, w, n_waiters) then return false end
    end
  until #page < CHUNK
  return true
end

-- Keys in the order of their bytes, from the cursor's on, which may have more to show.
V.list = function(c, o)
  local waiters = math.floor((o.flags or 0) / LIST_WAITERS) % 2 == 1
  local index = c.tag .. (waiters and ':lkw:' or ':lk:') .. o.tenant
  local prefix, after_key = o.prefix or '', o.after_key
  local from = '[' .. prefix
  if after_key and not L.bytes_before(after_key, prefix) then from = '[' .. after_key end
  local to = prefix == '' and '+' or '(' .. prefix .. '\255' -- a byte that no key has
  local head = { status = S.OK, items = {}, now_ms = c.now, wall_ms = c.wall }
  local keys
  repeat
    keys = redis.call('ZRANGEBYLEX', index, from, to, 'LIMIT', 0, CHUNK)
    for _, k in ipairs(keys) do
      local after = k == after_key and tonumber(o.after_number) or 0
      local put_key = waiters and put_waiters or put_leases
      if not put_key(c, head, o, L.load(c, o.tenant, k), after) then return head end
      from = '(' .. k
    end
  until #keys < CHUNK
  return head
end

end
