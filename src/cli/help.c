/* help.c: --help, from the tables. It fits a screen; the man pages have the details. */
#include "cli/cli.h"

#define WIDTH 80
#define OPTION_WIDTH 24

static const struct example {
    enum cli_command_id command;
    const char         *text;
} examples[] = {
#define X(command, text) { CLI_CMD_##command, text },
#include "cli/examples.def"
#undef X
};

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

static void
print_heading(const char *heading)
{
    (void)printf("\n%s%s%s\n", il__cli_style(stdout, CLI_BOLD), heading,
                 il__cli_style(stdout, CLI_PLAIN));
}

/* The options of `scope` that apply to `command`. */
static void
print_options(enum cli_command_id scope, const struct cli_command *command)
{
    bool any = false;

    for (size_t i = 0; i < CLI_OPT_COUNT; i++) {
        const struct cli_option *option = &il__cli_options[i];
        if (option->command != scope || !il__cli_option_applies(option, command))
            continue;
        if (!any)
            print_heading("Options");
        any = true;
        print_option(option);
    }
}

static void
print_examples(enum cli_command_id command)
{
    bool any = false;

    for (size_t i = 0; i < ARRAY_LEN(examples); i++) {
        if (examples[i].command != command)
            continue;
        if (!any)
            print_heading("Examples");
        any = true;
        (void)printf("  %s\n", examples[i].text);
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

/* The commands of a group that belong to no family, one per line. */
static void
print_group(int group)
{
    for (size_t i = 0; i < CLI_CMD_COUNT; i++) {
        const struct cli_command *command = &il__cli_commands[i];
        if ((command->flags & CLI_HIDDEN) == 0 && (int)command->group == group &&
            il__cli_command_is_below(command, NULL))
            (void)printf("  %-12s %s\n", command->name, command->summary);
    }
}

/* The commands of a family, and of those within it, one per line. */
static void
print_family(const struct cli_command *family)
{
    size_t n_name = strlen(family->name) + 1;
    size_t width  = 0;

    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < CLI_CMD_COUNT; i++) {
            const struct cli_command *command = &il__cli_commands[i];
            if ((command->flags & CLI_FAMILY) != 0 || !il__cli_command_is_within(command, family))
                continue;
            if (pass == 0)
                width = MAX(width, strlen(command->name + n_name));
            else
                (void)printf("  %-*s  %s\n", (int)width, command->name + n_name, command->summary);
        }
    }
}

void
il__cli_help(void)
{
    (void)printf("Usage: interlock [OPTIONS] COMMAND [ARGUMENTS]\n");
    print_sentence(CLI_SUMMARY);
    for (int g = 0; g < CLI_GROUP_COUNT; g++) {
        print_heading(il__cli_groups[g]);
        print_group(g);
    }
    print_examples(CLI_CMD_run);
    (void)puts("\nOptions (--store, --server, --json, --version, ...): interlock help options\n"
               "More: interlock COMMAND --help, man interlock");
}

void
il__cli_help_command(const struct cli_command *command)
{
    bool family = (command->flags & CLI_FAMILY) != 0;
    int  n_page = (int)strcspn(command->name, " "); /* one man page for a whole family */

    (void)printf("Usage: interlock %s %s\n", command->name, command->synopsis);
    print_sentence(command->summary);
    if (family) {
        print_heading("Commands");
        print_family(command);
    }
    print_options(command->id, command);
    print_examples(command->id);
    (void)putchar('\n');
    if (has_durations(command))
        (void)puts("Durations are 250ms, 30s, 5m, 1h, 1d.");
    if ((command->flags & CLI_BARE) == 0)
        (void)puts("Common options (--store, --server, --json, ...): interlock help options");
    (void)fputs("More: ", stdout);
    if (family)
        (void)printf("interlock %s COMMAND --help, ", command->name);
    (void)printf("man interlock-%.*s\n", n_page, command->name);
}

/* The options of every command, on a page of their own. */
static void
help_options(void)
{
    (void)puts("Usage: interlock [OPTIONS] COMMAND [ARGUMENTS]");
    (void)puts("Options of every command, given before or after it.");
    print_options(CLI_CMD_common, NULL);
    print_heading("Values");
    (void)puts("  DUR   250ms, 30s, 5m, 1h, 1d or 0; some options also take forever\n"
               "  TIME  2026-11-15T03:30:00Z (RFC 3339)\n"
               "  URL   of a store: PATH, sqlite:PATH, postgres://USER@HOST/DATABASE,\n"
               "        redis://HOST:PORT/DB; of a server: http://HOST:PORT, https://HOST,\n"
               "        http+unix:/PATH");
    print_examples(CLI_CMD_common);
    (void)puts("\nConfiguration files and environment variables (INTERLOCK_STORE, ...) can set\n"
               "most of them: interlock config\n"
               "More: man interlock-options");
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

    if (cli->args.n_operands == 1 && strcmp(cli->args.operands[0], "options") == 0) {
        help_options();
        return 0;
    }
    if (il__cli_command_named(cli->args.operands, cli->args.n_operands, &command, &err) != IL_OK)
        return il__cli_usage("help: %s", err.message);
    if (command == NULL)
        il__cli_help();
    else
        il__cli_help_command(command);
    return 0;
}
