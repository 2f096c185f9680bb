-- postgres_begin: READ COMMITTED, whatever the default is: each statement that follows the one that waited for the fence's row then sees what its owner before has committed.
BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;
