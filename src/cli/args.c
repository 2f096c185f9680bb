/*
 * args.c: the command line parser. It differs from getopt_long in three ways that matter here: long
 * options are never abbreviated (a script must not break when an option is added), the command line
 * of a wrapped command starts at `--` or after the last operand, and errors are returned as text.
 */
#include "cli/args.h"

#include <stdio.h>

#include "base/error.h"
#include "base/suggest.h"

#define HINT_BYTES 80

struct parser {
    struct cli_args          *args;
    const struct cli_command *command;
    char                    **argv;
    int                       i;
    il_error                 *reterr;
};

/* "run: ", so that an error names its command; "" before the command. */
static const char *
where(const struct parser *p)
{
    static _Thread_local char text[40]; /* longer than any name */

    (void)snprintf(text, sizeof text, "%s%s", p->command != NULL ? p->command->name : "",
                   p->command != NULL ? ": " : "");
    return text;
}

static il_status
store_value(struct parser *p, const struct cli_option *option, const char *text)
{
    struct cli_value *value = &p->args->values[option - il__cli_options];
    il_error          why;

    if (option->spec.type != CLI_FLAG &&
        il__cli_spec_parse(&option->spec, text, &value->number, &why) != IL_OK)
        return il__error_set(p->reterr, IL_INVAL, "%s--%s: %s", where(p), option->name,
                             why.message);
    value->given = true;
    value->text  = text;
    if (option->spec.type != CLI_EACH)
        return IL_OK;
    if (p->args->n_each == CLI_EACH_MAX)
        return il__error_set(p->reterr, IL_INVAL, "%s--%s given more than %d times", where(p),
                             option->name, CLI_EACH_MAX);
    p->args->each[p->args->n_each].option = (enum cli_option_id)(option - il__cli_options);
    p->args->each[p->args->n_each++].text = text;
    return IL_OK;
}

const char *
il__cli_args_each(const struct cli_args *args, enum cli_option_id option, size_t i)
{
    for (size_t e = 0; e < args->n_each; e++) {
        if (args->each[e].option == option && i-- == 0)
            return args->each[e].text;
    }
    return NULL;
}

/* The argument of an option that requires one: attached to it, or the next word. */
static il_status
take_value(struct parser *p, const struct cli_option *option, const char *attached)
{
    if (attached == NULL) {
        attached = p->argv[p->i];
        if (attached == NULL)
            return il__error_set(p->reterr, IL_INVAL, "%s--%s needs a value: --%s %s", where(p),
                                 option->name, option->name, option->argument);
        p->i++;
    }
    return store_value(p, option, attached);
}

static const char *
next_option_name(const void *cookie, size_t i)
{
    const struct cli_command *command = cookie;

    for (size_t o = 0; o < CLI_OPT_COUNT; o++) {
        if (il__cli_option_fits(&il__cli_options[o], command) && i-- == 0)
            return il__cli_options[o].name;
    }
    return NULL;
}

static il_status
unknown_option(struct parser *p, const char *word, size_t n_bytes)
{
    char        name[HINT_BYTES];
    char        hint[HINT_BYTES] = "";
    const char *meant            = NULL;

    (void)snprintf(name, sizeof name, "%.*s", (int)MIN(n_bytes, sizeof name - 1), word);
    if (strncmp(name, "--", 2) == 0)
        meant = il__suggest(name + 2, next_option_name, p->command);
    if (meant != NULL)
        (void)snprintf(hint, sizeof hint, " (did you mean '--%s'?)", meant);
    return il__error_set(p->reterr, IL_INVAL, "%sunknown option '%s'%s", where(p), name, hint);
}

static il_status
parse_long(struct parser *p, const char *word)
{
    size_t      n_bytes  = strcspn(word, "=");
    const char *attached = word[n_bytes] == '=' ? word + n_bytes + 1 : NULL;

    for (size_t o = 0; o < CLI_OPT_COUNT; o++) {
        const struct cli_option *option = &il__cli_options[o];
        if (!il__cli_option_fits(option, p->command) || strlen(option->name) != n_bytes - 2 ||
            memcmp(option->name, word + 2, n_bytes - 2) != 0)
            continue;
        if (option->spec.type != CLI_FLAG)
            return take_value(p, option, attached);
        if (attached != NULL)
            return il__error_set(p->reterr, IL_INVAL, "%s--%s takes no value", where(p),
                                 option->name);
        return store_value(p, option, "");
    }
    return unknown_option(p, word, n_bytes);
}

/* A cluster of letters; the last one may have a value, attached or as the next word. */
static il_status
parse_letters(struct parser *p, const char *word)
{
    for (const char *letter = word + 1; *letter != '\0'; letter++) {
        const struct cli_option *option = NULL;
        for (size_t o = 0; o < CLI_OPT_COUNT && option == NULL; o++) {
            if (il__cli_option_fits(&il__cli_options[o], p->command) &&
                il__cli_options[o].letter == *letter)
                option = &il__cli_options[o];
        }
        if (option == NULL)
            return unknown_option(p, word, strlen(word));
        if (option->spec.type != CLI_FLAG)
            return take_value(p, option, letter[1] != '\0' ? letter + 1 : NULL);
        il_status st = store_value(p, option, "");
        if (st != IL_OK)
            return st;
    }
    return IL_OK;
}

