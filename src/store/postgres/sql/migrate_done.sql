-- migrate_done: what is installed now.
-- params:  1 version  2 min_version  3 functions
UPDATE state SET version = $1, min_version = $2, functions = $3
