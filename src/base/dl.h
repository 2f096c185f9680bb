/*
 * dl.h: libraries that are loaded when they are first needed. So the binary starts without them (some bring along dozens of others), and
 * runs where they are not installed.
 *
 * The functions of a library are rows of a .def file, X(name); they become the members of a struct and, by IL__DL_SYMBOL, the table here.
 */
#ifndef IL_BASE_DL_H
#define IL_BASE_DL_H

#include "base/base.h"

struct il__dl_symbol {
    const char *name;
    size_t      offset; /* of the member that gets its address */
};
#define IL__DL_SYMBOL(type, name) { #name, offsetof(type, name) },

struct il__dl {
    const char                 *soname;
    const char                 *package; /* of Debian's, for the message */
    const struct il__dl_symbol *symbols;
    size_t                      n_symbols;
};

/* Load it and fill the struct at `functions`. False: `why` says why not. Never unloaded. Call it once: the caller has a pthread_once. */
bool il__dl_load(const struct il__dl *dl, void *functions, char *why, size_t n_why) MUST_USE;

#endif
