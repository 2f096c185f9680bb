#!/bin/sh
# literals.sh TOOL: what tools/check-literals refuses, and what it accepts.
set -eu
tool=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

fail() {
    echo "$1" >&2
    exit 1
}

# Each line of what is refused, by itself.
n=0
while IFS= read -r line; do
    n=$((n + 1))
    printf '%s\n' "$line" | tee bad.sql >bad.lua
    ! "$tool" bad.sql bad.lua >got || fail "not refused: $line"
    for file in bad.sql bad.lua; do
        grep -q "^$file:1: " got || fail "not refused in $file: $line"
    done
done <<'END'
SELECT 1 FROM lease WHERE state = 3
SELECT 1 FROM lease l WHERE l.state < 5 AND l.key = k
SELECT 1 FROM run WHERE 2 >= r.state
SELECT 1 FROM job WHERE lane & 7 = 1
SELECT 1 FROM job WHERE glane + 0 <> 2
SELECT 1 FROM job WHERE state IN (@JOB_FAILED@, 6)
SELECT 1 FROM job WHERE last_state BETWEEN 1 AND 2
SELECT CASE x.state WHEN 2 THEN wall ELSE now END
SELECT CASE state WHEN @JOB_READY@ THEN a WHEN 3 THEN b END
UPDATE lease SET mode = 0, state = @LEASE_HELD@
j.state      := 1;
status := CASE WHEN n = 1 THEN 0 ELSE 11 END;
IF (head ->> 'status')::int = 0 THEN
IF coalesce((o ->> 'policy')::int, 0) = 3 THEN
RETURN jsonb_build_object('status', 0, 'fence', f);
RETURN '{"status": 26}';
if l.state == 3 or o.policy >= 4 then
head.status = 5
IF was <> 2 THEN
WHERE u.kind = 3
RETURN NEXT job_head('18', now, wall);
return { status = 0 }
SELECT 1 FROM job WHERE state IS DISTINCT FROM 3
SELECT 1 FROM job WHERE l.state = ANY ('{2,3}') AND key = k
SELECT 1 FROM job WHERE l.state <> ALL (ARRAY[@JOB_READY@, 3])
IF 3 = ANY (kinds) THEN
UPDATE queue SET strategy = 2
SELECT 1 FROM queue WHERE strategy = 1 + @STRATEGY_OPTIMISTIC@
RETURN how = 5;
UPDATE job SET flags = flags | 2
SELECT l.flags & 4 <> 0
SELECT coalesce((o ->> 'flags')::int, 0) & 4 <> 0
SELECT (ARRAY['offered', 'held', 'closing'])[l.state - 1]
SELECT array_position(ARRAY['exclusive', 'shared'], mode) - 1
SELECT l.key, 3 AS state FROM lease l
SELECT CASE WHEN a THEN @JOB_READY@ ELSE 3 END AS state
CREATE TABLE x (strategy int NOT NULL DEFAULT 1)
was int := 3;
SELECT concat('{"status":', 26, '}')
if (r.state or 0) == 3 then
if j[STATE] == 3 or n == 4 then
j[LAST] = 3
o['state'] = 3
state = is_late and 3 or nil
SELECT 1 FROM job_live l WHERE l.lane = lane(q.no, 2)
RETURN coalesce((o ->> 'mode')::int, 0);
return same(o.mode or 0)
RETURN NEXT mutex_shared(2, t, k);
EXIT WHEN conflict(v, w.mode, w.permits) <> 0;
END
[ "$n" -eq 49 ] || fail "$n lines were tried"

# Numbers that a position, another line or a part of the statement ties to a name.
n=0
while IFS='|' read -r at line; do
    n=$((n + 1))
    printf '%b\n' "$line" >bad.sql
    ! "$tool" bad.sql >got || fail "not refused: $line"
    grep -q "^bad.sql:$at: " got || fail "line $at is missing: $(cat got)"
