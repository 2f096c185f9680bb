/*
 * args.c: command lines; the words of the input are separated by newlines. Parsed values point into
 * the command line and are within the bounds of their table, and an error is one non-empty line.
 */
#include "cli/args.h"

#include "fuzz/fuzz.h"

#define WORDS_MAX 64

static bool
is_word(char *const *argv, const char *text)
{
    for (size_t i = 0; argv[i] != NULL; i++) {
        if (text >= argv[i] && text <= argv[i] + strlen(argv[i]))
            return true;
    }
    return false;
}

static void
check_args(const struct cli_args *args, const struct cli_command *command, char **argv)
{
    for (size_t i = 0; i < CLI_OPT_COUNT; i++) {
        const struct cli_option *option = &il__cli_options[i];
        const struct cli_value  *value  = &args->values[i];
        if (!value->given)
            continue;
        CHECK(il__cli_option_fits(option, command));
        CHECK(option->spec.type == CLI_FLAG || is_word(argv, value->text));
        if (option->spec.type == CLI_NUMBER || option->spec.type == CLI_DURATION ||
            option->spec.type == CLI_TIME)
            CHECK(value->number >= option->spec.min && value->number <= option->spec.max);
        if (option->spec.type == CLI_WAIT && value->number != IL_FOREVER)
            CHECK(value->number >= option->spec.min && value->number <= option->spec.max);
    }
    CHECK(args->n_operands <= CLI_OPERANDS_MAX);
    for (size_t i = 0; i < args->n_operands; i++)
        CHECK(is_word(argv, args->operands[i]));
    if (args->tail != NULL)
        CHECK(args->tail >= argv && args->tail <= argv + WORDS_MAX);
}

static void
check_refusal(il_status st, const il_error *err)
{
    CHECK(st == IL_INVAL && err->status == IL_INVAL && err->message[0] != '\0');
}

/* As dispatch.c does it. */
static void
parse(char **argv)
{
    struct cli_args           args    = { 0 };
    const struct cli_command *command = NULL;
    il_error                  err     = { .message = "" };
    int                       i_arg   = 0;
    il_status                 st      = il__cli_args_command(&args, argv, &i_arg, &command, &err);

    if (st == IL_OK) {
        CHECK(argv[i_arg] == NULL);
        check_args(&args, command, argv);
        if (command == NULL || (command->flags & CLI_FAMILY) != 0)
            return;
        st        = il__cli_args_complete(&args, command, &err);
        bool tail = (command->flags & (CLI_TAIL | CLI_NO_TAIL)) == CLI_TAIL;
        CHECK(st != IL_OK || args.n_operands >= command->operands_min);
        CHECK(st != IL_OK || !tail || args.tail[0] != NULL);
    }
    if (st != IL_OK)
        check_refusal(st, &err);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    char  *text                = fuzz_text(data, n_bytes);
    char  *argv[WORDS_MAX + 1] = { 0 };
    size_t n                   = 0;

    for (char *word = text; word != NULL && n < WORDS_MAX;) {
        char *end = strchr(word, '\n');
        if (end != NULL)
            *end++ = '\0';
        argv[n++] = word;
        word      = end;
    }
    parse(argv);
    free(text);
    return 0;
}
