/*
 * dl.h: shared libraries loaded on first use. The binary starts without them (some pull in dozens
 * of others) and runs where they are not installed.
 *
 * A library's functions are rows X(name) of a .def file; these expand to the members of a struct
 * and, with IL__DL_SYMBOL, to the table here.
 */
#ifndef IL_BASE_DL_H
#define IL_BASE_DL_H

#include "base/base.h"

struct il__dl_symbol {
    const char *name;
    size_t      offset; /* of the member that receives its address */
};
#define IL__DL_SYMBOL(type, name) { #name, offsetof(type, name) },

struct il__dl {
    const char                 *soname;
    const char                 *package; /* of Debian's, for the message */
    const struct il__dl_symbol *symbols;
    size_t                      n_symbols;
};

/* Load the library and fill the struct at `functions`. False: `why` has the reason. Never unloaded.
 * Call it only once (use pthread_once). */
bool il__dl_load(const struct il__dl *dl, void *functions, char *why, size_t n_why) MUST_USE;

#endif
