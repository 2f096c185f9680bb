-- raw_acquire: take a key that is free or whose lease has run out. Changes one row, or none when it is held.
-- params:  1 tenant  2 key  3 holder  4 fence  5 expires  6 now
INSERT INTO lease (tenant, key, holder, fence, expires)
VALUES (?1, ?2, ?3, ?4, ?5)
    ON CONFLICT (tenant, key) DO UPDATE
   SET holder = excluded.holder, fence = excluded.fence, expires = excluded.expires
 WHERE lease.expires <= ?6;
