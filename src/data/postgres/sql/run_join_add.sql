-- run_join_add: unless it is there: a write may be repeated.
-- params:  1 tenant  2 run  3 at_ms  4 request_id  5 who  6 type
INSERT INTO @schema.run_join (tenant, run, at_ms, request_id, who, type)
VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (tenant, run, at_ms, request_id) DO NOTHING;
