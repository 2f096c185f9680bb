-- 0001--0002-run: how many runs of a class a tenant has made since midnight is counted along an index. The class is what stands before the first colon of a key. Nothing of it changes
-- while a run lives. Older code can live with it.
CREATE INDEX run_day ON run (split_part(key, ':', 1), tenant, created_ms);
