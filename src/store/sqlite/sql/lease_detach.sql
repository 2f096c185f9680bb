-- lease_detach: the run of a lease has ended, and the lease goes on without it.
-- params:  1 tenant  2 key  3 fence
UPDATE il_lease SET run = 0 WHERE tenant = ?1 AND key = ?2 AND fence = ?3;
