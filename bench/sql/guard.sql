-- guard.sql: the tables of the guard rows, and the statements of a guarded transaction by hand.

-- name: guard_make_sqlite
DROP TABLE IF EXISTS users;
DROP TABLE IF EXISTS ledger;
CREATE TABLE users (
    id      INTEGER PRIMARY KEY,
    balance INTEGER NOT NULL CHECK (balance >= 0)
);
CREATE TABLE ledger (
    id      INTEGER PRIMARY KEY,
    user_id INTEGER NOT NULL,
    amount  INTEGER NOT NULL,
    key     TEXT    NOT NULL UNIQUE
);
WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 1023)
INSERT INTO users SELECT i, 1000000000000 FROM n;

-- name: guard_make_postgres
DROP TABLE IF EXISTS users, ledger;
CREATE TABLE users (
    id      bigint PRIMARY KEY,
    balance bigint NOT NULL CHECK (balance >= 0)
);
CREATE TABLE ledger (
    id      bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    user_id bigint NOT NULL,
    amount  bigint NOT NULL,
    key     text   NOT NULL UNIQUE
);
INSERT INTO users SELECT i, 1000000000000 FROM generate_series(0, 1023) i;

-- name: guard_begin_postgres
-- One message, as the guard kit sends it.
BEGIN;
SET LOCAL idle_in_transaction_session_timeout = '30s';
SET LOCAL lock_timeout = 5000;
SET LOCAL statement_timeout = 30000;

-- name: guard_lock_sqlite
-- The transaction has the write lock since its begin.
-- params:  1 id
-- returns: id
SELECT id FROM users WHERE id = $1;

-- name: guard_lock_postgres
-- params:  1 id
-- returns: id
SELECT id FROM users WHERE id = $1 FOR NO KEY UPDATE;

-- name: guard_add
-- params:  1 id  2 amount
-- returns: id, balance
UPDATE users SET balance = balance - CAST($2 AS bigint)
 WHERE id = $1 AND balance - CAST($2 AS bigint) >= 0 RETURNING id, balance;

-- name: guard_savepoint
SAVEPOINT s;

-- name: guard_insert
-- params:  1 user  2 amount  3 key
-- returns: id
INSERT INTO ledger (user_id, amount, key) VALUES ($1, $2, $3) RETURNING id;

-- name: guard_release
RELEASE s;
