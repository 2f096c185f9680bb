-- job_blobs: what a job carries and what came of it, each if it is not too large, and how large they are. length() looks
-- at the head of a row, and a CASE reads only what it gives: what is too large is not read.
-- params:  1 seq  2 state  3 bytes to read at most
-- returns: bytes of the payload, payload or NULL, bytes of the result (NULL = it has none), result or NULL
SELECT length(j.payload), CASE WHEN length(j.payload) <= ?3 THEN j.payload END,
       length(d.result), CASE WHEN length(d.result) <= ?3 THEN d.result END
  FROM il_job j LEFT JOIN il_done d ON d.queue = j.queue AND d.state = ?2 AND d.seq = j.seq
 WHERE j.seq = ?1;
