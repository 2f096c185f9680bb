-- call: a batch of requests; see functions/apply.sql.
-- params:  1 requests  2 blobs  3 now_ms or NULL  4 wall_ms or NULL
SELECT i, out, data, data2 FROM @schema.apply($1, $2, $3, $4)
