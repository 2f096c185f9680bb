-- job_children_live: live children of a parent, a few or all of them, by seq.
-- params:  1 parent  2 rows
-- returns: seq
SELECT seq FROM il_live WHERE parent = ?1 ORDER BY parent, seq LIMIT ?2;
