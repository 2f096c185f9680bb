-- lock_show.lua: get, list and check_fence. They change nothing: overdue holds are skipped, not
-- expired.
do

local PAGE_MAX = 1000
local CHUNK = 100 -- keys, or waiters, that a listing reads at once

-- Is a lease live at c.now? One that has expired while its key settles is.
local function lives(c, l)
  return l.due_ms > c.now or (l.state == @LEASE_HELD@ and l.settle_ms > 0
    and l.due_ms + l.settle_ms > c.now)
end

-- Call `each` for the live leases of a key after a fence, oldest first, until it returns false.
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
  local head = { status = @STATUS_NOT_HELD@, now_ms = c.now, wall_ms = c.wall, items = {} }
  local n_waiters = L.live_waiters(c, ks)
  for_leases(c, ks, '0', function(l)
    head.items[#head.items + 1] = L.item(l, n_waiters)
    return #head.items < PAGE_MAX
  end)
  if #head.items > 0 then
    head.status, head.fence = @STATUS_OK@, newest_live(c, ks)
  elseif ks.foreign then
    head.status, head.items = @STATUS_OK@, { L.item(ks.foreign, n_waiters) }
  end
  return head
end

V.check_fence = function(c, o)
  local ks = L.load(c, o.tenant, o.key)
  local l = L.lease_of_fence(ks, o.fence)
  local current = l and l.state == @LEASE_HELD@ and l.due_ms > c.now
  return { status = current and @STATUS_OK@ or @STATUS_STALE@, fence = newest_live(c, ks) }
end

-- ---- listing ------------------------------------------------------------------------------------

-- Add one item to the page. False: it is full, and `next` says where the next one begins.
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

-- The holds of a key, as a listing iterates over them: pages of them, and which of them are
-- visible. Waiters with a verdict are not in the queue.
local LEASES = {
  page = function(_, ks, after) return L.lease_page(ks, after, CHUNK) end,
  is_seen = lives,
}
local WAITERS = {
  page = function(c, ks, after) return L.queue_page(c, ks, after, CHUNK) end,
  is_seen = function(c, w) return w.due_ms > c.now end,
}

-- Add the holds of a key to the page. left: how many rows may still be read. False: the page ends
-- here.
local function put_key(c, head, o, ks, after, kind, left)
  local n_waiters = L.live_waiters(c, ks)
  local page
  -- A classic client's lock has the number 0: a page that continues within its key has already
  -- shown it.
  if kind == LEASES and ks.foreign and ks.k ~= o.after_key and
    not put(c, head, o, ks.foreign, n_waiters) then return false end
  repeat
    page = kind.page(c, ks, after)
    for _, h in ipairs(page) do
      after, left.n = h.number, left.n - 1
      if kind.is_seen(c, h) and not put(c, head, o, h, n_waiters) then return false end
      if left.n == 0 then
        head.next = { ks.k, h.number }
        return false
      end
    end
  until ks.alone or #page < CHUNK
  return true
end

-- Keys ordered by their bytes, from the cursor's on, which may have more to show. classic: keys
-- that classic clients may hold, sorted; classic_last: the last one, if others follow it.
V.list = function(c, o)
  local waiters = math.floor((o.flags or 0) / @FLAG_LIST_WAITERS@) % 2 == 1
  local index = c.tag .. (waiters and ':lkw:' or ':lk:') .. o.tenant
  local prefix, after_key = o.prefix or '', o.after_key
  local from = '[' .. prefix
  if after_key and not L.bytes_before(after_key, prefix) then from = '[' .. after_key end
  local to = prefix == '' and '+' or '(' .. prefix .. '\255' -- a byte that no key has
  local head = { status = @STATUS_OK@, items = {}, now_ms = c.now, wall_ms = c.wall }
  local kind, left = waiters and WAITERS or LEASES, { n = o.limit + 1 + @LOOK_MAX@ }
  local names, at = o.classic or {}, 1
  local keys, merged
  repeat
    keys = redis.call('ZRANGEBYLEX', index, from, to, 'LIMIT', 0, CHUNK)
    merged, at = L.classic_merge(keys, names, at, #keys < CHUNK)
    for _, k in ipairs(merged) do
      local after = k == after_key and tonumber(o.after_number) or 0
      if not put_key(c, head, o, L.load(c, o.tenant, k), N(after), kind, left) then return head end
      from = '(' .. k
      if k == o.classic_last then
        head.next = { k, N(L.NEVER) }
        return head
      end
    end
  until #keys < CHUNK
  return head
end

end
