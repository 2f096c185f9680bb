-- begin: of a data store in memory; that of a file is begun by il_tx_begin(), under the store's lock.
BEGIN IMMEDIATE;
