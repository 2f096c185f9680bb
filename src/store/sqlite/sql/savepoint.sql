-- savepoint: what follows can be undone alone, within the transaction of a caller.
SAVEPOINT il_apply;
