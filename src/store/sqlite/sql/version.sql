-- version: the schema's version; 0 for an empty file.
PRAGMA user_version;
