-- lease_remove: the lease has ended. The caller has read the row in this transaction.
-- params:  1 tenant  2 key  3 fence
DELETE FROM il_lease WHERE tenant = ?1 AND key = ?2 AND fence = ?3;
