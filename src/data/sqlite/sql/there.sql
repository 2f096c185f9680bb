-- there: are there tables of ours?
SELECT count(*) FROM sqlite_schema WHERE name = 'il_data_meta';
