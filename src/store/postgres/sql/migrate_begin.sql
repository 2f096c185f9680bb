-- migrate_begin: the bodies of functions are not checked when they are made, for they may use one another in any order.
BEGIN ISOLATION LEVEL READ COMMITTED;
SET LOCAL client_min_messages = 'error';
SET LOCAL check_function_bodies = off
