/*
 * opens.c: a program that names no store: it takes a key in the one that il_open(NULL, ...) opens,
 * and does not give it back.
 *
 * opens KEY [TENANT [existing]]: prints the error and exits with its status.
 */
#include <stdio.h>
#include <string.h>

#include "interlock.h"

int
main(int argc, char **argv)
{
    il_open_opts opts = IL_OPEN_OPTS_INIT;
    il          *h    = NULL;
    il_error     err;

    if (argc < 2)
        return 64;
    if (argc > 2 && argv[2][0] != '\0')
        opts.tenant = argv[2];
    if (argc > 3)
        opts.flags = IL_OPEN_EXISTING;
    il_op     op = { .type = IL_OP_ACQUIRE, .key = argv[1], .holder = "opens" };
    il_status st = il_open(NULL, argc > 2 ? &opts : NULL, &h, &err);
    if (st == IL_OK)
        st = il_apply(h, &op, 1, &err);
    if (st == IL_OK && op.status != IL_OK) {
        st = op.status;
        (void)snprintf(err.message, sizeof err.message, "%s",
                       op.out.detail != NULL ? op.out.detail : il_status_text(st));
    }
    if (st != IL_OK)
        (void)fprintf(stderr, "interlock: %s\n", err.message);
    il_op_release(&op);
    il_close(h);
    return il_status_exit(st);
}
