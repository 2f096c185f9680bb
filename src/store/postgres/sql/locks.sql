-- locks: acquires, renewals and releases of many callers; see functions/lock_many.sql. The columns are those of enum lock_column in locks.c.
-- params:  1 kinds  2 tenants  3 keys  4 holders  5 fences  6 ttls  7 settle times  8 metas  9 places  10 now_ms or NULL
SELECT * FROM @schema.lock_many($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
