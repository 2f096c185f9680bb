-- lease_attach: a lease is that of a run.
-- params:  1 tenant  2 key  3 fence  4 seq of the run
UPDATE il_lease SET run = ?4 WHERE tenant = ?1 AND key = ?2 AND fence = ?3;
