-- migrate_state: the one row, at the birth of a store.
-- params:  1 version  2 min_version  3 test_clock
INSERT INTO state (version, min_version, test_clock) VALUES ($1, $2, $3)
