/*
 * libsodium.h: libsodium, loaded when keys are made or looked up for the first time: only a server and a few commands do that.
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

/* The functions; NULL before il__data_sodium_load() was IL_OK once. Never unloaded. */
extern const struct data_sodium *il__sodium;

/* Safe from any thread. IL_OK, or IL_STORE: it is not there. */
il_status il__data_sodium_load(il_error *reterr) MUST_USE;

#endif
