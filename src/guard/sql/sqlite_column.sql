-- sqlite_column: a column of the table $2 of the schema $1, as the catalogue spells it.
SELECT name FROM pragma_table_xinfo($2) WHERE schema = $1 AND name = $3 COLLATE NOCASE LIMIT 1;
