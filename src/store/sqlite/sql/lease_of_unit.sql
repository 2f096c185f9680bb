-- lease_of_unit: what a unit of work holds now, for the lock order. In the order of keys, so that what is
-- said about it does not depend on chance.
-- params:  1 tenant  2 root  3 now_ms
-- returns: key, place
SELECT key, place FROM il_lease
 WHERE tenant = ?1 AND root = ?2 AND expires_ms > ?3
 ORDER BY key, fence;
