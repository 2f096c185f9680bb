-- queue_job.lua: rows of jobs, the sets in which they wait, and the consequences of a change for
-- the group, the unique key, the parent's count and the waiters.
--
-- Every change follows the same steps: remove the job from the sets of its old state, decide, add
-- it to those of its new state. All of it is one FCALL, so no client sees a job in between, and
-- what was read is still true when it is written. Claims, which take many jobs at once, have their
-- own code in queue_claim.lua.

-- A job is an array, and j[STATE] its state: named fields make a claim a tenth slower.
local TENANT, ID = 1, 2
-- not stored: where leave() found it, its parent, when it may be purged; false: unknown
local WAS, INSIDE, UP, PURGE_AT = 3, 4, 5, 6
local FIXED = 7 -- what never changes, as it is stored
-- The fields that change; first those that a finish changes. LAST is how the last attempt ended
-- (enum il__job_last), ASKED: a stop was requested.
local STATE, LAST, EXPIRES, UPDATED, RESULT_BYTES = 8, 9, 10, 11, 12
local ATTEMPT, PROGRESS, TOKEN, SEALED, ASKED, SILENT, LEASE, RUN_AT, STARTED =
  13, 14, 15, 16, 17, 18, 19, 20, 21
local WORKER, ERROR, MESSAGE = 22, 23, 24
-- The fields that do not. TRAITS: 1 its id or its queue's name needs escapes in JSON, 2 it is
-- plain: nothing else changes when it ends. BLOBS_AT: where in FIXED they begin.
local SEQ, PRIORITY, MAX_ATTEMPTS, IS_PARENT, N_CHILDREN, PARENT_SEQ, UNIQUE_UNTIL, CREATED =
  25, 26, 27, 28, 29, 30, 31, 32
local PAYLOAD_BYTES, TRAITS, QUEUE, PARENT, GROUP, UNIQUE_KEY, BLOBS_AT = 33, 34, 35, 36, 37, 38, 39
do

local NEVER = -1

-- A row: the fields that change, then those that do not, each as fixed-width numbers and
-- NUL-terminated strings; then payload and result, if they are small. The fixed part is never
-- packed again. A parent's row is RUNNING and never claimed. The end time of an ended job is its
-- last update. Doubles are exact for all of these numbers, and faster than wide integers.
local CHANGING_FORMAT = '<BBddI4I4bdBBBdddsss' -- STATE to MESSAGE
local FIXED_FORMAT = '<dhI4BI4dddI4Bssss' -- SEQ to UNIQUE_KEY
local READ_FORMAT = CHANGING_FORMAT .. 'dhI4BI4dddI4Bssss' -- both
local WRITE_FORMAT = CHANGING_FORMAT .. 'c0'
local GLANCE_FORMAT = '<BBddI4I4bdBBBdd' -- state, …, updated, …, run_at
local FIXED_AT = 66 -- where what does not change begins, if worker, error and message are empty
-- bytes of a blob that is kept in the row: one key less to touch, and not much more to write
local SMALL = 512

-- ---- rows ---------------------------------------------------------------------------------------

function Q.job_key(c, tenant, id)
  return c.tag .. ':j:' .. tenant .. '\0' .. id
end

function Q.unpack_job(row, tenant, id)
  local j = { tenant, id, false, false, false, false, false, struct.unpack(READ_FORMAT, row) }
  local at = FIXED_AT + #j[WORKER] + #j[ERROR] + #j[MESSAGE]
  j[FIXED], j[BLOBS_AT] = string.sub(row, at), j[BLOBS_AT] - at + 1
  return j
end

function Q.pack_job(j)
  return struct.pack(WRITE_FORMAT, j[STATE], j[LAST], j[EXPIRES], j[UPDATED], j[RESULT_BYTES],
    j[ATTEMPT], j[PROGRESS], j[TOKEN],
    j[SEALED], j[ASKED], j[SILENT], j[LEASE], j[RUN_AT], j[STARTED], j[WORKER], j[ERROR],
    j[MESSAGE], j[FIXED])
end

-- A job that is nothing yet.
function Q.new_job(tenant, id, queue)
  return {
    tenant, id, false, false, false, false, '',
    0, 0, 0, 0, 0, 0, -1, 0, 0, 0, 0, 0, 0, 0, '', '', '',
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, queue, '', '', '', 0,
  }
