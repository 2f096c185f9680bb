/*
 * dl.c: loads a library with dlopen() and resolves a table of symbols.
 */
#include "base/dl.h"

#include <dlfcn.h>
#include <stdio.h>

bool
il__dl_load(const struct il__dl *dl, void *functions, char *why, size_t n_why)
{
    void *library = dlopen(dl->soname, RTLD_NOW | RTLD_LOCAL);

    if (library == NULL) {
        (void)snprintf(why, n_why, "cannot load %s; is package %s installed?", dl->soname,
                       dl->package);
        return false;
    }
    for (size_t i = 0; i < dl->n_symbols; i++) {
        void *at = dlsym(library, dl->symbols[i].name);
        if (at == NULL) {
            (void)snprintf(why, n_why, "%s is too old: missing symbol %s", dl->soname,
                           dl->symbols[i].name);
            return false;
        }
        /* ISO C has no cast from void * to a function pointer. */
        memcpy((char *)functions + dl->symbols[i].offset, &at, sizeof at);
    }
    return true;
}
