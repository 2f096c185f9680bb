/* args.h: parses a command line by the tables. Prints nothing and allocates nothing. */
#ifndef IL_CLI_ARGS_H
#define IL_CLI_ARGS_H

#include "cli/defs.h"

#define CLI_OPERANDS_MAX 1024
#define CLI_EACH_MAX 32

struct cli_value {
    bool        given;
    const char *text;   /* as written; "" for a flag */
    int64_t     number; /* parsed by il__cli_spec_parse() from it or the option's default */
};

struct cli_args {
    struct cli_value values[CLI_OPT_COUNT]; /* by enum cli_option_id; if repeated, the last */
    struct {
        enum cli_option_id option;
        const char        *text;
    } each[CLI_EACH_MAX]; /* the values of CLI_EACH options, in order */
    size_t      n_each;
    const char *operands[CLI_OPERANDS_MAX];
    size_t      n_operands;
    char      **tail; /* CLI_TAIL: the other command line, NULL-terminated; NULL = none given */
};

/* The i-th value given for a CLI_EACH option; NULL after the last. */
const char *il__cli_args_each(const struct cli_args *args, enum cli_option_id option, size_t i);

/* Nothing given; the numbers are the defaults of options.def. */
void il__cli_args_init(struct cli_args *args);

/* Parse a whole command line: options, the command (or only its family), its options and
 * operands. *ret is NULL when no command is named. IL_OK or IL_INVAL. */
MUST_USE il_status il__cli_args_command(struct cli_args *args, char **argv, int *i_arg,
                                        const struct cli_command **ret, il_error *reterr);

/* Is the number of operands right, and are their values known? IL_OK or IL_INVAL. */
MUST_USE il_status il__cli_args_complete(const struct cli_args    *args,
                                         const struct cli_command *command, il_error *reterr);

/* Set IL_INVAL: no command `word` in that family (NULL: in none), with a suggestion. */
il_status il__cli_unknown_command(const struct cli_command *parent, const char *word,
                                  il_error *reterr);
/* The same for a configuration key. */
void il__cli_suggest_key(const char *word, char *hint, size_t n_bytes);

#endif
