-- unique_find: which job took a unique key last?
-- params:  1 queue  2 key
-- returns: seq
SELECT seq FROM il_unique WHERE queue = ?1 AND key = ?2;
