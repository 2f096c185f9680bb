-- job_payload: what a job carries. Apart from the other columns, for it may be large.
-- params:  1 seq
-- returns: payload
SELECT payload FROM il_job WHERE seq = ?1;
