-- report_begin: a transaction in which apply() can be called whatever the defaults of the role are: those are to be reported.
BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY
