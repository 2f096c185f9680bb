/*
 * cmd_completion.c: completion scripts for three shells, generated from the tables: commands,
 * options, and values listed in a table. Names that only the store knows come from `interlock
 * __complete`.
 */
#include "cli/cli.h"
#include "cli/complete.h"

/* Print `a|b|c` with another separator. */
static void
print_values(const char *values, const char *separator)
{
    const char *value;
    size_t      n_bytes;

    for (size_t i = 0; (value = il__cli_choice(values, i, &n_bytes)) != NULL; i++)
        (void)printf("%s%.*s", i > 0 ? separator : "", (int)n_bytes, value);
}

static bool
visible(const struct cli_command *command)
{
    return (command->flags & CLI_HIDDEN) == 0;
}

static bool
is_family(const struct cli_command *command)
{
    return (command->flags & CLI_FAMILY) != 0;
}

/* The commands of a family (NULL: of none) by their short names. */
static void
print_command_words(const struct cli_command *parent, const char *separator)
{
    const char *before = "";

    for (size_t i = 0; i < CLI_CMD_COUNT; i++) {
        const struct cli_command *command = &il__cli_commands[i];
        if (!visible(command) || !il__cli_command_is_below(command, parent))
            continue;
        (void)printf("%s%s", before, il__cli_command_word(command));
        before = separator;
    }
}

/* Possible values of the first operand. */
static void
print_operand_words(const struct cli_command *command)
{
    if (command->id == CLI_CMD_help) {
        print_command_words(NULL, " ");
        (void)fputs(" options", stdout);
    } else if (is_family(command))
        print_command_words(command, " ");
    else
        print_values(command->operand_values, " ");
}

/* Escape the quote that would end a '...' string of sh; help texts are ours, so nothing else is
 * needed. */
static void
print_quoted(const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '\'')
            (void)fputs("'\\''", stdout);
        else
            (void)putchar(*text);
    }
}

/* The states of jobs and of runs, each once. */
#define STATES "cancelled completed failed interrupted pending ready running scheduled timeout"

static bool
takes_states(const struct cli_option *option)
{
    return option->spec.type == CLI_TEXT && strcmp(option->name, "state") == 0;
}

static void
bash_option_values(void)
{
    (void)puts("    case $prev in");
    for (size_t i = 0; i < CLI_OPT_COUNT; i++) {
        const struct cli_option *option = &il__cli_options[i];
        if (option->spec.type == CLI_FLAG)
            continue;
        (void)printf("    --%s) COMPREPLY=(", option->name);
        if (option->spec.type == CLI_CHOICE) {
            (void)fputs("$(compgen -W '", stdout);
            print_values(option->spec.values, " ");
            (void)fputs("' -- \"$cur\")", stdout);
        } else if (option->spec.type == CLI_FILE || i == CLI_OPT_common_store) {
            (void)fputs("$(compgen -f -- \"$cur\")", stdout);
        } else if (takes_states(option)) {
            (void)fputs("$(compgen -W '" STATES "' -- \"$cur\")", stdout);
        }
        (void)puts("); return ;;");
    }
    (void)puts("    esac");
}

static void
bash_words(const struct cli_command *command)
{
    (void)printf("    '%s') words='", command->name);
    for (size_t i = 0; i < CLI_OPT_COUNT; i++) {
        if (il__cli_options[i].command == command->id)
            (void)printf("--%s ", il__cli_options[i].name);
    }
    print_operand_words(command);
    (void)putchar('\'');
    if (il__cli_complete_kind(command) != NULL)
        (void)printf("; kind=%s", il__cli_complete_kind(command));
    (void)puts(" ;;");
}

/* Names with a `:` in them are several words to bash, which replaces the last one only. */
static void
bash_names(void)
{
    (void)puts("_interlock_names() {\n"
               "    local word=${COMP_LINE:0:${COMP_POINT:-0}} cut=\n"
               "    word=${word##*[[:space:]]}\n"
               "    [[ $word == *:* && $COMP_WORDBREAKS == *:* ]] && cut=${word%\"${word##*:}\"}\n"
               "    local names name\n"
               "    mapfile -t names < <(\"$@\" \"$word\" 2>/dev/null)\n"
               "    for name in \"${names[@]}\"; do COMPREPLY+=(\"${name#\"$cut\"}\"); done\n"
               "}");
}

/* The words of the command line as long as they name families. */
static void
bash_command(void)
{
    (void)fputs("        *) case $command in\n"
                "            '') command=${COMP_WORDS[i]} ;;\n"
                "            ",
                stdout);
    for (size_t i = 0, n = 0; i < CLI_CMD_COUNT; i++) {
        if (is_family(&il__cli_commands[i]))
            (void)printf("%s'%s'", n++ > 0 ? "|" : "", il__cli_commands[i].name);
    }
    (void)puts(") command+=\" ${COMP_WORDS[i]}\" ;;\n"
               "            esac ;;");
}

