-- doctor_sqlite.sql: the catalogue of a SQLite file, for `interlock doctor --connection`. All of it
-- runs in one read-only transaction.

-- name: sqlite_find
-- params:  1 the table as il__guard_quote() has it: "main"."t"
-- returns: schema, name, kind
SELECT schema, name, type FROM pragma_table_list
 WHERE printf('"%w"."%w"', schema, name) = $1 LIMIT 1;

-- name: sqlite_list
-- The user's tables.
-- returns: schema, name, kind
SELECT schema, name, type FROM pragma_table_list
 WHERE schema = 'main' AND type = 'table'
   AND name NOT LIKE 'sqlite\_%' ESCAPE '\' AND name NOT LIKE 'interlock\_%' ESCAPE '\'
 ORDER BY name;

-- name: sqlite_columns
-- params:  1 schema  2 table
-- returns: name, is it an integer?, place in the primary key or 0
SELECT name, type LIKE '%INT%', pk FROM pragma_table_xinfo($2) WHERE schema = $1 ORDER BY cid;

-- name: sqlite_indexes
-- A row for each column of an index; the column is NULL where it is an expression.
-- params:  1 schema  2 table
-- returns: index, is it unique?, is it valid?, CREATE INDEX of a partial one, column, NULL
SELECT l.name, l."unique", 1, CASE WHEN l.partial THEN s.sql END, i.name, NULL
  FROM pragma_index_list($2, $1) AS l
  JOIN pragma_index_xinfo(l.name, $1) AS i
  LEFT JOIN main.sqlite_schema AS s ON s.type = 'index' AND s.name = l.name
 WHERE i.key ORDER BY l.name, i.seqno;

-- name: sqlite_foreign_keys
-- A row for each referencing column.
-- params:  1 schema  2 table
-- returns: foreign key, 0, 1, NULL, column, the table that it refers to
SELECT id, 0, 1, NULL, "from", "table" FROM pragma_foreign_key_list($2, $1) ORDER BY id, seq;

-- name: sqlite_taken
-- Does a table or index of this name exist?
-- params:  1 schema  2 name
-- returns: 1 or 0
SELECT count(*) > 0 FROM main.sqlite_schema WHERE $1 IS NOT NULL AND name = $2 COLLATE NOCASE;

-- name: sqlite_constraints
-- The text that declares the table's constraints.
-- params:  1 schema  2 table
-- returns: CREATE TABLE
SELECT sql FROM main.sqlite_schema WHERE $1 IS NOT NULL AND type = 'table' AND name = $2;

-- name: sqlite_settings
-- returns: bytes of a page, version of SQLite
SELECT page_size, sqlite_version() FROM pragma_page_size;
