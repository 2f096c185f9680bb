-- create: turn an empty file into a WAL database; kept in the file from then on.
PRAGMA journal_mode = WAL;
