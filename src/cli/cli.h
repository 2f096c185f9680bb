/*
 * cli.h: the context that the dispatcher (dispatch.c) passes to a command.
 */
#ifndef IL_CLI_CLI_H
#define IL_CLI_CLI_H

#include "cli/args.h"
#include "cli/config.h"
#include "cli/out.h"
#include "cli/store.h"
#include "cli/table.h"

struct cli {
    const struct cli_command *command;
    struct cli_args           args;
    struct cli_config         config; /* empty for a CLI_NO_CONFIG command */
    il                       *store;  /* open for a CLI_STORE command, else NULL */
    struct il__config_ranks   ranks;  /* the config key `ranks` */
    void (*sigpipe)(int);             /* the disposition of SIGPIPE at start-up */
    void (*sigxfsz)(int);             /* and SIGXFSZ */
    bool store_missing;               /* the default store does not exist yet; `store` is empty */
    bool json;
    bool quiet;
};

/* The value of an option: `CLI_GIVEN(cli, run, ttl)`, `CLI_OPTION(cli, run, ttl)->number`. */
#define CLI_OPTION(cli, command, id) (&(cli)->args.values[CLI_OPT_##command##_##id])
#define CLI_GIVEN(cli, command, id) (CLI_OPTION(cli, command, id)->given)
/* The effective value of a configuration key: `CLI_SETTING(cli, ttl)->number`. */
#define CLI_SETTING(cli, key) (&(cli)->config.settings[CLI_KEY_##key])

/* Print one line on stderr for people, unless --quiet was given. */
void il__cli_note(const struct cli *cli, const char *fmt, ...) PRINTF_LIKE(2, 3);

/*
 * Show how far a long command is, as one line on stderr that the next call replaces: "3/40 text",
 * or only the text if `total` is 0. Silent with --quiet, and unless stderr is a terminal. Of many
 * calls only some are shown. Any message removes the line; remove it before printing on stdout. Any
 * thread.
 */
void il__cli_progress(const struct cli *cli, uint64_t done, uint64_t total, const char *text);
void il__cli_progress_end(void);

/* Validate a key: IL_OK, or IL_INVAL with a message that shows the key and the reason. */
MUST_USE il_status il__cli_check_key(const struct cli *cli, const char *key, il_error *reterr);

/* Everything main() does; returns the exit status. */
int il__cli_main(char **argv);

/* `--version` (version.c); returns the exit status. */
int il__cli_print_version(const struct cli *cli);
/* Print help texts from the tables on stdout (help.c). */
void il__cli_help(void);
void il__cli_help_command(const struct cli_command *command);
/* The command that these words name, as in `help queue push`; `n` 0 gives NULL. IL_OK, or
 * IL_INVAL with a suggestion. */
MUST_USE il_status il__cli_command_named(const char *const *words, size_t n,
                                         const struct cli_command **ret, il_error *reterr);

/* The commands, in files named cmd_*.c. */
#define F(...)
#define X(id, ...) cli_command_fn il__cli_cmd_##id;
#include "cli/commands.def"
#undef X

#endif