end

local function needs_escapes(name)
  return string.find(name, '"', 1, true) or string.find(name, '\\', 1, true)
end

-- No parent, group or unique key.
local function is_plain(j)
  return j[IS_PARENT] == 0 and j[PARENT_SEQ] == 0 and j[GROUP] == '' and j[UNIQUE_KEY] == ''
    and j[UNIQUE_UNTIL] == 0
end

-- The fixed fields of a new job, and its payload.
function Q.fix_job(c, j, data)
  j[PAYLOAD_BYTES] = #data
  j[TRAITS] = ((needs_escapes(j[ID]) or needs_escapes(j[QUEUE])) and 1 or 0) + (is_plain(j) and 2
    or 0)
  local fixed = struct.pack(FIXED_FORMAT, j[SEQ], j[PRIORITY], j[MAX_ATTEMPTS], j[IS_PARENT],
    j[N_CHILDREN], j[PARENT_SEQ],
    j[UNIQUE_UNTIL], j[CREATED], j[PAYLOAD_BYTES], j[TRAITS], j[QUEUE], j[PARENT], j[GROUP],
    j[UNIQUE_KEY])
  j[FIXED], j[BLOBS_AT] = fixed, #fixed + 1
  if #data <= SMALL then
    j[FIXED] = fixed .. data
  else
    redis.call('SET', K(c, 'j.data', j[TENANT], j[ID]), data)
  end
end

-- The result of one that has none.
function Q.set_result(c, j, data)
  j[RESULT_BYTES] = #data
  if #data <= SMALL then
    j[FIXED] = j[FIXED] .. data
  else
    redis.call('SET', K(c, 'j.result', j[TENANT], j[ID]), data)
  end
end

function Q.payload(c, j)
  if j[PAYLOAD_BYTES] <= SMALL then
    return string.sub(j[FIXED], j[BLOBS_AT], j[BLOBS_AT] + j[PAYLOAD_BYTES] - 1)
  end
  return Q.large_payload(c, j[TENANT], j[ID])
end

function Q.result(c, j)
  if j[RESULT_BYTES] <= SMALL then
    return j[RESULT_BYTES] > 0 and string.sub(j[FIXED], -j[RESULT_BYTES]) or ''
  end
  return redis.call('GET', K(c, 'j.result', j[TENANT], j[ID])) or ''
end

-- A job, or nil.
function Q.job(c, tenant, id)
  local row = redis.call('GET', c.tag .. ':j:' .. tenant .. '\0' .. id)
  return row and Q.unpack_job(row, tenant, id) or nil
end

function Q.save(c, j)
  redis.call('SET', c.tag .. ':j:' .. j[TENANT] .. '\0' .. j[ID], Q.pack_job(j))
end

-- The queue of a job. Queues are never deleted.
function Q.of(c, j)
  return Q.find(c, j[TENANT], j[QUEUE])
end