static void
print_bash(void)
{
    (void)puts("# bash completion for interlock; made by `interlock completion bash`.");
    bash_names();
    (void)puts("_interlock() {\n"
               "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} command= "
               "words= common= kind= i given=()\n"
               "    COMPREPLY=()");
    (void)fputs("    common='", stdout);
    for (size_t i = 0; i < CLI_OPT_COUNT; i++) {
        if (il__cli_options[i].command == CLI_CMD_common)
            (void)printf("%s--%s", i > 0 ? " " : "", il__cli_options[i].name);
    }
    (void)puts("'\n"
               "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
               "        case ${COMP_WORDS[i]} in");
    (void)fputs("        ", stdout);
    for (size_t i = 0, n = 0; i < CLI_OPT_COUNT; i++) {
        const struct cli_option *option = &il__cli_options[i];
        if (option->command == CLI_CMD_common && option->spec.type != CLI_FLAG)
            (void)printf("%s--%s", n++ > 0 ? "|" : "", option->name);
    }
    (void)puts(
        ") given+=(\"${COMP_WORDS[i]}\" \"${COMP_WORDS[i+1]}\"); ((i++)) ;;\n"
        "        --) [[ $(type -t _command_offset) ]] && _command_offset $((i + 1)); return ;;\n"
        "        -*) ;;");
    bash_command();
    (void)puts("        esac\n"
               "    done");
    bash_option_values();
    (void)puts("    case $command in");
    (void)fputs("    '') words='", stdout);
    print_command_words(NULL, " ");
    (void)puts("' ;;");
    for (size_t i = 0; i < CLI_CMD_COUNT; i++) {
        if (visible(&il__cli_commands[i]))
            bash_words(&il__cli_commands[i]);
    }
    (void)puts("    esac\n"
               "    COMPREPLY=($(compgen -W \"$words $common\" -- \"$cur\"))\n"
               "    [[ -z $kind || $cur == -* ]] || _interlock_names \"${COMP_WORDS[0]}\" "
               "\"${given[@]}\" __complete $kind\n"
               "}\n"
               "complete -o default -F _interlock interlock");
}

static void
zsh_option(const struct cli_option *option)
{
    if (option->letter != 0)
        (void)printf("        '(-%c --%s)'{-%c,--%s", option->letter, option->name, option->letter,
                     option->name);
    else
        (void)printf("        '--%s", option->name);
    (void)printf("%s%s[", option->spec.type == CLI_FLAG || option->letter != 0 ? "" : "=",
                 option->letter != 0 ? "}'" : "");
    print_quoted(option->help);
    (void)putchar(']');
    if (option->spec.type != CLI_FLAG)
        (void)printf(":%s:", option->argument);
    if (option->spec.type == CLI_CHOICE) {
        (void)putchar('(');
        print_values(option->spec.values, " ");
        (void)putchar(')');
    } else if (option->spec.type == CLI_FILE || option == &il__cli_options[CLI_OPT_common_store]) {
        (void)fputs("_files", stdout);
    } else if (takes_states(option)) {
        (void)fputs("(" STATES ")", stdout);
    }
    (void)puts("' \\");
}

static void
zsh_options(enum cli_command_id scope)
{
    for (size_t i = 0; i < CLI_OPT_COUNT; i++) {
        if (il__cli_options[i].command == scope)
            zsh_option(&il__cli_options[i]);
    }
}

/* `queue cron` as part of a function name: _queue_cron. */
static void
print_suffix(const struct cli_command *family)
{
    if (family == NULL)
        return;
    (void)putchar('_');
    for (const char *p = family->name; *p != '\0'; p++)
        (void)putchar(*p == ' ' ? '_' : *p);
}

static void
zsh_command(const struct cli_command *command)
{
    (void)printf("    %s) ", il__cli_command_word(command));
    if (is_family(command)) {
        (void)fputs("_interlock", stdout);
        print_suffix(command);
        (void)puts(" ;;");
        return;
    }
    (void)puts("_arguments \\");
    zsh_options(command->id);
    zsh_options(CLI_CMD_common);
    if (command->operand_values[0] != '\0' || command->id == CLI_CMD_help) {
        (void)fputs("        '1:what:(", stdout);
        print_operand_words(command);
        (void)fputs(")' ", stdout);
    } else if (il__cli_complete_kind(command) != NULL) {
        (void)printf("        '1: :{_interlock_names %s}' ", il__cli_complete_kind(command));
    } else {
        (void)fputs("        '1: :' ", stdout);
    }
    (void)puts((command->flags & CLI_TAIL) != 0 ? "'*::command:_normal' ;;" : "'*: :_files' ;;");
}

