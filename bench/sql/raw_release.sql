-- raw_release: give back what is still ours. Changes one row, or none when the lease was lost.
-- params:  1 tenant  2 key  3 holder  4 fence
DELETE FROM lease WHERE tenant = ?1 AND key = ?2 AND holder = ?3 AND fence = ?4;
