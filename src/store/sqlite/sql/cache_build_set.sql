-- cache_build_set: a new build, in the place of a dead one. Two callers cannot both lead: who comes second reads this row, in a
-- transaction that BEGIN IMMEDIATE lets in only after the commit.
-- params:  1 tenant  2 key  3 holder  4 token  5 expires_ms  6 began_ms  7 began_at
INSERT INTO il_cache_build (tenant, key, holder, token, expires_ms, began_ms, began_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
    ON CONFLICT (tenant, key) DO UPDATE
   SET holder = ?3, token = ?4, expires_ms = ?5, began_ms = ?6, began_at = ?7;
