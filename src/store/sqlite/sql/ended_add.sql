-- ended_add: what ended in this transaction.
-- params:  1 seq  2 ended_ms  3 entries
INSERT INTO il_ended (seq, ended_ms, entries) VALUES (?1, ?2, ?3);
