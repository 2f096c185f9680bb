-- lease_busy: is there a lease of the key, or another one of the unit of work? When not, an acquire is the usual
-- case: nothing is in the way and no lock order has to be looked at. The answer holds until the commit,
-- inside BEGIN IMMEDIATE. (As one INSERT … SELECT … WHERE NOT EXISTS it took three times as long: SQLite
-- then copies through a temporary table.)
-- params:  1 tenant  2 key  3 root
SELECT EXISTS (SELECT 1 FROM il_lease WHERE tenant = ?1 AND key = ?2)
    OR EXISTS (SELECT 1 FROM il_lease WHERE tenant = ?1 AND root = ?3);
