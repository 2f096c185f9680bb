-- ledger.sql: the ledgers of credits and XP; the same for both engines.

-- name: credit_add
-- Race-free: of two with the same key one inserts the row; the other waits for its commit.
-- params:  1 tenant  2 idempotency key, also the id  3 user  4 tournament  5 amount  6 type
--          7 created_at  8 balance
INSERT INTO credit_transactions (tenant, id, user_id, semester_id, amount, type, idempotency_key,
                                 created_at, balance_after)
VALUES ($1, $2, $3, $4, $5, $6, $2, $7, $8) ON CONFLICT DO NOTHING;

-- name: xp_add
INSERT INTO xp_transactions (tenant, id, user_id, semester_id, amount, type, idempotency_key,
                             created_at, balance_after)
VALUES ($1, $2, $3, $4, $5, $6, $2, $7, $8) ON CONFLICT DO NOTHING;

-- name: credit_after
-- Completes the row of the ledger. Race-free: nobody else sees the row before the commit.
-- params:  1 tenant  2 idempotency key  3 balance
UPDATE credit_transactions SET balance_after = $3 WHERE tenant = $1 AND idempotency_key = $2;

-- name: xp_after
UPDATE xp_transactions SET balance_after = $3 WHERE tenant = $1 AND idempotency_key = $2;

-- name: balance_overwrite if mutant campus_balance_overwritten
-- params:  1 tenant  2 user  3 balance
UPDATE users SET credit_balance = $3 WHERE tenant = $1 AND id = $2;
