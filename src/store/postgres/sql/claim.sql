-- claim: a claim that comes alone; see functions/queue_claim.sql. The columns are those of enum claim_column in rows.c.
-- params:  1 the request  2 now_ms or NULL  3 wall_ms or NULL
SELECT * FROM @schema.claim_rows($1, $2, $3, true)
