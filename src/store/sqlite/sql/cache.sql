-- cache.sql: cached values and their builds.
--
-- Two callers cannot both lead, and a dropped build cannot fill: each op reads the row of the build
-- and changes it in one write transaction (transaction.sql).

-- ---- values -------------------------------------------------------------------------------------

-- name: cache_value_of_key
-- The value of a key, of any age. Its bytes, which may be many, are read only if the reply shows or
-- compares them.
-- params:  1 tenant  2 key  3 wall_ms: bytes if it may be used then
--          4, 5 bytes if it was filled with a token between these
-- returns: filled, began_at, fresh_until, stale_until, purge_at, build_ms, code, negative, value or
--          NULL
SELECT filled, began_at, fresh_until, stale_until, purge_at, build_ms, code, negative,
       CASE WHEN stale_until > ?3 OR filled BETWEEN ?4 AND ?5 THEN value END
  FROM il_cache_value
 WHERE tenant = ?1 AND key = ?2;

-- name: cache_value_set
-- Store the built value in place of the old one: readers see the old or the new one, never a mix.
-- The caller has checked in this transaction that the build is its own and alive.
-- params:  1 tenant  2 key  3 filled  4 began_at  5 fresh_until  6 stale_until  7 purge_at
--          8 build_ms  9 code  10 negative  11 value
INSERT INTO il_cache_value (tenant, key, filled, began_at, fresh_until, stale_until, purge_at,
                            build_ms, code, negative, value)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)
    ON CONFLICT (tenant, key) DO UPDATE
   SET filled = ?3, began_at = ?4, fresh_until = ?5, stale_until = ?6, purge_at = ?7, build_ms = ?8,
       code = ?9, negative = ?10, value = ?11;

-- name: cache_value_age
-- A value becomes stale.
-- params:  1 tenant  2 key  3 fresh_until  4 stale_until  5 purge_at
UPDATE il_cache_value SET fresh_until = ?3, stale_until = ?4, purge_at = ?5
 WHERE tenant = ?1 AND key = ?2;

-- name: cache_value_remove
-- A value was dropped.
-- params:  1 tenant  2 key
DELETE FROM il_cache_value WHERE tenant = ?1 AND key = ?2;

-- name: cache_value_purge
-- Delete expired values. The cost is that of the deleted rows and those of the same millisecond:
-- the index on purge_at is read from its start.
-- params:  1 wall_ms  2 limit
DELETE FROM il_cache_value
 WHERE id IN (SELECT id FROM il_cache_value
               WHERE purge_at <= ?1
               ORDER BY purge_at, filled LIMIT ?2);

-- ---- builds -------------------------------------------------------------------------------------

-- name: cache_build_of_key
-- The build of a key's value, dead or alive.
-- params:  1 tenant  2 key
-- returns: holder, token, expires_ms, began_ms, began_at
SELECT holder, token, expires_ms, began_ms, began_at FROM il_cache_build
 WHERE tenant = ?1 AND key = ?2;

-- name: cache_build_set
-- A new build, in place of a dead one.
-- params:  1 tenant  2 key  3 holder  4 token  5 expires_ms  6 began_ms  7 began_at
INSERT INTO il_cache_build (tenant, key, holder, token, expires_ms, began_ms, began_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
    ON CONFLICT (tenant, key) DO UPDATE
   SET holder = ?3, token = ?4, expires_ms = ?5, began_ms = ?6, began_at = ?7;

-- name: cache_build_renew
-- A build lives on.
-- params:  1 tenant  2 key  3 expires_ms
UPDATE il_cache_build SET expires_ms = ?3 WHERE tenant = ?1 AND key = ?2;

-- name: cache_build_remove
-- A build is over: filled, abandoned or void.
-- params:  1 tenant  2 key
DELETE FROM il_cache_build WHERE tenant = ?1 AND key = ?2;

-- name: cache_build_purge
-- Delete dead builds. The cost is that of the deleted rows and those of the same millisecond: the
-- index on expires_ms is read from its start.
-- params:  1 now_ms  2 limit
DELETE FROM il_cache_build
 WHERE (tenant, key) IN (SELECT tenant, key FROM il_cache_build
                          WHERE expires_ms <= ?1
                          ORDER BY expires_ms, token LIMIT ?2);

-- ---- both ---------------------------------------------------------------------------------------

-- name: cache_overdue
-- Has a value expired, or a build died? Two lookups at the start of an index.
-- params:  1 now_ms  2 wall_ms
SELECT EXISTS (SELECT 1 FROM il_cache_build WHERE expires_ms <= ?1)
    OR EXISTS (SELECT 1 FROM il_cache_value WHERE purge_at <= ?2);

-- name: cache_page
-- Where a page of keys that have a value or a build ends.
-- params:  1 tenant  2 lowest key  3 key below which (prefix, then a byte that no key has)
--          4 after key  5 keys of the page
-- returns: the last key of the page, then the one behind it; fewer rows: the page goes on to the
--          end
SELECT key FROM (SELECT key FROM il_cache_value
                  WHERE tenant = ?1 AND key >= max(?2, ?4) AND key < ?3 AND key <> ?4
                  ORDER BY key LIMIT ?5 + 1)
UNION
SELECT key FROM (SELECT key FROM il_cache_build
                  WHERE tenant = ?1 AND key >= max(?2, ?4) AND key < ?3 AND key <> ?4
                  ORDER BY key LIMIT ?5 + 1)
 ORDER BY key LIMIT 2 OFFSET ?5 - 1;

-- name: cache_stats
-- Count the usable values and the live builds of a page of keys. The length of a value is known
-- without reading it.
-- params:  1 tenant  2 lowest key  4 now_ms  5 wall_ms  6 after key
--          7 last key of the page; 3 is not used
-- returns: values, their bytes, fresh ones, negative ones, builds
SELECT count(*), ifnull(sum(length(value)), 0), ifnull(sum(fresh_until > ?5), 0),
       ifnull(sum(negative <> 0), 0),
       (SELECT count(*) FROM il_cache_build
         WHERE tenant = ?1 AND key >= max(?2, ?6) AND key <> ?6 AND key <= ?7 AND expires_ms > ?4)
  FROM il_cache_value
 WHERE tenant = ?1 AND key >= max(?2, ?6) AND key <> ?6 AND key <= ?7
   AND (fresh_until > ?5 OR stale_until > ?5);
