/*
 * man.c: `interlock debug man`: generates man pages from the tables and from the prose in docs/man.
 * Run at build time.
 */
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "base/error.h"
#include "base/parse.h"
#include "cli/cli.h"
#include "cli/debug.h"
#include "cli/roff.h"

static void
text(const char *s)
{
    il__cli_roff_text(s, strlen(s));
}

static void
section(const char *name)
{
    (void)printf(".SH %s\n", name);
}

/* Print as a sentence: the tables' texts start in lower case and have no full stop. */
static void
sentence(const char *s)
{
    AUTO_BUF struct il__buf b     = { 0 };
    char                    first = s[0];

    if (first >= 'a' && first <= 'z')
        first = (char)(first - 'a' + 'A');
    il__buf_init(&b, 4096);
    il__buf_addc(&b, first);
    il__buf_addf(&b, "%s.", s + 1);
    il__cli_roff_inline(il__buf_str(&b), b.n_bytes);
}

static void
print_option(const struct cli_option *option)
{
    const char *fallback = il__cli_option_default(option);

    (void)puts(".TP");
    if (option->letter != 0)
        (void)printf("\\fB\\-%c\\fR, ", option->letter);
    (void)fputs("\\fB\\-\\-", stdout);
    text(option->name);
    (void)printf("\\fR%s\\fI%s\\fR\n", option->argument[0] != '\0' ? " " : "", option->argument);
    sentence(option->help);
    if (option->spec.values[0] != '\0')
        (void)printf("One of %s.\n", option->spec.values);
    if (option->required)
        (void)puts("Required.");
    if (fallback != NULL && option->fallback[0] != '\0')
        (void)printf("Default: %s.\n", fallback);
    else if (fallback != NULL)
        (void)printf("Default: %s, or the configuration key \\fB%s\\fR.\n", fallback,
                     il__cli_key_find(option->name, strlen(option->name))->name);
}

/* The options of `scope` that apply to `command`; heading NULL: already printed. */
static void
print_options(const char *heading, enum cli_command_id scope, const struct cli_command *command)
{
    for (size_t i = 0; i < CLI_OPT_COUNT; i++) {
        const struct cli_option *option = &il__cli_options[i];
        if (option->command != scope || !il__cli_option_applies(option, command))
            continue;
        if (heading != NULL)
            section(heading);
        heading = NULL;
        print_option(option);
    }
}

/* Can the command, or one of the family, exit with this status? */
static bool
exit_applies(const struct cli_exit_row *row, const struct cli_command *command)
{
    for (size_t i = 0; i < CLI_CMD_COUNT; i++) {
        const struct cli_command *one = &il__cli_commands[i];
        if (il__cli_exit_applies(row, one) &&
            (one == command || il__cli_command_is_within(one, command)))
            return true;
    }
    return false;
}

static void
print_exits(const struct cli_command *command)
{
    const struct cli_exit_row *row = NULL;

    section("EXIT STATUS");
    if (command == NULL)
        (void)puts("Exit statuses common to all commands; each command's page lists its own:");
    else if ((command->flags & CLI_EXEC) != 0)
        (void)puts("The exit status of the command, or one of these:");
    while ((row = il__cli_exit_next(row)) != NULL) {
        if (command != NULL && !exit_applies(row, command))
            continue;
        (void)printf(".TP\n%d\n", row->number);
        sentence(row->text);
    }
}

static void
print_configuration(void)
{
    section("CONFIGURATION");
    (void)puts("Each key can be set in a configuration file (YAML) and in the environment. Later "
               "sources override earlier ones: the default,\n"
               "\\fI/etc/interlock/config.yml\\fR, \\fI$XDG_CONFIG_HOME/interlock/config.yml\\fR\n"
               "(\\fI~/.config\\fR), the file named by \\fB\\-\\-config\\fR or "
               "\\fB$INTERLOCK_CONFIG\\fR,\n"
               "the environment, the command line.");
    for (size_t i = 0; i < CLI_KEY_COUNT; i++) {
        const struct cli_key *key = &il__cli_keys[i];
        (void)printf(".TP\n\\fB%s\\fR, \\fB$%s\\fR\n", key->name, key->env);
        sentence(key->help);
        if (key->fallback[0] != '\0') {
            (void)fputs("Default: ", stdout);
            text(key->fallback);
            (void)puts(".");
        }
    }
    (void)puts(".TP\n\\fB$NO_COLOR\\fR\nNo colours, even on a terminal.");
}

static void
print_commands(void)
{
    section("COMMANDS");
    for (size_t i = 0; i < CLI_CMD_COUNT; i++) {
        const struct cli_command *command = &il__cli_commands[i];
        if ((command->flags & CLI_HIDDEN) != 0 || !il__cli_command_is_below(command, NULL))
            continue;
        (void)printf(".TP\n\\fB%s\\fR ", command->name);
        text(command->synopsis);
        (void)putchar('\n');
        sentence(command->summary);
    }
}

/* All commands of a family, each with its options. */
static void
print_family(const struct cli_command *family)
{
    section("COMMANDS AND OPTIONS");
    for (size_t i = 0; i < CLI_CMD_COUNT; i++) {
        const struct cli_command *command = &il__cli_commands[i];
        if ((command->flags & CLI_FAMILY) != 0 || !il__cli_command_is_within(command, family))
            continue;
        (void)fputs(".SS interlock ", stdout);
        text(command->name);
        (void)putchar(' ');
        text(command->synopsis);
        (void)putchar('\n');
        sentence(command->summary);
        print_options(NULL, command->id, command);
    }
}

