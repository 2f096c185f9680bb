-- postgres_fence_share: the highest fence that was shown, of $1 tenant and $2 key; and it stays that until the end of the transaction. Shared: steps of one run at the same time do not wait for each other.
-- Free of races: postgres_fence_show, the only one that changes it, waits for all who share it; and if that one is at work, this waits for it and sees what it has written (READ COMMITTED).
SELECT fence FROM interlock_fence WHERE tenant = $1 AND key = $2 FOR SHARE;
