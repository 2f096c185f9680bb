-- meta: version and oldest code that may use it.
-- returns: version, min_version
SELECT version, min_version FROM il_data_meta;
