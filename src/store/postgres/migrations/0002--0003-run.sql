-- 0002--0003-run: the same columns stood in several indexes, and for a table with next to no rows all of them cost the same: so a run was looked for by its tenant alone, through whatever
-- index has that, by a plan that was kept when there were many. Now an index begins with one expression that no other one has, and what follows it is none of a column's own.
-- Older code can live with it, though not as fast.
CREATE UNIQUE INDEX run_name ON run ((tenant || E'\x1f' || id));
DROP INDEX run_id;
DROP INDEX run_key;
CREATE INDEX run_key ON run ((tenant || E'\x1f' || key), (seq + 0));                           -- listings of a key
DROP INDEX run_day;
CREATE INDEX run_day ON run ((tenant || E'\x1f' || split_part(key, ':', 1)), (created_ms + 0)); -- what a tenant made of a class, since midnight