/* A function for the commands of a family (NULL: of none). */
static void
zsh_function(const struct cli_command *family)
{
    (void)fputs("_interlock", stdout);
    print_suffix(family);
    (void)puts("() {\n"
               "    local curcontext=$curcontext state line\n"
               "    _arguments -C \\");
    zsh_options(CLI_CMD_common);
    (void)puts("        '1:command:->command' '*::argument:->argument'\n"
               "    case $state in\n"
               "    command) local -a commands=(");
    for (size_t i = 0; i < CLI_CMD_COUNT; i++) {
        const struct cli_command *command = &il__cli_commands[i];
        if (!visible(command) || !il__cli_command_is_below(command, family))
            continue;
        (void)printf("        '%s:", il__cli_command_word(command));
        print_quoted(command->summary);
        (void)puts("'");
    }
    (void)puts("        )\n"
               "        _describe command commands; return ;;\n"
               "    esac\n"
               "    [[ $state == argument ]] || return\n"
               "    case $line[1] in");
    for (size_t i = 0; i < CLI_CMD_COUNT; i++) {
        if (visible(&il__cli_commands[i]) && il__cli_command_is_below(&il__cli_commands[i], family))
            zsh_command(&il__cli_commands[i]);
    }
    (void)puts("    esac\n"
               "}");
}

static void
print_zsh(void)
{
    (void)puts("#compdef interlock\n"
               "# zsh completion for interlock; made by `interlock completion zsh`.\n"
               "_interlock_names() {\n"
               "    local -a names=(${(f)\"$(interlock __complete $1 \"$PREFIX\" 2>/dev/null)\"})\n"
               "    compadd -a names\n"
               "}");
    for (size_t i = 0; i < CLI_CMD_COUNT; i++) {
        if (is_family(&il__cli_commands[i]))
            zsh_function(&il__cli_commands[i]);
    }
    zsh_function(NULL);
    (void)puts("if [ \"$funcstack[1]\" = _interlock ]; then _interlock \"$@\"; else compdef "
               "_interlock interlock; fi");
}

static void
fish_option(const struct cli_option *option)
{
    (void)fputs("complete -c interlock", stdout);
    if (option->command != CLI_CMD_common)
        (void)printf(" -n '__interlock_within %s'", il__cli_commands[option->command].name);
    (void)printf(" -l %s", option->name);
    if (option->letter != 0)
        (void)printf(" -s %c", option->letter);
    if (option->spec.type == CLI_FILE || option == &il__cli_options[CLI_OPT_common_store])
        (void)fputs(" -r -F", stdout);
    else if (option->spec.type != CLI_FLAG)
        (void)fputs(" -x", stdout);
    if (option->spec.type == CLI_CHOICE) {
        (void)fputs(" -a '", stdout);
        print_values(option->spec.values, " ");
        (void)putchar('\'');
    } else if (takes_states(option)) {
        (void)fputs(" -a '" STATES "'", stdout);
    }
    (void)fputs(" -d '", stdout);
    print_quoted(option->help);
    (void)puts("'");
}

static void
fish_command(const struct cli_command *command)
{
    int n_family = (int)(il__cli_command_word(command) - command->name);

    (void)printf("complete -c interlock -n '__interlock_at %.*s' -f -a %s -d '", n_family,
                 command->name, il__cli_command_word(command));
    print_quoted(command->summary);
    (void)puts("'");
    if (il__cli_complete_kind(command) != NULL)
        (void)printf("complete -c interlock -n '__interlock_at %s' -f -a '(interlock __complete %s "
                     "(commandline -ct) 2>/dev/null)'\n",
                     command->name, il__cli_complete_kind(command));
    if (command->operand_values[0] == '\0')
        return;
    (void)printf("complete -c interlock -n '__interlock_at %s' -f -a '", command->name);
    print_values(command->operand_values, " ");
    (void)puts("'");
}

static void
print_fish(void)
{
    (void)puts("# fish completion for interlock; made by `interlock completion fish`.\n"
               "function __interlock_words\n"
               "    set -l words (commandline -opc)\n"
               "    string match -v -- '-*' $words[2..-1]\n"
               "end\n"
               "function __interlock_at\n"
               "    set -l words (__interlock_words)\n"
               "    test \"$argv\" = \"$words\"\n"
               "end\n"
               "function __interlock_within\n"
               "    set -l words (__interlock_words)\n"
               "    set -l n (count $argv)\n"
               "    test \"$argv\" = \"$words[1..$n]\"\n"
               "end");
    for (size_t i = 0; i < CLI_CMD_COUNT; i++) {
        if (visible(&il__cli_commands[i]))
            fish_command(&il__cli_commands[i]);
    }
    for (size_t i = 0; i < CLI_OPT_COUNT; i++)
        fish_option(&il__cli_options[i]);
}

int
il__cli_cmd_completion(struct cli *cli)
{
    const char *shell = cli->args.operands[0];

    if (strcmp(shell, "bash") == 0)
        print_bash();
    else if (strcmp(shell, "zsh") == 0)
        print_zsh();
    else
        print_fish();
    return 0;
}
