-- begin: READ COMMITTED, whatever the server's default; whoever waits for somebody else's row gives up in time.
BEGIN ISOLATION LEVEL READ COMMITTED;
SET LOCAL lock_timeout = '5s'
