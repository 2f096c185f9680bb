-- work: a claim that comes alone, many finishes, or finishes and then a claim; see functions/queue_work.sql. The columns are those of enum work_column in rows.c.
-- params:  1 the claim or NULL; of finishes, or NULL:  2 tenant  3 queue  4 their worker  5 tokens  6 places  7 results or NULL  8 some have unique keys
--          9 now_ms or NULL  10 wall_ms or NULL
SELECT * FROM @schema.work_rows($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, true)
