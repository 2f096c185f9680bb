-- ended_purge: forget what no longer counts. Looks at the front of the table only, so it costs what it removes.
-- params:  1 ended_ms up to which  2 how many rows to look at
DELETE FROM il_ended
 WHERE seq <= (SELECT max(seq) FROM (SELECT seq, ended_ms FROM il_ended ORDER BY seq LIMIT ?2)
                WHERE ended_ms <= ?1);
