-- lease_release: the usual case of a release in one statement: the lease is exclusive (mode 0), held and
-- current, of no run, and nobody waits (known before). No row deleted: the long way decides. Race-free inside BEGIN IMMEDIATE.
-- params:  1 tenant  2 key  3 fence  4 holder  5 now_ms  6 state HELD
DELETE FROM il_lease
 WHERE tenant = ?1 AND key = ?2 AND fence = ?3 AND holder = ?4 AND expires_ms > ?5 AND state = ?6
   AND mode = 0 AND run = 0;
