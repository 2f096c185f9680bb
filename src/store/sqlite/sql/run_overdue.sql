-- run_overdue: is there a run to be purged? A look at the start of the index.
-- params:  1 wall_ms
SELECT EXISTS (SELECT 1 FROM il_run WHERE purge_ms <= ?1);