static il_status
add_operand(struct parser *p, const char *word)
{
    CHECK(p->command->operands_max <= CLI_OPERANDS_MAX);
    if (p->args->n_operands >= p->command->operands_max)
        return il__error_set(p->reterr, IL_INVAL, "%sunexpected argument '%.80s'", where(p), word);
    p->args->operands[p->args->n_operands++] = word;
    return IL_OK;
}

/* Everything after `--`: another command line, or operands that look like options. */
static il_status
parse_rest(struct parser *p)
{
    if ((p->command->flags & CLI_TAIL) != 0) {
        p->args->tail = &p->argv[p->i];
        while (p->argv[p->i] != NULL)
            p->i++;
        return IL_OK;
    }
    while (p->argv[p->i] != NULL) {
        il_status st = add_operand(p, p->argv[p->i++]);
        if (st != IL_OK)
            return st;
    }
    return IL_OK;
}

void
il__cli_args_init(struct cli_args *args)
{
    *args = (struct cli_args){ 0 };
    for (size_t i = 0; i < CLI_OPT_COUNT; i++) {
        const struct cli_option *option = &il__cli_options[i];
        if (option->fallback[0] != '\0')
            CHECK(il__cli_spec_parse(&option->spec, option->fallback, &args->values[i].number,
                                     NULL) == IL_OK);
    }
}

/*
 * Parse options and operands from argv[*i_arg] on. Without a command (NULL), or with a family, it
 * stops at the first operand, which is the command's name; with any other command it parses to the
 * end. *i_arg is where it stopped. The texts in *args point into argv. IL_OK, or IL_INVAL with a
 * message that names the argument.
 */
static il_status
parse(struct cli_args *args, const struct cli_command *command, char **argv, int *i_arg,
      il_error *reterr)
{
    struct parser p  = { args, command, argv, *i_arg, reterr };
    il_status     st = IL_OK;

    while (st == IL_OK && argv[p.i] != NULL) {
        const char *word   = argv[p.i];
        bool        option = word[0] == '-' && word[1] != '\0';
        if (!option && (command == NULL || (command->flags & CLI_FAMILY) != 0))
            break;
        if (!option && (command->flags & CLI_TAIL) != 0 &&
            args->n_operands == command->operands_max) {
            st = parse_rest(&p);
            break;
        }
        p.i++;
        if (!option)
            st = add_operand(&p, word);
        else if (strcmp(word, "--") == 0)
            st = command != NULL ? parse_rest(&p) : unknown_option(&p, word, 2);
        else if (word[1] == '-')
            st = parse_long(&p, word);
        else
            st = parse_letters(&p, word);
    }
    *i_arg = p.i;
    return st;
}

il_status
il__cli_args_command(struct cli_args *args, char **argv, int *i_arg, const struct cli_command **ret,
                     il_error *reterr)
{
    const struct cli_command *command = NULL;
    il_status                 st      = parse(args, NULL, argv, i_arg, reterr);

    while (st == IL_OK && argv[*i_arg] != NULL) {
        const struct cli_command *below = il__cli_command_below(command, argv[*i_arg]);
        if (below == NULL)
            return il__cli_unknown_command(command, argv[*i_arg], reterr);
        (*i_arg)++;
        command = below;
        st      = parse(args, command, argv, i_arg, reterr);
    }
    if (st == IL_OK)
        *ret = command;
    return st;
}

il_status
il__cli_args_complete(const struct cli_args *args, const struct cli_command *command,
                      il_error *reterr)
{
    int64_t choice;

    if (args->n_operands < command->operands_min)
        return il__error_set(reterr, IL_INVAL,
                             "%s: an argument is missing (usage: interlock %s %s)", command->name,
                             command->name, command->synopsis);
    bool tail = args->tail != NULL && args->tail[0] != NULL;
    if ((command->flags & (CLI_TAIL | CLI_NO_TAIL)) == CLI_TAIL && !tail)
        return il__error_set(reterr, IL_INVAL, "%s: no command given (usage: interlock %s %s)",
                             command->name, command->name, command->synopsis);
    if ((command->flags & CLI_BARE) != 0 && args->values[CLI_OPT_common_json].given)
        return il__error_set(reterr, IL_INVAL,
                             "%s: --json is not supported; the command prints no data",
                             command->name);
    for (size_t i = 0; i < CLI_OPT_COUNT; i++) {
        const struct cli_option *option = &il__cli_options[i];
        if (option->required && il__cli_option_fits(option, command) && !args->values[i].given)
            return il__error_set(reterr, IL_INVAL, "%s: --%s %s is missing", command->name,
                                 option->name, option->argument);
    }
    if (args->n_operands > 0 && command->operand_values[0] != '\0') {
        struct cli_spec spec = { CLI_CHOICE, 0, 0, command->operand_values };
        il_error        why;
        if (il__cli_spec_parse(&spec, args->operands[0], &choice, &why) != IL_OK)
            return il__error_set(reterr, IL_INVAL, "%s: %s", command->name, why.message);
    }
    return IL_OK;
}
