-- dialect.sql: the parts of ../../sql that are particular to this engine.

-- part: bytes_of_parameters
length(CAST(d.parameters AS BLOB))

-- part: bytes_of_details
length(CAST(s.details AS BLOB))

-- No row is locked by anybody else, see transaction.sql.
-- part: limit_to_unlocked
LIMIT $2

-- The same: only this transaction writes.
-- part: by_id_locked
ORDER BY id
