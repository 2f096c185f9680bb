-- 0004--0005: how many runs of a class a tenant has made since midnight is counted along an index. The class is what stands before the first colon of a key. Older code can live
-- with it.
CREATE INDEX il_run_day ON il_run (tenant, substr(key, 1, instr(key || ':', ':') - 1), created_ms);

UPDATE il_state SET version = 5;
PRAGMA user_version = 5;
