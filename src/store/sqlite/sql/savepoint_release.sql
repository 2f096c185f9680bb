-- savepoint_release: keep what was done since the savepoint, and forget that.
RELEASE il_apply;
