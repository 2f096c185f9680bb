-- state: what is installed. There is no such table: nothing.
-- returns: version, min_version, test_clock, functions
SELECT version, min_version, test_clock, functions FROM @schema.state
