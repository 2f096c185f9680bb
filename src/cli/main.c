/*
 * main.c: the entry point. Everything else is in a static library that tests and fuzzers link as
 * well.
 */
#include "cli/cli.h"
#include "cli/store.h"
#include "proc/hide.h"
#include "runtime/handle.h"

static void
free_args(char **args)
{
    for (char **a = args; *a != NULL; a++)
        il__free(*a);
    il__free(args);
}

/* Copy the arguments and overwrite passwords of URLs in the originals, which every user can see
 * in ps. NULL: out of memory. */
static char **
hide_args(int argc, char **argv)
{
    char **copy = il__calloc((size_t)argc + 1, sizeof *copy);

    for (int i = 0; copy != NULL && i < argc; i++) {
        size_t          n_bytes = strlen(argv[i]);
        AUTO_FREE char *safe    = il__cli_safe_url(argv[i]);
        copy[i]                 = il__strdup(argv[i]);
        if (copy[i] == NULL) {
            free_args(copy);
            return NULL;
        }
        if (safe == NULL || strcmp(safe, argv[i]) == 0)
            continue; /* (NULL: longer than a URL may be) */
        size_t n_safe = MIN(strlen(safe), n_bytes);
        explicit_bzero(argv[i], n_bytes);
        memcpy(argv[i], safe, n_safe);
    }
    return copy;
}

int
main(int argc, char **argv)
{
    /* First of all, before anything points into the original arguments. */
    char **args = hide_args(argc, argv);

    if (args == NULL || !il__proc_hide_environment())
        return il__cli_fail_memory();
    il__configure_process();
    int status = il__cli_main(args);
    free_args(args);
    return status;
}
