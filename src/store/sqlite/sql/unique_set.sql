-- unique_set: a job takes a unique key that is free.
-- params:  1 queue  2 key  3 seq
INSERT INTO il_unique (queue, key, seq) VALUES (?1, ?2, ?3)
    ON CONFLICT (queue, key) DO UPDATE SET seq = excluded.seq;
