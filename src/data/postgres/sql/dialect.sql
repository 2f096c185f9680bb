-- dialect.sql: the parts of ../../sql that are particular to this engine.

-- part: bytes_of_parameters
octet_length(d.parameters)

-- part: bytes_of_details
octet_length(s.details)

-- part: limit_to_unlocked
LIMIT $2 FOR UPDATE SKIP LOCKED

-- NO KEY: as an UPDATE of other columns locks them.
-- part: by_id_locked
ORDER BY id FOR NO KEY UPDATE
