-- begin_read: one snapshot for all ops of the batch.
BEGIN;
