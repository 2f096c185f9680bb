/* defs.c: the rows of the .def files, and parsing of their values. */
#include "cli/defs.h"

#include <inttypes.h>

#include "base/error.h"
#include "base/parse.h"
#include "cli/cli.h"

const struct cli_command il__cli_commands[CLI_CMD_COUNT] = {
#define X(id, name, group, min, max, values, synopsis, summary, flags) \
    { name,   CLI_CMD_##id, CLI_GROUP_##group, min,   max,             \
      values, synopsis,     summary,           flags, il__cli_cmd_##id },
#define F(id, name, group, summary)                                  \
    { name, CLI_CMD_##id,          CLI_GROUP_##group, 0,          0, \
      "",   "COMMAND [ARGUMENTS]", summary,           CLI_FAMILY, NULL },
#include "cli/commands.def"
#undef X
};

const struct cli_option il__cli_options[CLI_OPT_COUNT] = {
#define X(command, id, name, letter, argument, type, min, max, values, required, fallback, help) \
    { CLI_CMD_##command,          name,     letter,   argument,                                  \
      { type, min, max, values }, required, fallback, help },
#include "cli/options.def"
#undef X
};

const struct cli_key il__cli_keys[CLI_KEY_COUNT] = {
#define X(id, name, env, when, type, min, max, fallback, help) \
    { name, env, CLI_WHEN_##when, { type, min, max, "" }, fallback, help },
#define C(id, name, env, when, values, fallback, help) \
    { name, env, CLI_WHEN_##when, { CLI_CHOICE, 0, 0, values }, fallback, help },
#include "cli/config.def"
#undef X
};

const char *const il__cli_groups[CLI_GROUP_COUNT] = {
    [CLI_GROUP_WORK] = "Do work once",   [CLI_GROUP_LOOK] = "See and repair",
    [CLI_GROUP_TRY] = "Try and measure", [CLI_GROUP_SERVE] = "Serve others",
    [CLI_GROUP_SETUP] = "Set up",
};

/* Rows of apps come last, whatever their numbers: il__cli_exit_next() has the order. */
static const struct cli_exit_row exits[] = {
#define CLI_FOR(command) [CLI_CMD_##command] = true,
#define X(name, number, group, commands, text) { number, CLI_EXIT_OF_##group, { commands }, text },
#include "cli/exits.def"
#undef X
#undef CLI_FOR
};

const struct cli_exit_row *
il__cli_exit_next(const struct cli_exit_row *before)
{
    const struct cli_exit_row *next = NULL;

    for (const struct cli_exit_row *row = exits; row < exits + ARRAY_LEN(exits); row++) {
        bool later = before == NULL || row->number > before->number ||
                     (row->number == before->number && row > before);
        if (later && (next == NULL || row->number < next->number))
            next = row;
    }
    return next;
}

bool
il__cli_exit_applies(const struct cli_exit_row *row, const struct cli_command *command)
{
    if ((command->flags & CLI_FAMILY) != 0)
        return false;
    if (row->commands[command->id])
        return true;
    switch (row->group) {
    case CLI_EXIT_OF_ALL:
        return true;
    case CLI_EXIT_OF_PLAIN:
        return (command->flags & CLI_WRAPS) == 0;
    case CLI_EXIT_OF_WRAPPING:
        return (command->flags & CLI_WRAPS) != 0;
    case CLI_EXIT_OF_NAMING:
        return (command->flags & CLI_NAMES) != 0;
    case CLI_EXIT_OF_STORE:
        return (command->flags & CLI_NO_STORE) == 0;
    case CLI_EXIT_OF_NONE:
        break;
    }
    return false;
}

const char *
il__cli_command_word(const struct cli_command *command)
{
    const char *space = strrchr(command->name, ' ');

    return space != NULL ? space + 1 : command->name;
}

bool
il__cli_command_is_below(const struct cli_command *command, const struct cli_command *parent)
{
    const char *word     = il__cli_command_word(command);
    size_t      n_before = (size_t)(word - command->name);

    if (parent == NULL || n_before == 0)
        return parent == NULL && n_before == 0;
    return strlen(parent->name) == n_before - 1 &&
           memcmp(parent->name, command->name, n_before - 1) == 0;
}

bool
il__cli_command_is_within(const struct cli_command *command, const struct cli_command *family)
{
    size_t n = strlen(family->name);

    return strncmp(command->name, family->name, n) == 0 && command->name[n] == ' ';
}

const struct cli_command *
il__cli_command_below(const struct cli_command *parent, const char *word)
{
    for (size_t i = 0; i < CLI_CMD_COUNT; i++) {
        const struct cli_command *command = &il__cli_commands[i];
        if (il__cli_command_is_below(command, parent) &&
            strcmp(il__cli_command_word(command), word) == 0)
            return command;
    }
    return NULL;
}

/* Options have a dash where keys have an underscore. */
static bool
is_key(const char *key, const char *name, size_t n_bytes)
{
    if (strlen(key) != n_bytes)
        return false;
    for (size_t i = 0; i < n_bytes; i++) {
        if (key[i] != (name[i] == '-' ? '_' : name[i]))
            return false;
    }
    return true;
}

const struct cli_key *
il__cli_key_find(const char *name, size_t n_bytes)
{
    for (size_t i = 0; i < CLI_KEY_COUNT; i++) {
        if (is_key(il__cli_keys[i].name, name, n_bytes))
            return &il__cli_keys[i];
    }
    return NULL;
}

bool
il__cli_option_fits(const struct cli_option *option, const struct cli_command *command)
{
    return option->command == CLI_CMD_common || (command != NULL && option->command == command->id);
}

bool
il__cli_option_applies(const struct cli_option *option, const struct cli_command *command)
{
    if (command == NULL || (command->flags & CLI_BARE) == 0)
        return il__cli_option_fits(option, command);
    return option->command == command->id || option == &il__cli_options[CLI_OPT_common_help] ||
           option == &il__cli_options[CLI_OPT_common_version];
}

const char *
il__cli_option_default(const struct cli_option *option)
{
    const struct cli_key *key = il__cli_key_find(option->name, strlen(option->name));

    if (option->fallback[0] != '\0')
        return option->fallback;
    /* The default store is too long for a help line; interlock(1) names it. */
    if (key == NULL || key->fallback[0] == '\0' || key == &il__cli_keys[CLI_KEY_store] ||
        option->spec.type == CLI_FLAG)
        return NULL;
    return key->fallback;
}

const char *
il__cli_choice(const char *values, size_t i, size_t *ret_bytes)
{
    if (values[0] == '\0')
        return NULL;
    for (; i > 0; i--) {
        values = strchr(values, '|');
        if (values == NULL)
            return NULL;
        values++;
    }
    *ret_bytes = strcspn(values, "|");
    return values;
}

static il_status
parse_number(const struct cli_spec *spec, const char *text, int64_t *ret, il_error *reterr)
{
    bool     negative = spec->min < 0 && text[0] == '-';
    uint64_t size;
    int64_t  number = INT64_MAX;

    if (il__parse_u64(text + negative, INT64_MAX, &size))
        number = negative ? -(int64_t)size : (int64_t)size;
    if (number < spec->min || number > spec->max)
        return il__error_set(reterr, IL_INVAL,
                             "'%.40s' is not a number from %" PRId64 " to %" PRId64, text,
                             spec->min, spec->max);
    *ret = number;
    return IL_OK;
}

static il_status
parse_duration(const struct cli_spec *spec, const char *text, int64_t *ret, il_error *reterr)
{
    char      min[IL__DURATION_TEXT_BYTES];
    char      max[IL__DURATION_TEXT_BYTES];
    int64_t   ms;
    il_status st = il_parse_duration(text, &ms, reterr);

    if (st != IL_OK)
        return st;
    if (ms == IL_FOREVER && spec->type == CLI_WAIT) {
        *ret = ms;
        return IL_OK;
    }
    if (ms < spec->min || ms > spec->max)
        return il__error_set(reterr, IL_INVAL, "'%.40s' is not a duration from %s to %s", text,
                             il__duration_text(spec->min, min), il__duration_text(spec->max, max));
    *ret = ms;
    return IL_OK;
}

/* A share of a whole, as thousandths. */
static il_status
parse_share(const struct cli_spec *spec, const char *text, int64_t *ret, il_error *reterr)
{
    char  *end      = NULL;
    double permille = strtod(text, &end) * 1000;

    if (end == text || *end != '\0' ||
        !(permille >= (double)spec->min && permille <= (double)spec->max))
        return il__error_set(reterr, IL_INVAL, "'%.40s' is not a number from %g to %g", text,
                             (double)spec->min / 1000, (double)spec->max / 1000);
    *ret = (int64_t)(permille + 0.5);
    return IL_OK;
}

static il_status
parse_time(const struct cli_spec *spec, const char *text, int64_t *ret, il_error *reterr)
{
    int64_t ms;

    if (!il__time_parse(text, &ms) || ms < spec->min || ms > spec->max)
        return il__error_set(reterr, IL_INVAL, "'%.40s' is not a time such as 2026-11-15T03:30:00Z",
                             text);
    *ret = ms;
    return IL_OK;
}

static il_status
parse_choice(const struct cli_spec *spec, const char *text, int64_t *ret, il_error *reterr)
{
    const char *value;
    size_t      n_bytes;

    for (size_t i = 0; (value = il__cli_choice(spec->values, i, &n_bytes)) != NULL; i++) {
        if (strlen(text) == n_bytes && memcmp(text, value, n_bytes) == 0) {
            *ret = (int64_t)i;
            return IL_OK;
        }
    }
    return il__error_set(reterr, IL_INVAL, "'%.40s' is not one of %s", text, spec->values);
}

il_status
il__cli_spec_parse(const struct cli_spec *spec, const char *text, int64_t *ret_number,
                   il_error *reterr)
{
    if (text[0] == '\0' && spec->type != CLI_LIST)
        return il__error_set(reterr, IL_INVAL, "empty value");
    *ret_number = 0;
    switch (spec->type) {
    case CLI_NUMBER:
        return parse_number(spec, text, ret_number, reterr);
    case CLI_DURATION:
    case CLI_WAIT:
        return parse_duration(spec, text, ret_number, reterr);
    case CLI_SHARE:
        return parse_share(spec, text, ret_number, reterr);
    case CLI_TIME:
        return parse_time(spec, text, ret_number, reterr);
    case CLI_CHOICE:
        return parse_choice(spec, text, ret_number, reterr);
    case CLI_LIST:
        return text[0] == '\0' ? IL_OK : il__config_check_ranks(text, reterr);
    case CLI_TEXT:
    case CLI_EACH:
        if (spec->max > 0 && strlen(text) > (size_t)spec->max)
            return il__error_set(reterr, IL_INVAL, "longer than %" PRId64 " bytes", spec->max);
        break;
    case CLI_FLAG:
    case CLI_FILE:
        break;
    }
    return IL_OK;
}