-- Existing rows by their ids, in that order: calls each(row, id).
local function each_row(c, tenant, ids, each)
  for from = 1, #ids, 1000 do
    local keys = {}
    for i = from, math.min(from + 999, #ids) do
      keys[#keys + 1] = Q.job_key(c, tenant, ids[i])
    end
    for i, row in ipairs(redis.call('MGET', unpack(keys))) do
      if row then
        each(row, ids[from + i - 1])
      end
    end
  end
end

-- Jobs by their ids. With is_meant(state as shown, updated) only some of them: the others are read,
-- but not unpacked.
function Q.jobs(c, tenant, ids, is_meant)
  local jobs = {}
  each_row(c, tenant, ids, function(row, id)
    local state, _, _, updated, _, _, _, _, _, _, _, _, run_at = struct.unpack(GLANCE_FORMAT, row)
    if not is_meant or is_meant(state == @JOB_SCHEDULED@ and run_at <= c.wall and @JOB_READY@
      or state, updated) then
      jobs[#jobs + 1] = Q.unpack_job(row, tenant, id)
    end
  end)
  return jobs
end

function Q.ended(j)
  return j[STATE] >= @JOB_ENDED@
end

-- The state that is shown.
function Q.view(c, j)
  return j[STATE] == @JOB_SCHEDULED@ and j[RUN_AT] <= c.wall and @JOB_READY@ or j[STATE]
end

function Q.expired(c, j)
  return j[STATE] == @JOB_RUNNING@ and j[IS_PARENT] == 0 and c.now >= j[EXPIRES]
end

-- ---- many at once -------------------------------------------------------------------------------
--
-- The changes that a claim and a finish make to a row, done by copying the unchanged parts:
-- unpacking and packing all of it would be half of their cost. (In this Lua code the bytes of new
-- strings cost most, then formats; skipping bytes with x costs more than reading them.)

-- From a row: state, token, expiry of its claim, whether it is plain, its seq and its queue's name.
-- The parts that rows of one claim share are compared with those of the last row: unpacking them
-- costs twice as much. These are the front, and what surrounds the seq: the strings before it, and
-- traits and queue, 47 bytes after it.
local front, state, expires = '', @JOB_NONE@, 0
local texts, seq_at, tail, tail_end, plain, queue = '', 66, '', 113, false, ''

local function peek_anew(row)
  local _, _, _, _, at = struct.unpack('<sssd', row, 63)
  local traits, name, rest = struct.unpack('<Bs', row, at + 39)
  seq_at, tail_end, plain, queue = at - 8, rest - 1, traits >= 2, name
  texts, tail = string.sub(row, 63, seq_at - 1), string.sub(row, seq_at + 47, tail_end)
end

function Q.peek(row)
  local sub, unpack_row = string.sub, struct.unpack
  local head = sub(row, 1, 22)
  if head ~= front then
    local _
    state, _, expires = unpack_row('<BBd', head)
    front = head
  end
  if sub(row, 63, seq_at - 1) ~= texts or sub(row, seq_at + 47, tail_end) ~= tail then
    peek_anew(row)
  end
  return state, unpack_row('<d', row, 28), expires, plain, (unpack_row('<d', row, seq_at)), queue
end

-- The part that a claim writes into all of its rows; for Q.claimed_row().
function Q.claim_stamp(c, holder, silent, lease)
  return {
    -- STATE to RESULT_BYTES
    struct.pack('<BBddI4', @JOB_ON_CLAIM@, @LAST_NONE@, c.now + lease, c.wall, 0),
    struct.pack('<BBBd', 0, 0, silent, lease), -- SEALED to LEASE
    struct.pack('<d', c.wall) .. holder .. '\0', -- STARTED, WORKER
    like = false, before = '', after = '', at = FIXED_AT,
  }
end

-- The parts before and after the token of a row like this one: the same from its attempt to its
-- strings.
local function stamp_for(row, like, stamp)
  local attempt, at, why = struct.unpack('<I4', row, 23), FIXED_AT, ''
  local x, y, z = string.byte(row, 63, 65)
  if x + y + z > 0 then -- texts of the last attempt
    local worker, message
    worker, why, message = struct.unpack('<sss', row, 63)
    at, like = at + #worker + #why + #message, false
  end
  stamp.like, stamp.at = like, at
  stamp.before = stamp[1] .. struct.pack('<I4b', attempt + 1, -1)
  stamp.after = stamp[2] .. string.sub(row, 47, 54) .. stamp[3] .. why .. '\0\0'
end

-- The row of a READY job once it is claimed; and true if its payload is not in the row. It was not
-- sealed (it is not a parent) nor asked to stop (then it would have ended), and has no result.
function Q.claimed_row(row, token, stamp)
  local like = string.sub(row, 23, 65)
  if like ~= stamp.like then
    stamp_for(row, like, stamp)
  end
  local at = stamp.at
  local a, b, c, d = string.byte(row, at + 43, at + 46) -- bytes of the payload
  return stamp.before .. struct.pack('<d', token) .. stamp.after .. string.sub(row, at), c + d > 0
    or a + 256 * b > SMALL
end

-- The size of the payload of a READY job.
function Q.payload_bytes(row)
  local worker, why, message = struct.unpack('<sss', row, 63)
  return (struct.unpack('<I4', row, FIXED_AT + #worker + #why + #message + 43))
end

-- What a finish with a result of this size writes over the front of a row: STATE to RESULT_BYTES.
-- The result goes to the end of the row. The expiry, no longer needed, is replaced by the purge
-- time, if an entry of j.many names the job; 0: it has its own in j.due.
function Q.finish_stamp(purge_at, wall, n_bytes)
  return struct.pack('<BBddI4', @JOB_ON_FINISH@, @LAST_FINISHED@, purge_at, wall, n_bytes)
end

Q.STAMP_BYTES = 22
Q.SMALL = SMALL

function Q.large_payload(c, tenant, id)
  return redis.call('GET', K(c, 'j.data', tenant, id)) or ''
end

-- ---- places -------------------------------------------------------------------------------------

-- A place in claiming order: priority, run_at, seq, encoded so that bytes compare the same way;
-- followed by the id.
function Q.turn(j)
  return struct.pack('>I2I8I8', j[PRIORITY] + @PRIORITY_MAX@, j[RUN_AT], j[SEQ]) .. j[ID]
end

function Q.turn_id(turn)
  return string.sub(turn, 19)
end

-- The place among jobs with the same score that is part of it, without the id.
function Q.turn_place(turn)
  return string.sub(turn, 11, 18)
end

-- A place among jobs with the same score: by seq.
function Q.place(j)
  return struct.pack('>I8', j[SEQ]) .. j[ID]
end

-- Scores of j.due, j.many and q.jobs are a number below 2^50, a time in ms or a seq, plus a class
-- above it: so a job moves from claimed to ended by one change of its score in each of them. All of
-- them are below 2^53, where doubles are exact.
local CLASS = 1125899906842624
Q.CLASS = CLASS

-- Classes of q.jobs, by state: so a listing reads only what it shows, and one call counts a state's
-- jobs.
local CLASS_OF = { [@JOB_READY@] = 0, [@JOB_COMPLETED@] = 1, [@JOB_FAILED@] = 2,
  [@JOB_CANCELLED@] = 3, [@JOB_RUNNING@] = 4, [@JOB_SCHEDULED@] = 5 }
Q.CLASS_OF, Q.RUNNING_CLASS = CLASS_OF, CLASS_OF[@JOB_RUNNING@]

-- Its class and place in q.jobs.
local function rank(j)
  return CLASS_OF[j[STATE]] * CLASS + j[SEQ]
end

-- A number as text. Those of a batch are consecutive: the digits before the last two are cached.
local hundreds, hundreds_text, ends = -1, '', {}

local function rank_text(rank_of)
  local rest = rank_of % 100
  if rank_of - rest ~= hundreds then
    hundreds = rank_of - rest
    hundreds_text = N(hundreds / 100)
  end
  local last = ends[rest]
  if not last then
    last = string.format('%02d', rest)
    ends[rest] = last
  end
  return hundreds_text .. last
end

-- Ranks of jobs that a batch of finishes, or a claim, moves.
function Q.completed_rank(seq)
  return rank_text(CLASS + seq)
end

function Q.claimed_rank(turn)
  return rank_text(Q.RUNNING_CLASS * CLASS + struct.unpack('>I8', turn, 11))
end

-- Jobs of a class in q.jobs.
function Q.n_of_class(c, q, class)
  return redis.call('ZCOUNT', Q.key(c, q, 'jobs'), N(class * CLASS), '(' .. N((class + 1) * CLASS))
end

-- The next n jobs of a class by seq, `newest` first or last, with seqs in from < seq < to (nil: no
-- bound): their ids, and a table of their seqs.
function Q.ids_of_class(c, q, class, newest, from, to, n)
  local low = from and '(' .. N(class * CLASS + from) or N(class * CLASS)
  local high = '(' .. N(to and class * CLASS + to or (class + 1) * CLASS)
  local key, page = Q.key(c, q, 'jobs'), nil
  if newest then
    page = redis.call('ZREVRANGEBYSCORE', key, high, low, 'WITHSCORES', 'LIMIT', 0, n)
  else
    page = redis.call('ZRANGEBYSCORE', key, low, high, 'WITHSCORES', 'LIMIT', 0, n)
  end
  local ids, seqs = {}, {}
  for i = 1, #page, 2 do
    ids[#ids + 1], seqs[page[i]] = page[i], tonumber(page[i + 1]) - class * CLASS
  end
  return ids, seqs
end

-- ---- unique keys --------------------------------------------------------------------------------

function Q.keeps_key(c, j)
  -- mutant unique_not_checked: return c.wall < j[UNIQUE_UNTIL]
  return j[STATE] < @JOB_ENDED@ or c.wall < j[UNIQUE_UNTIL]
end

local function unique_key(c, j)
  return K(c, 'q.unique', j[TENANT], j[QUEUE], j[UNIQUE_KEY])
end

-- The job that took the key last, if it still excludes others.
function Q.keeper(c, q, key)
  local m = redis.call('GET', K(c, 'q.unique', q.tenant, q.name, key))
  local j = m and Q.job(c, q.tenant, string.sub(m, 9))
  if j and struct.unpack('>I8', m) == j[SEQ] and Q.keeps_key(c, j) then
    return j
  end
  return nil
end

local function unique_take(c, j)
  redis.call('SET', unique_key(c, j), Q.place(j))
end

-- Unless another one has taken it since.
local function unique_leave(c, j)
  local key = unique_key(c, j)
  if redis.call('GET', key) == Q.place(j) then
    redis.call('DEL', key)
  end
end

-- ---- children -----------------------------------------------------------------------------------
--
-- j.child:SEQ has a member for each child: class seq id, where the classes are l: live, c:
-- COMPLETED, f: FAILED or CANCELLED. It is deleted with the parent: if the parent is purged and
-- pushed again, these are not its children.

local NONE = {} -- instead of a parent that is not there any more

-- The parent that a job belongs to, or nil. Looked up once.
function Q.parent(c, j)
  if j[PARENT_SEQ] == 0 then
    return nil
  end
  if not j[UP] then
    local p = Q.job(c, j[TENANT], j[PARENT])
    j[UP] = p and p[SEQ] == j[PARENT_SEQ] and p or NONE
  end
  return j[UP] ~= NONE and j[UP] or nil
end

function Q.children_key(c, p)
  return K(c, 'j.child', N(p[SEQ]))
end

local function child_class(state)
  return state < @JOB_ENDED@ and 'l' or state == @JOB_COMPLETED@ and 'c' or 'f'
end

local function child_member(j, state)
  return child_class(state) .. Q.place(j)
end

-- was: the state before, nil: it is new.
local function child_changed(c, j, was)
  if was and child_class(was) == child_class(j[STATE]) then
    return
  end
  local p = Q.parent(c, j)
  if not p then
    return
  end
  local key = Q.children_key(c, p)
  if was then
    redis.call('ZREM', key, child_member(j, was))
  end
  redis.call('ZADD', key, 0, child_member(j, j[STATE]))
end

function Q.n_children(c, p, class)
  return redis.call('ZLEXCOUNT', Q.children_key(c, p), '[' .. class, '(' .. class .. '\255')
end

-- Children of a class, by seq: ids of at most n with a seq above `after`, and the seq of the last
-- one if there may be others.
function Q.children(c, p, class, after, n)
  local from = '[' .. class .. struct.pack('>I8', after + 1)
  local members = redis.call('ZRANGEBYLEX', Q.children_key(c, p), from, '(' .. class .. '\255',
    'LIMIT', 0, n)
  local ids = {}
  for i, m in ipairs(members) do
    ids[i] = string.sub(m, 10)
  end
  return ids, #ids == n and struct.unpack('>I8', members[n], 2) or nil
end

-- ---- changes ------------------------------------------------------------------------------------

-- The job is about to change: remove it from where it waits. j[WAS] and j[INSIDE] tell enter()
-- where that was. The entry in j.due of a claimed or ended job stays until its new state is known.
function Q.leave(c, q, j)
  local state = j[STATE]
  j[WAS], j[INSIDE] = state, false
  if state == @JOB_SCHEDULED@ then
    redis.call('ZREM', Q.key(c, q, 'later'), Q.place(j))
  elseif state == @JOB_READY@ then
    local turn = Q.turn(j)
    j[INSIDE] = redis.call('ZREM', Q.key(c, q, 'ready'), turn) == 1
    if not j[INSIDE] then
      redis.call('ZREM', Q.key(c, q, 'full'), turn)
    end
    if j[GROUP] ~= '' then
      redis.call('ZREM', Q.key(c, q, 'group'), Q.group_member(j, j[INSIDE] and 'r' or 'b'))
    end
  elseif state == @JOB_RUNNING@ and j[IS_PARENT] == 0 then
    j[INSIDE] = true
    if j[GROUP] ~= '' then
      redis.call('ZREM', Q.key(c, q, 'group'), Q.group_member(j, 'n'))
    end
  end
end

local function enter_ended(c, q, j)
  Q.purge_from(c, j, j[PURGE_AT])
  if j[UNIQUE_KEY] ~= '' and not Q.keeps_key(c, j) then
    unique_leave(c, j)
  end
end

-- The job is in its new state: add it to the matching places, and wake the waiters (unless `quiet`:
-- nothing visible has changed). Not for one that becomes claimed. Its parent is not checked: see
-- Q.look().
function Q.enter(c, q, j, quiet)
  local state, was = j[STATE], j[WAS]
  if state ~= was then
    redis.call('ZADD', Q.key(c, q, 'jobs'), N(rank(j)), j[ID])
  end
  if state >= @JOB_ENDED@ then
    enter_ended(c, q, j)
  else
    if state == @JOB_SCHEDULED@ then
      redis.call('ZADD', Q.key(c, q, 'later'), N(j[RUN_AT]), Q.place(j))
    elseif state == @JOB_READY@ then
      Q.enter_ready(c, q, j)
    end
    if j[UNIQUE_KEY] ~= '' and (not was or was >= @JOB_ENDED@) then
      unique_take(c, j) -- it lives again, or for the first time
    end
    if was and was >= @JOB_RUNNING@ then
      Q.due_never(c, j)
    end
  end
  Q.save(c, j)
  if j[PARENT_SEQ] ~= 0 then
    child_changed(c, j, was)
  end
  if j[INSIDE] and state ~= @JOB_READY@ and j[GROUP] ~= '' then
    Q.group_leave(c, q, j)
  end
  if quiet then
    return
  end
  if was then
    wake(c, j[TENANT], j[ID], '#job') -- a new one has nobody who waits for it
  end
  if state <= @JOB_READY@ then
    Q.wake(c, q)
  end
end

-- Delete a job that is not RUNNING, with its payload, its result, its unique key, and its place
-- among its parent's children. (An entry of j.many that names it is deleted with the last of its
-- jobs: queue_due.lua.)
function Q.delete(c, q, j)
  Q.leave(c, q, j)
  redis.call('DEL', Q.job_key(c, j[TENANT], j[ID]))
  if j[PAYLOAD_BYTES] > SMALL or j[RESULT_BYTES] > SMALL then
    redis.call('DEL', K(c, 'j.data', j[TENANT], j[ID]), K(c, 'j.result', j[TENANT], j[ID]))
  end
  redis.call('ZREM', Q.key(c, q, 'jobs'), j[ID])
  Q.count(c, q, 'pushed', 1)
  if Q.ended(j) then
    Q.due_never(c, j)
  end
  if j[STATE] == @JOB_COMPLETED@ then
    Q.count(c, q, 'completed', 1)
  end
  if j[UNIQUE_KEY] ~= '' then
    unique_leave(c, j)
  end
  if j[IS_PARENT] == 1 then
    redis.call('UNLINK', Q.children_key(c, j)) -- there may be many: Redis frees them aside
  end
  local p = Q.parent(c, j)
  if p then
    redis.call('ZREM', Q.children_key(c, p), child_member(j, j[STATE]))
  end
  if j[INSIDE] and j[GROUP] ~= '' then
    Q.group_leave(c, q, j)
  end
end

-- ---- ends ---------------------------------------------------------------------------------------

local TOTAL_OF = { [@JOB_FAILED@] = 'failed', [@JOB_CANCELLED@] = 'cancelled' }

-- Kept as long as the queue says, from `ended` on, and at least as long as it keeps its unique key.
-- nil: not purged automatically.
function Q.purge_at(q, j, ended)
  local keep = j[STATE] == @JOB_FAILED@ and q.opts.keep_failed_ms or q.opts.keep_ms
  if keep == NEVER then
    return nil
  end
  return math.max(ended + keep, j[UNIQUE_UNTIL])
end

-- The job, which was removed from its places, ends. The child of a live parent is kept until that
-- ends.
function Q.end_as(c, q, j, state)
  local p = Q.parent(c, j)
  j[STATE], j[EXPIRES], j[UPDATED] = state, 0, c.wall
  if not p or Q.ended(p) then
    j[PURGE_AT] = Q.purge_at(q, j, c.wall)
  end
  if TOTAL_OF[state] then
    Q.count(c, q, TOTAL_OF[state], 1)
  end
end

end
