/*
 * libpq.h: libpq, loaded when the first postgres: store is opened. The binary therefore starts
 * without libpq and the dozen libraries it pulls in (TLS, Kerberos, LDAP), and runs where it is not
 * installed.
 */
#ifndef IL_STORE_POSTGRES_LIBPQ_H
#define IL_STORE_POSTGRES_LIBPQ_H

#include <libpq-fe.h>

#include "base/base.h"

struct pg_libpq {
#define X(name) __typeof__(&name) name;
#include "store/postgres/libpq.def"
#undef X
};

/* The functions; NULL before il__pg_libpq_load() has returned IL_OK. Never unloaded. */
extern const struct pg_libpq *il__pq;

/* Safe from any thread. IL_OK, or IL_STORE: not installed. */
il_status il__pg_libpq_load(il_error *reterr) MUST_USE;

#endif