/* The other pages, or those of the command's group. */
static void
print_see_also(const struct cli_command *command)
{
    section("SEE ALSO");
    (void)printf("%s\\fBinterlock\\-options\\fR(7)",
                 command != NULL ? "\\fBinterlock\\fR(1),\n" : "");
    for (size_t i = 0; i < CLI_CMD_COUNT; i++) {
        const struct cli_command *other = &il__cli_commands[i];
        if ((other->flags & CLI_HIDDEN) != 0 || other == command ||
            !il__cli_command_is_below(other, NULL) ||
            (command != NULL && other->group != command->group))
            continue;
        (void)fputs(",\n\\fBinterlock\\-", stdout);
        text(other->name);
        (void)fputs("\\fR(1)", stdout);
    }
    (void)putchar('\n');
}

/* The day that $SOURCE_DATE_EPOCH names, else today. */
static void
print_date(void)
{
    const char *epoch = getenv("SOURCE_DATE_EPOCH");
    int64_t     now   = epoch != NULL ? strtoll(epoch, NULL, 10) : time(NULL);
    char        date[IL__DATE_TEXT_BYTES];

    (void)fputs(il__date_text(now / 86400, date), stdout);
}

/* The head of a page: interlock(1) if name is NULL, else interlock-NAME. */
static void
print_head(const char *name, int chapter, const char *summary)
{
    (void)printf(".TH INTERLOCK%s", name != NULL ? "\\-" : "");
    for (const char *p = name != NULL ? name : ""; *p != '\0'; p++) {
        if (*p == '-')
            (void)putchar('\\');
        (void)putchar(*p >= 'a' && *p <= 'z' ? *p - 'a' + 'A' : *p);
    }
    (void)printf(" %d \"", chapter);
    print_date();
    (void)printf("\" \"Interlock %s\" \"Interlock manual\"\n", il_version());
    section("NAME");
    (void)fputs(name != NULL ? "interlock\\-" : "interlock", stdout);
    text(name != NULL ? name : "");
    (void)fputs(" \\- ", stdout);
    text(summary);
    (void)putchar('\n');
}

static void
print_synopsis(const struct cli_command *command)
{
    section("SYNOPSIS");
    (void)fputs("\\fBinterlock", stdout);
    if (command != NULL) {
        (void)putchar(' ');
        text(command->name);
    }
    (void)fputs("\\fR ", stdout);
    text(command != NULL ? command->synopsis : "[OPTIONS] COMMAND [ARGUMENTS]");
    (void)putchar('\n');
}

/* The prose of a page; without any, the summary is the description. */
static il_status
read_prose(const char *path, struct il__buf *b, il_error *reterr)
{
    FILE  *file;
    char   chunk[4096];
    size_t n;

    if (path == NULL)
        return IL_OK;
    file = fopen(path, "re");
    if (file == NULL)
        return il__error_set(reterr, IL_INVAL, "%s: %s", path, strerror(errno));
    while ((n = fread(chunk, 1, sizeof chunk, file)) > 0)
        il__buf_add(b, chunk, n);
    bool bad = ferror(file) != 0 || b->failed;
    (void)fclose(file); /* was only read from */
    return bad ? il__error_set(reterr, IL_INVAL, "%s: cannot be read or is too long", path) : IL_OK;
}

/* A page whose prose is at prose_path: the description, then `tables` of the command, then
 * the other sections of the prose. */
static il_status
print_page(const struct cli_command *command, const char *summary, const char *prose_path,
           void (*tables)(const struct cli_command *command), il_error *reterr)
{
    AUTO_BUF struct il__buf prose = { 0 };

    il__buf_init(&prose, 1 << 20);
    if (read_prose(prose_path, &prose, reterr) != IL_OK)
        return IL_INVAL;
    const char *all  = il__buf_str(&prose);
    const char *rest = all[0] == '#' ? all : strstr(all, "\n#");
    size_t      n    = rest != NULL ? (size_t)(rest - all) : prose.n_bytes;

    section("DESCRIPTION");
    if (n > 0)
        il__cli_roff_prose(all, n);
    else
        sentence(summary);
    tables(command);
    if (rest != NULL)
        il__cli_roff_prose(all + n, prose.n_bytes - n);
    return IL_OK;
}

/* What stands between the description and the other prose. */
static void
print_tables(const struct cli_command *command)
{
    if (command == NULL) {
        print_commands();
        return;
    }
    if ((command->flags & CLI_FAMILY) != 0)
        print_family(command);
    else
        print_options("OPTIONS", command->id, command);
    if ((command->flags & CLI_BARE) == 0)
        (void)puts(".SH COMMON OPTIONS\nOptions that every command takes, such as "
                   "\\fB\\-\\-store\\fR and \\fB\\-\\-json\\fR, are described in\n"
                   "\\fBinterlock\\-options\\fR(7).");
}

int
il__cli_man(const struct cli_command *command, const char *prose_path)
{
    const char *summary = command != NULL ? command->summary : CLI_SUMMARY;
    il_error    err;

    print_head(command != NULL ? command->name : NULL, 1, summary);
    print_synopsis(command);
    if (print_page(command, summary, prose_path, print_tables, &err) != IL_OK)
        return il__cli_fail(&err);
    print_exits(command);
    print_see_also(command);
    return 0;
}

static void
print_common_options(const struct cli_command *command UNUSED)
{
    print_options("OPTIONS", CLI_CMD_common, NULL);
}

int
il__cli_man_options(const char *prose_path)
{
    il_error err;

    print_head("options", 7, CLI_OPTIONS_SUMMARY);
    if (print_page(NULL, CLI_OPTIONS_SUMMARY, prose_path, print_common_options, &err) != IL_OK)
        return il__cli_fail(&err);
    print_configuration();
    section("SEE ALSO");
    (void)puts("\\fBinterlock\\fR(1),\n\\fBinterlock\\-config\\fR(1)");
    return 0;
}
