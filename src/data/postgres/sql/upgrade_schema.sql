-- upgrade_schema: only when it is not there: somebody who may not make schemas can be given an empty one.
CREATE SCHEMA @schema
