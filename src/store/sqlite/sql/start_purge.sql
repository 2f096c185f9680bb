-- start_purge: forget claims that the rate does not count any more.
-- params:  1 queue  2 lease time: those at or before it
DELETE FROM il_start WHERE queue = ?1 AND at_ms <= ?2;
