/*
 * hide.c: protects the environment and memory of this process; the contract is in hide.h.
 */
#include "proc/hide.h"

#include <sys/prctl.h>
#include <unistd.h>

bool
il__proc_hide_environment(void)
{
    /* setenv() drops the string it replaces, which is part of one block; volatile, since it is
     * never read. */
    static char **volatile kept;
    size_t n       = 0;
    size_t n_bytes = 0;

    for (; environ != NULL && environ[n] != NULL; n++)
        n_bytes += strlen(environ[n]) + 1;
    char **copy = il__calloc(1, (n + 1) * sizeof *copy + n_bytes);
    if (copy == NULL)
        return false;
    char *to = (char *)(copy + n + 1);
    for (size_t i = 0; i < n; i++) {
        copy[i] = to;
        to      = stpcpy(to, environ[i]) + 1;
    }
#ifndef IL_MUTANT_environment_shown
    for (size_t i = 0; i < n; i++)
        explicit_bzero(environ[i], strlen(environ[i]));
#endif
    kept    = copy; /* for as long as the process lives */
    environ = kept;
    return true;
}

void
il__proc_hide_memory(void)
{
    (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); /* cannot fail with 0 */
}
