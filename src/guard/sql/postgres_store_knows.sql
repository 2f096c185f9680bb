-- postgres_store_knows: did the store in this schema give this fence? Fences begin at a store's birth in microseconds: another store has not given the same for the same key.
SELECT 1 FROM @schema.lease WHERE tenant = $1 AND key = $2 AND fence = $3::bigint;
