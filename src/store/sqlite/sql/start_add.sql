-- start_add: jobs of a queue with a rate were claimed.
-- params:  1 queue  2 at_ms  3 how many
INSERT INTO il_start (queue, at_ms, n) VALUES (?1, ?2, ?3)
    ON CONFLICT (queue, at_ms) DO UPDATE SET n = n + excluded.n;
