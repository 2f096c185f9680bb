-- unique_remove: a job gives up its unique key, unless another one has taken it since.
-- params:  1 queue  2 key  3 seq
DELETE FROM il_unique WHERE queue = ?1 AND key = ?2 AND seq = ?3;
