-- postgres_store_check: is it the fence of a lease that is held now? An error (IL001) if not. Holds the lease's row FOR KEY SHARE until the commit that follows at once: whoever takes the key over needs that row.
SELECT @schema.check_fence($2, $3::bigint, $1);
