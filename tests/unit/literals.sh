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
    for file in bad.sql bad.lua; do
        printf '%s\n' "$line" >"$file"
        ! "$tool" "$file" >got || fail "not refused: $line"
        grep -q "^$file:1: " got || fail "the place is missing: $(cat got)"
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
END
[ "$n" -eq 22 ] || fail "$n lines were tried"

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
END
cat >good.lua <<'END'
local STATE, LAST = 8, 9
if bit.band(states, bit.lshift(1, state)) ~= 0 then return { status = @STATUS_OK@ } end
END
"$tool" good.sql good.lua || fail "what is fine was refused"
