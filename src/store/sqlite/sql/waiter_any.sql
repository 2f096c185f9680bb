-- waiter_any: does anybody wait for anything? Asked once per transaction; mostly nobody does, and then no
-- op looks at the queue of its key.
SELECT EXISTS (SELECT 1 FROM il_waiter);
