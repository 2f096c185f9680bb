/*
 * cli.h: the context that the dispatcher (dispatch.c) passes to a command.
 *
 * The way to a command:
 *   main.c         the entry point
 *   dispatch.c     from argv to a command
 *   defs.c         the .def files as tables, and parsing of their values
 *   args.c         the command line
 *   config.c       the configuration of the command
 *   connections.c  its key `connections`
 *   app_config.c   the configuration as apps get it
 *   settings.c     the same as people may see it
 *   store.c        chooses and opens the store
 *   data_store.c   opens the data store
 *   app_tables.c   the tables of the apps
 *
 * What commands share:
 *   apply.c    applies one op, and reports its error
 *   input.c    payloads, lists of states, the grace time
 *   find_id.c  short ids
 *   request.c  requests to a server other than ops
 *   audit.c    writes to the audit log
 *   hook.c     hooks of `run` and `queue work`
 *   suggest.c  "did you mean"
 *
 * Output:
 *   out.c          messages, colours, escaping, JSON
 *   grid.c         tables
 *   page.c         pages of listings
 *   print_item.c   jobs, queues, schedules, runs
 *   print_lease.c  leases
 *   run_show.c     one run, as its app shows it
 *   events.c       events of a key as sentences
 *   progress.c     how far a long command is
 *
 * Help and documentation:
 *   help.c            --help
 *   version.c         --version
 *   man.c             man pages
 *   roff.c            their text
 *   docs.c            tables for docs/
 *   cmd_debug.c       `debug`, for the build
 *   cmd_completion.c  `completion`: scripts for shells
 *   cmd_complete.c    `__complete`: what these ask for
 *
 * Locks and runs:
 *   cmd_run.c           `run`; wrap/ does the work
 *   cmd_once.c          `once`
 *   cmd_cache.c         `cache`
 *   cmd_lock.c          `lock`; lock/ has the keeper
 *   cmd_unlock.c        `unlock`
 *   cmd_locks.c         `locks`
 *   cmd_locks_report.c  `locks --report`
 *   lock_report.c       reads and groups row locks
 *   cmd_why.c           `why`
 *   cmd_history.c       `history`
 *   cmd_break.c         `break`
 *   cmd_runs.c          `runs`, `logs`, `cancel`
 *   cmd_top.c           `top`, with top/
 *
 * Queues:
 *   cmd_queue_push.c   `queue push`
 *   cmd_queue_work.c   `queue work`; worker/ does the work
 *   cmd_queue_jobs.c   existing jobs
 *   cmd_queue_admin.c  queues and their settings
 *   cmd_queue_cron.c   schedules
 *
 * Measuring and trying:
 *   cmd_bench.c  `bench`
 *   bench.c      its measurements
 *   histogram.c  a latency histogram
 *   cmd_race.c   `race`
 *   race.c       starts copies of a command at once
 *
 * Administration:
 *   cmd_serve.c    `serve`
 *   cmd_config.c   `config`
 *   cmd_migrate.c  `migrate`
 *   cmd_key.c      `key`
 *   cmd_tenant.c   `tenant`
 *   cmd_audit.c    `audit`
 *   cmd_guard.c    `guard`
 *   cmd_doctor.c   `doctor`
 *   doctor_*.c     `doctor --connection` and --checklist; see doctor.h
 *   cmd_reaper.c   the process between a worker and a job's command
 *   cmd_spawner.c  the process that starts a server's commands
 */
#ifndef IL_CLI_CLI_H
#define IL_CLI_CLI_H

#include "cli/args.h"
#include "cli/config.h"
#include "cli/defs.h"
#include "cli/out.h"
#include "cli/store.h"

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
