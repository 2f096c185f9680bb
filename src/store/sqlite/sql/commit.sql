-- commit: with synchronous = FULL this returns after the WAL was synced.
COMMIT;
