/*
 * cmd_check.h: `interlock check`: cmd_check.c is the command and prints, cmd_check_here.c runs
 * invariants in this process, cmd_check_server.c has a server run its own.
 */
#ifndef IL_APPS_CHECK_CMD_CHECK_H
#define IL_APPS_CHECK_CMD_CHECK_H

#include "apps/check/check.h"

struct cli;
struct tables_place;

/* The invariants of a command and their results. */
struct check_session {
    struct cli          *cli;
    struct check_set     set;
    const struct check **chosen;
    size_t               n;
    struct check_result *results; /* n, zeroed before they run */
    struct tables_place *place;   /* of the apps' tables; NULL: none */
};

/* ---- cmd_check_here.c ------------------------------------------------------------------------ */

/* The invariants of files and apps, into the set. */
MUST_USE il_status il__check_here_load(struct check_session *s, il_error *reterr);
/* Run the chosen ones, and keep the results in the history of the store, if it has one. */
MUST_USE il_status il__check_here_run(struct check_session *s, il_error *reterr);

/* ---- cmd_check_server.c ---------------------------------------------------------------------- */

/* The same with the invariants of a server. */
MUST_USE il_status il__check_server_load(struct check_session *s, il_error *reterr);
MUST_USE il_status il__check_server_run(struct check_session *s, il_error *reterr);

#endif
