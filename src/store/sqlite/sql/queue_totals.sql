-- queue_totals: totals of a queue, once per transaction that changed them.
-- params:  1 no  2..11 the totals in the order of struct il__totals
UPDATE il_queue
   SET pushed = ?2, claimed = ?3, completed = ?4, failed = ?5, dead = ?6, snoozed = ?7, cancelled = ?8,
       recovered = ?9, duplicates = ?10, stale = ?11
 WHERE no = ?1;
