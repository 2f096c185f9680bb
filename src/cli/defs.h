/*
 * defs.h: the .def files as C tables. They are the single source of what users can type; --help,
 * man pages, completion, docs tables and the parsers all read them here.
 */
#ifndef IL_CLI_DEFS_H
#define IL_CLI_DEFS_H

#include "base/base.h"
#include "data/data.h"

/* A one-line description of the program. */
#define CLI_SUMMARY "make sure that work happens only once"
/* ... and of the page of common options. */
#define CLI_OPTIONS_SUMMARY "options and settings that all commands of interlock share"

/* Bounds that the tables name. */
#define CLI_MS_MAX (INT64_C(366) * 86400000)   /* the longest duration that can be written */
#define CLI_FENCE_MAX ((INT64_C(1) << 53) - 1) /* fences stay exact in every JSON parser */
#define CLI_RACE_MAX 1000
#define CLI_BENCH_THREADS_MAX 256
#define CLI_WORK_MAX 256
#define CLI_WORK_QUEUES_MAX 16
#define CLI_WORK_WEIGHT_MAX 1000
#define CLI_CHILDREN_MAX 1000000
#define CLI_TIME_MAX INT64_C(253402300799999) /* the end of the year 9999 */
#define CLI_STORE_DEFAULT_TEXT "sqlite:${XDG_STATE_HOME:-~/.local/state}/interlock/interlock.db"

enum cli_type {
    CLI_FLAG,     /* given or not */
    CLI_TEXT,     /* not empty; at most max bytes unless max is 0 */
    CLI_FILE,     /* a path; differs from a text only for completion */
    CLI_NUMBER,   /* a decimal number, min..max */
    CLI_SHARE,    /* a fraction such as 0.8; min, max and its number are thousandths */
    CLI_TIME,     /* RFC 3339; ms since 1970, min..max */
    CLI_DURATION, /* min..max ms */
    CLI_WAIT,     /* a duration, or `forever` (IL_FOREVER) */
    CLI_CHOICE,   /* one of `values`; its number is the index */
    CLI_LIST,     /* names separated by commas */
    CLI_EACH,     /* a text; may be given several times: il__cli_args_each() */
};

/* The valid values; shared by options, environment and configuration files. */
struct cli_spec {
    enum cli_type type;
    int64_t       min;
    int64_t       max;
    const char   *values;
};

enum cli_group {
    CLI_GROUP_WORK,
    CLI_GROUP_LOOK,
    CLI_GROUP_TRY,
    CLI_GROUP_SERVE,
    CLI_GROUP_SETUP,
    CLI_GROUP_COUNT
};

enum cli_command_flags {
    CLI_STORE     = 1 << 0, /* the dispatcher opens the store */
    CLI_CREATE    = 1 << 1, /* ... and may create it */
    CLI_TAIL      = 1 << 2, /* takes another command line after its operands */
    CLI_EXEC      = 1 << 3, /* the child inherits our signal dispositions: leave them alone */
    CLI_NO_CONFIG = 1 << 4, /* runs even if the configuration is broken */
    CLI_HIDDEN    = 1 << 5, /* not shown in help */
    CLI_BARE      = 1 << 6, /* has no store and prints no data: --store and --json do not apply */
    CLI_FAMILY    = 1 << 7, /* only a name before those of other commands */
    CLI_NO_TAIL   = 1 << 8, /* CLI_TAIL: it is optional */
    /* Groups of exits.def. */
    CLI_WRAPS    = 1 << 9,  /* exits with the status of the command it runs */
    CLI_NAMES    = 1 << 10, /* names an object that may not exist */
    CLI_NO_STORE = 1 << 11, /* never uses a store */
};

enum cli_command_id {
#define X(id, ...) CLI_CMD_##id,
#include "cli/commands.def"
#undef X
    CLI_CMD_COUNT,
    CLI_CMD_common = CLI_CMD_COUNT, /* the scope of options that every command has */
};

enum cli_option_id {
#define X(command, id, ...) CLI_OPT_##command##_##id,
#include "cli/options.def"
#undef X
    CLI_OPT_COUNT
};

enum cli_key_id {
#define X(id, ...) CLI_KEY_##id,
#include "cli/config.def"
#undef X
    CLI_KEY_COUNT
};

