-- order_add: learn an edge.
-- params:  1 tenant  2 first  3 then_  4 first_place  5 then_place
INSERT OR IGNORE INTO il_order (tenant, first, then_, first_place, then_place)
VALUES (?1, ?2, ?3, ?4, ?5);
