-- 0002--0003-queue: the index by which a live job is found need not be unique: job.seq is, and a job is put among the live ones once (when it is pushed, or by a retry, which takes it
-- from the ended ones). A claim changes every job that it takes in this index; being unique means that the row of before is looked at, too: an eighth of what a worker's claims and finishes
-- cost the server. Older code can live with it.
ALTER TABLE job_live DROP CONSTRAINT job_live_pkey;
CREATE INDEX job_live_seq ON job_live (queue, seq);
