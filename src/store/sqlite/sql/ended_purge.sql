-- ended_purge: forget what is old; the table's front, so it costs what it removes.
-- params:  1 last minute to forget  2 limit
DELETE FROM il_ended
 WHERE (minute, tenant, key, holder) IN
       (SELECT minute, tenant, key, holder FROM il_ended WHERE minute <= ?1 LIMIT ?2);
