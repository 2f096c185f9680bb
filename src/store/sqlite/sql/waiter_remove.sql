-- waiter_remove: it got its offer, gave up, or went silent.
-- params:  1 ticket
DELETE FROM il_waiter WHERE ticket = ?1;
