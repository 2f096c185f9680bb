-- once_remove: a claim was given back. The caller has read the row in this transaction.
-- params:  1 tenant  2 key
DELETE FROM il_once WHERE tenant = ?1 AND key = ?2;
