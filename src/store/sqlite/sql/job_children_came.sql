-- job_children_came: how many children a live parent has got: they are numbered, and not purged while it lives.
-- params:  1 parent
-- returns: ordinal of the last one, NULL without any
SELECT max(ordinal) FROM il_job WHERE parent = ?1;
