-- meta_set
-- params:  1 version  2 min_version
INSERT INTO il_data_meta (one, version, min_version) VALUES (1, ?1, ?2)
ON CONFLICT (one) DO UPDATE SET version = excluded.version, min_version = excluded.min_version;
