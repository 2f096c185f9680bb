-- run_log_extend: put more at the end of a short piece, so that many small writes do not become many rows. Joining makes a
-- text of the bytes, whatever they are; the cast makes bytes of it again.
-- params:  1 piece  2 data
UPDATE il_run_log SET data = CAST(data || ?2 AS BLOB) WHERE piece = ?1;
