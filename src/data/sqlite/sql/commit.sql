-- commit: as begin.
COMMIT;
