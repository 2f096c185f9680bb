-- waiter_entangled: waiters whose unit of work also holds or waits for something else: only those can be
-- part of a cycle.
-- params:  1 tenant after which
-- returns: tenant, holder
SELECT tenant, holder FROM il_waiter w
 WHERE verdict = '' AND tenant > ?1
   AND (EXISTS (SELECT 1 FROM il_lease l WHERE l.tenant = w.tenant AND l.root = w.root)
        OR EXISTS (SELECT 1 FROM il_waiter o
                    WHERE o.tenant = w.tenant AND o.root = w.root AND o.ticket <> w.ticket))
 ORDER BY tenant, ticket;
