-- sqlite_table: a table or view by its name; $1 the schema, NULL = main. Names are compared as SQLite does.
SELECT schema, name FROM pragma_table_list WHERE schema = coalesce($1, 'main') COLLATE NOCASE AND name = $2 COLLATE NOCASE LIMIT 1;
