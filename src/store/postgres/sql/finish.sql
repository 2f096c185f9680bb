-- finish: many finishes; see functions/queue_end.sql. The columns are those of enum finish_column in rows.c.
-- params:  1 tenant  2 queue  3 tokens  4 places  5 results or NULL  6 some have unique keys  7 now_ms or NULL  8 wall_ms or NULL
SELECT * FROM @schema.finish_rows($1, $2, $3, $4, $5, $6, $7, $8)
