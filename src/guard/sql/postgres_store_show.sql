-- postgres_store_show: for guarded tables (`interlock guard`), whose triggers ask for the fence themselves. Locks nothing: who has lost the lease must not keep it from the next by leaving a transaction open.
SELECT @schema.show_fence($1, $2, $3::bigint);
