-- ended_load: what other processes have added since we looked, as far as it still counts.
-- params:  1 seq after which  2 ended_ms after which
-- returns: ended_ms, entries, seq
SELECT ended_ms, entries, seq FROM il_ended WHERE seq > ?1 AND ended_ms > ?2 ORDER BY seq;
