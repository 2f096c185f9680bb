/*
 * suggest.c: suggests the command or setting the user probably meant.
 */
#include <stdio.h>

#include "base/error.h"
#include "base/suggest.h"
#include "cli/args.h"

static const char *
next_command_word(const void *cookie, size_t i)
{
    for (size_t c = 0; c < CLI_CMD_COUNT; c++) {
        const struct cli_command *command = &il__cli_commands[c];
        if ((command->flags & CLI_HIDDEN) == 0 && il__cli_command_is_below(command, cookie) &&
            i-- == 0)
            return il__cli_command_word(command);
    }
    return NULL;
}

static const char *
next_key_name(const void *cookie UNUSED, size_t i)
{
    return i < CLI_KEY_COUNT ? il__cli_keys[i].name : NULL;
}

il_status
il__cli_unknown_command(const struct cli_command *parent, const char *word, il_error *reterr)
{
    const char *family   = parent != NULL ? parent->name : "";
    const char *space    = parent != NULL ? " " : "";
    const char *meant    = il__suggest(word, next_command_word, parent);
    char        hint[80] = "";

    if (meant != NULL)
        (void)snprintf(hint, sizeof hint, " (did you mean '%s%s%s'?)", family, space, meant);
    return il__error_set(reterr, IL_INVAL,
                         "unknown command '%s%s%.80s'%s; see interlock %s%s--help", family, space,
                         word, hint, family, space);
}

void
il__cli_suggest_key(const char *word, char *hint, size_t n_bytes)
{
    const char *name = il__suggest(word, next_key_name, NULL);

    hint[0] = '\0';
    if (name != NULL)
        (void)snprintf(hint, n_bytes, " (did you mean '%s'?)", name);
}
