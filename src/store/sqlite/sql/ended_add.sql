-- ended_add: remember that this holder's lease of this key has ended.
-- params:  1 minute  2 tenant  3 key  4 holder  5 fence  6 how  7 ended_ms
INSERT OR REPLACE INTO il_ended (minute, tenant, key, holder, fence, how, ended_ms)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7);
