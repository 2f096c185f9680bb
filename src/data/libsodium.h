/*
 * libsodium.h: libsodium, loaded when a key is first created or looked up, or a page of LiveRC is
 * read: only a server and a few commands need it.
 */
#ifndef IL_DATA_LIBSODIUM_H
#define IL_DATA_LIBSODIUM_H

#include <sodium.h>

#include "base/base.h"

struct data_sodium {
#define X(name) __typeof__(&name) name;
#include "data/libsodium.def"
#undef X
};

/* The functions; NULL before il__data_sodium_load() has returned IL_OK once. Never unloaded. */
extern const struct data_sodium *il__sodium;

/* Thread-safe. IL_OK, or IL_STORE: not installed. */
il_status il__data_sodium_load(il_error *reterr) MUST_USE;

#endif
