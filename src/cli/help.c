/*
 * help.c: --help, from the tables. It fits a screen; the whole story is in the man pages.
 */
#include "cli/cli.h"

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

static void
print_options(const char *heading, enum cli_command_id scope)
{
    char text[64];
    bool any = false;

    for (size_t i = 0; i < CLI_OPT_COUNT; i++) {
        const struct cli_option *option   = &il__cli_options[i];
        const char              *fallback = il__cli_option_default(option);
        if (option->command != scope)
            continue;
        if (!any)
            (void)printf("\n%s%s%s\n", il__cli_style(stdout, CLI_BOLD), heading,
                         il__cli_style(stdout, CLI_PLAIN));
        any = true;
        option_text(option, text, sizeof text);
        (void)printf("  %-30s %s", text, option->help);
        if (option->spec.values[0] != '\0')
            (void)printf(": %s", option->spec.values);
        if (fallback != NULL)
            (void)printf(" (default: %s)", fallback);
        (void)putchar('\n');
    }
}

/* The tables' texts start small and have no full stop. */
static void
print_sentence(const char *text)
{
    (void)printf("%c%s.\n", text[0] - 'a' + 'A', text + 1);
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
        for (size_t i = 0; i < CLI_CMD_COUNT; i++) {
            const struct cli_command *command = &il__cli_commands[i];
            if ((int)command->group == g && (command->flags & CLI_HIDDEN) == 0)
                (void)printf("  %-12s %s\n", command->name, command->summary);
        }
    }
    print_options("Options", CLI_CMD_common);
    (void)printf("\nMore: interlock COMMAND --help, man interlock\n");
}

void
il__cli_help_command(const struct cli_command *command)
{
    (void)printf("Usage: interlock %s %s\n", command->name, command->synopsis);
    print_sentence(command->summary);
    print_options("Options", command->id);
    print_options("Common options", CLI_CMD_common);
    (void)printf("\nDurations are 250ms, 30s, 5m, 1h. More: man interlock-%s\n", command->name);
}

int
il__cli_cmd_help(struct cli *cli)
{
    if (cli->args.n_operands == 0) {
        il__cli_help();
        return 0;
    }
    const struct cli_command *command = il__cli_command_find(cli->args.operands[0]);
    char                      hint[80];
    if (command == NULL) {
        il__cli_suggest_command(cli->args.operands[0], hint, sizeof hint);
        return il__cli_usage("help: unknown command '%.80s'%s", cli->args.operands[0], hint);
    }
    il__cli_help_command(command);
    return 0;
}
