-- cron_remove: forget a schedule. Changes one row, or none when there is no such schedule.
-- params:  1 tenant  2 name
DELETE FROM il_cron WHERE tenant = ?1 AND name = ?2;