done <<'END'
1|UPDATE lease SET (key, state) = (k, 3)
1|SELECT 1 FROM lease WHERE (state, mode) IN ((@LEASE_HELD@, 1))
2|INSERT INTO lease (key, mode, state)\nVALUES (k, 1, @LEASE_HELD@)
2|INSERT INTO lease (key, state) VALUES (f(k, 1), @LEASE_HELD@),\n(k, 3)
2|INSERT INTO job (seq, last)\nSELECT n.seq + f(1, 2), 0 FROM n
3|INSERT INTO job_total (queue, what, n) SELECT n.no, @TOTAL_PUSHED@, 1 FROM n\nUNION ALL\nSELECT n.no, 3, 1 FROM n
2|SELECT * FROM (VALUES (q, @TOTAL_CLAIMED@),\n(q, 3)) AS v (queue, what)
1|SELECT 1 WHERE (SELECT state FROM job WHERE f(seq) = s) = 3
1|SELECT 1 WHERE (SELECT l.last FROM job l) IN (2, 3)
1|SELECT 1 FROM job WHERE state\n= 3
1|j.state := CASE WHEN a\nTHEN @JOB_READY@\nELSE 3 END;
2|-- part: columns\nINSERT INTO x (@named@) VALUES (1, 3)\n-- part: named\na, state
2|CREATE FUNCTION purge(q int, of_state int) RETURNS int\nn := purge(f(q, 1), 3);
END
[ "$n" -eq 13 ] || fail "$n statements were tried"

# The second of several assignments.
printf 'r.seq, r.state = 1, 3\n' >bad.lua
! "$tool" bad.lua >got || fail "an assignment by position"
grep -q '^bad.lua:1: .*r.state = 3' got || fail "$(cat got)"

# Lua must not declare the enums again.
printf 'local PENDING, RUNNING = 1, 2\n' >bad.lua
! "$tool" bad.lua >got || fail "an enum that is declared again"
grep -q '^bad.lua:1: RUNNING is declared again' got || fail "$(cat got)"

# Names, numbers of other things, and comments.
cat >good.sql <<'END'
SELECT 1 FROM lease WHERE state = @LEASE_HELD@ AND mode <> @MODE_SHARED@ AND fence = 3 -- state = 3
SELECT 1 FROM job WHERE states >> state & 1 = 1 AND states & (1 << e.state::int) <> 0
SELECT 1 FROM job WHERE lane + 0 <> p.lane AND lane & 7 IN (@LANE_READY@, @LANE_BLOCKED@)
SELECT order_n INTO learned FROM state WHERE version < 3
SELECT jsonb_build_object('status', @STATUS_OK@, 'n', 1), '{"status": @STATUS_OK@, "n": 1}'
SELECT 1 SET plan_cache_mode = force_generic_plan, n_state_changes = 1
SELECT 1 FROM queue WHERE strategy = @QUEUE_OPTIMISTIC@ AND flags = 0 AND flags & @FLAG_RESUME@ <> 0
SELECT 1 FROM job WHERE state = ANY (ARRAY[@JOB_READY@, @JOB_RUNNING@]) AND state = $3 AND $3 = state
SELECT (SELECT state FROM job WHERE seq = 3), (SELECT n FROM job WHERE state = @JOB_READY@) = 3
INSERT INTO job (n, state, at) SELECT 1, @JOB_READY@, f(2, 3), 4 FROM x WHERE (n, state) = (3, @JOB_READY@)
CREATE FUNCTION purge(n int, of_state int DEFAULT @JOB_READY@) RETURNS int
SELECT purge(3, @JOB_READY@), other.purge(3, 4)
-- name: next
SELECT CASE l.state WHEN @JOB_READY@ THEN CASE n WHEN 3 THEN 4 END END, CASE n WHEN 3 THEN 4 END AS n
END
cat >good.lua <<'END'
local STATE, LAST = 8, 9
local i, k, last = 1, 1, nil
r.state, r.n = @JOB_READY@, 3
if j[STATE] == @JOB_READY@ and j[N] == 3 and (o.flags or 0) == 0 then n = n == 3 and 4 or 5 end
if bit.band(states, bit.lshift(1, state)) ~= 0 then return { status = @STATUS_OK@ } end
END
"$tool" good.sql good.lua || fail "what is fine was refused"
