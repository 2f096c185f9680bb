-- order_load: all learned edges; there are few (IL__ORDER_EDGES_MAX).
-- returns: tenant, first, then_, first_place, then_place
SELECT tenant, first, then_, first_place, then_place FROM il_order;
