/* help.c: --help, from the tables. It fits a screen; the man pages have the details. */
#include "cli/cli.h"

#define WIDTH 80
#define OPTION_WIDTH 24

/* An option as it is typed: "-q, --quiet", "    --ttl DUR". */
static void
option_text(const struct cli_option *option, char *text, size_t n_bytes)
{
    bool value = option->argument[0] != '\0';
    int  n     = option->letter != 0 ? snprintf(text, n_bytes, "-%c, ", option->letter)
                                     : snprintf(text, n_bytes, "    ");

    CHECK(n == 4);
    (void)snprintf(text + n, n_bytes - (size_t)n, "--%s%s%s", option->name, value ? " " : "",
                   option->argument);
}

/* Print words from column `indent` on, wrapped at WIDTH; the cursor is already there. */
static void
print_wrapped(const char *text, size_t indent)
{
    size_t column = indent;

    while (*text != '\0') {
        size_t n = strcspn(text, text[0] == '(' ? ")" : " "); /* text in () stays together */
        n += text[n] == ')';
        if (column > indent && column + 1 + n > WIDTH) {
            (void)printf("\n%*s", (int)indent, "");
            column = indent;
        }
        column += (size_t)printf("%s%.*s", column > indent ? " " : "", (int)n, text);
        text += n + strspn(text + n, " ");
    }
    (void)putchar('\n');
}

static void
print_option(const struct cli_option *option)
{
    AUTO_BUF struct il__buf b        = { 0 };
    const char             *fallback = il__cli_option_default(option);
    char                    text[64];

    option_text(option, text, sizeof text);
    il__buf_init(&b, 1024);
    il__buf_adds(&b, option->help);
    if (option->spec.values[0] != '\0')
        il__buf_addf(&b, ": %s", option->spec.values);
    if (option->required)
        il__buf_adds(&b, " (required)");
    if (fallback != NULL)
        il__buf_addf(&b, " (default: %s)", fallback);
    (void)printf("  %-*s", OPTION_WIDTH, text);
    if (strlen(text) >= OPTION_WIDTH)
        (void)printf("\n%*s", 2 + OPTION_WIDTH, "");
    print_wrapped(il__buf_str(&b), 2 + OPTION_WIDTH);
}

/* The options of `scope` that apply to `command`. */
static void
print_options(const char *heading, enum cli_command_id scope, const struct cli_command *command)
{
    bool any = false;

    for (size_t i = 0; i < CLI_OPT_COUNT; i++) {
        const struct cli_option *option = &il__cli_options[i];
        if (option->command != scope || !il__cli_option_applies(option, command))
            continue;
        if (!any)
            (void)printf("\n%s%s%s\n", il__cli_style(stdout, CLI_BOLD), heading,
                         il__cli_style(stdout, CLI_PLAIN));
        any = true;
        print_option(option);
    }
}

static bool
has_durations(const struct cli_command *command)
{
    for (size_t i = 0; i < CLI_OPT_COUNT; i++) {
        enum cli_type type = il__cli_options[i].spec.type;
        if (il__cli_options[i].command == command->id && (type == CLI_DURATION || type == CLI_WAIT))
            return true;
    }
    return false;
}

/* The tables' texts start in lower case and have no full stop. */
static void
print_sentence(const char *text)
{
    (void)printf("%c%s.\n", text[0] - 'a' + 'A', text + 1);
}

/* The commands of a family (NULL: those of none, of one group), one per line. */
static void
print_commands(const struct cli_command *parent, int group)
{
    size_t n_name = parent != NULL ? strlen(parent->name) + 1 : 0;

    for (size_t i = 0; i < CLI_CMD_COUNT; i++) {
        const struct cli_command *command = &il__cli_commands[i];
        bool                      hidden  = (command->flags & CLI_HIDDEN) != 0;
        if (parent == NULL && !hidden && (int)command->group == group &&
            il__cli_command_is_below(command, NULL))
            (void)printf("  %-12s %s\n", command->name, command->summary);
        /* Commands of nested families are listed here as well. */
        if (parent != NULL && (command->flags & CLI_FAMILY) == 0 &&
            il__cli_command_is_within(command, parent))
            (void)printf("  %-12s %s\n", command->name + n_name, command->summary);
    }
}

void
il__cli_help(void)
{
    const char *bold  = il__cli_style(stdout, CLI_BOLD);
    const char *plain = il__cli_style(stdout, CLI_PLAIN);

    (void)printf("Usage: interlock [OPTIONS] COMMAND [ARGUMENTS]\n");
    print_sentence(CLI_SUMMARY);
    for (int g = 0; g < CLI_GROUP_COUNT; g++) {
        (void)printf("\n%s%s%s\n", bold, il__cli_groups[g], plain);
        print_commands(NULL, g);
    }
    print_options("Options", CLI_CMD_common, NULL);
    (void)printf("\nMore: interlock COMMAND --help, man interlock\n");
}

void
il__cli_help_command(const struct cli_command *command)
{
    bool family = (command->flags & CLI_FAMILY) != 0;
    int  n_page = (int)strcspn(command->name, " "); /* one man page for a whole family */

    (void)printf("Usage: interlock %s %s\n", command->name, command->synopsis);
    print_sentence(command->summary);
    if (family) {
        (void)printf("\n%sCommands%s\n", il__cli_style(stdout, CLI_BOLD),
                     il__cli_style(stdout, CLI_PLAIN));
        print_commands(command, -1);
    }
    print_options("Options", command->id, command);
    print_options("Common options", CLI_CMD_common, command);
    (void)putchar('\n');
    if (family)
        (void)printf("More: interlock %s COMMAND --help, man interlock-%.*s\n", command->name,
                     n_page, command->name);
    else
        (void)printf("%sMore: man interlock-%.*s\n",
                     has_durations(command) ? "Durations are 250ms, 30s, 5m, 1h, 1d. " : "", n_page,
                     command->name);
}

il_status
il__cli_command_named(const char *const *words, size_t n, const struct cli_command **ret,
                      il_error *reterr)
{
    const struct cli_command *command = NULL;

    for (size_t i = 0; i < n; i++) {
        const struct cli_command *below = il__cli_command_below(command, words[i]);
        if (below == NULL)
            return il__cli_unknown_command(command, words[i], reterr);
        command = below;
    }
    *ret = command;
    return IL_OK;
}

int
il__cli_cmd_help(struct cli *cli)
{
    const struct cli_command *command = NULL;
    il_error                  err;

    if (il__cli_command_named(cli->args.operands, cli->args.n_operands, &command, &err) != IL_OK)
        return il__cli_usage("help: %s", err.message);
    if (command == NULL)
        il__cli_help();
    else
        il__cli_help_command(command);
    return 0;
}
