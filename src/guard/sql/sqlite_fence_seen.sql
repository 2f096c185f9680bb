-- sqlite_fence_seen: the highest fence that was shown: for the error.
SELECT fence FROM main.interlock_fence WHERE tenant = $1 AND key = $2;
