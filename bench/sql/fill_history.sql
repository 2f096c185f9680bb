-- fill_history: finished jobs of queue 1, as the engine would have left them, but much faster. Their ids are UUIDs of version 7 from
-- before any that is made now, their numbers begin after 1,000,000.
-- params:  1 how many
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
INSERT INTO il_job (seq, queue, tenant, id, priority, max_attempts, is_parent, n_children, created_ms, unique_until_ms,
                    payload)
SELECT 1000000 + i, 1, 'default', printf('01000000-%04x-7%03x-8000-%012x', i / 4096, i % 4096, i), 0, 5, 0, 0, 1, 0, zeroblob(100)
  FROM n;