enum cli_exit {
#define X(name, number, group, commands, text) CLI_EXIT_##name = number,
#include "cli/exits.def"
#undef X
};

struct cli;

/* Run a command; returns the exit status. The dispatcher flushes stdout. */
typedef int cli_command_fn(struct cli *cli);

struct cli_command {
    const char         *name;
    enum cli_command_id id;
    enum cli_group      group;
    size_t              operands_min;
    size_t              operands_max;
    const char         *operand_values;
    const char         *synopsis;
    const char         *summary;
    unsigned            flags; /* enum cli_command_flags */
    cli_command_fn     *fn;
};

struct cli_option {
    enum cli_command_id command;
    const char         *name;
    char                letter; /* 0 = none */
    const char         *argument;
    struct cli_spec     spec;
    bool                required;
    const char         *fallback; /* the default, or ""; use il__cli_option_default() */
    const char         *help;
};

/* When a server applies a changed value. */
enum cli_when {
    CLI_WHEN_reload,  /* on SIGHUP; also of keys that `serve` does not use */
    CLI_WHEN_restart, /* when it starts: a reload says so */
};

struct cli_key {
    const char     *name; /* with dots if it is nested: usage.source.type */
    const char     *env;
    enum cli_when   when;
    struct cli_spec spec;
    const char     *fallback; /* the default */
    const char     *help;
};

/* The commands of a row of exits.def. */
enum cli_exit_group {
    CLI_EXIT_OF_NONE,     /* only those it names */
    CLI_EXIT_OF_ALL,      /* every command */
    CLI_EXIT_OF_PLAIN,    /* all but CLI_WRAPS */
    CLI_EXIT_OF_WRAPPING, /* CLI_WRAPS */
    CLI_EXIT_OF_NAMING,   /* CLI_NAMES */
    CLI_EXIT_OF_STORE,    /* all but CLI_NO_STORE */
};

struct cli_exit_row {
    int                 number;
    enum cli_exit_group group;
    bool                commands[CLI_CMD_COUNT]; /* in addition to the group's */
    const char         *text;
};

extern const struct cli_command il__cli_commands[CLI_CMD_COUNT];
extern const struct cli_option  il__cli_options[CLI_OPT_COUNT];
extern const struct cli_key     il__cli_keys[CLI_KEY_COUNT];
extern const char *const        il__cli_groups[CLI_GROUP_COUNT];

/* The command `word` of the family `parent` (NULL: of no family); NULL if unknown. */
const struct cli_command *il__cli_command_below(const struct cli_command *parent, const char *word);
/* Is it a command of that family (NULL: of none)? */
bool il__cli_command_is_below(const struct cli_command *command, const struct cli_command *parent);
/* The same, or in a nested family. */
bool il__cli_command_is_within(const struct cli_command *command, const struct cli_command *family);
/* Its own name, without those of its families. */
const char *il__cli_command_word(const struct cli_command *command);
/* Can the command exit with this status, for this reason? */
bool il__cli_exit_applies(const struct cli_exit_row *row, const struct cli_command *command);
/* The row after `before` (NULL: the first) in the order of the numbers; NULL after the last. */
const struct cli_exit_row *il__cli_exit_next(const struct cli_exit_row *before);
/* A configuration key by name; NULL if unknown. */
const struct cli_key *il__cli_key_find(const char *name, size_t n_bytes);

/* Does `command` (NULL = none yet) accept this option? */
bool il__cli_option_fits(const struct cli_option *option, const struct cli_command *command);
/* Does it have an effect for this command (NULL = any)? If not, help does not show it. */
bool il__cli_option_applies(const struct cli_option *option, const struct cli_command *command);
/* The default that help shows for an option: its own, or that of the configuration key of the
 * same name, or NULL. */
const char *il__cli_option_default(const struct cli_option *option);

/* Iterate over a `a|b|c` list: the i-th value and its length, or NULL after the last. */
const char *il__cli_choice(const char *values, size_t i, size_t *ret_bytes);

/*
 * Check `text` against `spec`. IL_OK, or IL_INVAL with a reason that does not name the origin of
 * the text, which the caller knows. *ret_number is the number, the ms, or the index of the choice.
 */
MUST_USE il_status il__cli_spec_parse(const struct cli_spec *spec, const char *text,
                                      int64_t *ret_number, il_error *reterr);

#endif
