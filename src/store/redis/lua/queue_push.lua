-- queue_push.lua: push. The decision table is in src/core/queue.md.
do

-- The id exists: was it this very push?
local function push_again(c, o, data, j)
  Q.recover(c, Q.of(c, j), j)
  if j[QUEUE] == o.key and Q.payload(c, j) == data then
    return Q.answer(c, j, @STATUS_OK@, { flags = @OUT_RENEWED@ })
  end
  return Q.answer(c, j, @STATUS_MISMATCH@, { say = 'other_job' })
end

-- Can the parent get one more child? nil, or the head that says why not.
local function refuse_child(c, p)
  if not p then
    return { status = @STATUS_NOT_FOUND@, say = 'no_parent' }
  elseif p[IS_PARENT] == 0 then
    return { status = @STATUS_STATE@, say = 'not_a_parent' }
  elseif Q.ended(p) then
    return { status = @STATUS_STATE@, say = 'parent_ended' }
  elseif p[SEALED] == 1 then
    return { status = @STATUS_STATE@, say = 'parent_sealed' }
  elseif p[N_CHILDREN] > 0 and redis.call('ZCARD', Q.children_key(c, p)) >= p[N_CHILDREN] then
    -- children of a live parent are not purged, so all that came exist
    return { status = @STATUS_LIMIT@, say = 'parent_full' }
  end
  return nil
end

-- Push a job whose id does not exist, into its queue. `p`: its parent, or nil.
function Q.push_new(c, q, o, data, p)
  local is_parent = bit.band(o.flags or 0, @FLAG_PUSH_PARENT@) ~= 0
  local run_at = o.run_at_ms or c.wall + (o.delay_ms or 0)
  local j = Q.new_job(q.tenant, o.id, q.name)
  j[SEQ], j[UP] = tonumber(next_ticket(c)), p or false
  j[STATE] = is_parent and @JOB_ON_PARENT@ or run_at > c.wall and @JOB_ON_DELAY@ or @JOB_ON_PUSH@
  j[RUN_AT], j[CREATED], j[UPDATED], j[STARTED] = run_at, c.wall, c.wall, is_parent and c.wall or 0
  j[PRIORITY], j[MAX_ATTEMPTS] = o.priority or 0, o.max_attempts or q.opts.max_attempts
  j[IS_PARENT], j[N_CHILDREN] = is_parent and 1 or 0, o.n_children or 0
  j[PARENT], j[PARENT_SEQ] = o.parent or '', p and p[SEQ] or 0
  j[GROUP], j[UNIQUE_KEY], j[UNIQUE_UNTIL] =
    o.group or '', o.unique_key or '', o.unique_for_ms and c.wall + o.unique_for_ms or 0
  Q.fix_job(c, j, data)
  Q.enter(c, q, j)
  return j
end

V.push = function(c, o, data)
  data = data or ''
  local j = Q.job(c, o.tenant, o.id)
  if j then
    return push_again(c, o, data, j)
  end
  local p = o.parent and Q.job(c, o.tenant, o.parent)
  local refused = o.parent and refuse_child(c, p)
  if refused then
    return refused
  end
  local q = Q.find(c, o.tenant, o.key)
  local keeper = o.unique_key and q and Q.keeper(c, q, o.unique_key)
  if keeper then
    Q.count(c, q, 'duplicates', 1)
    return Q.answer(c, keeper, @STATUS_DUPLICATE@)
  end
  return Q.answer(c, Q.push_new(c, q or Q.get(c, o.tenant, o.key), o, data, p), @STATUS_OK@)
end

end
