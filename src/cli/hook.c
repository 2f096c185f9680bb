/*
 * hook.c: the hooks of `run` and `queue work`: their configuration, and the message about one that
 * failed. src/proc/hook.c runs them.
 */
#include "cli/hook.h"

#include <jansson.h>

#include "base/error.h"
#include "proc/sys.h"

static const char *const events[CLI_HOOK_COUNT] = { "success", "failure", "lost" };

const char *
il__cli_hook_event(enum cli_hook_event event)
{
    return events[event];
}

static void
free_argv(char **argv)
{
    for (size_t i = 0; argv != NULL && argv[i] != NULL; i++)
        il__free(argv[i]);
    il__free(argv);
}

/* A JSON array of strings. NULL: it is not one; or out of memory. */
static char **
argv_of_array(const json_t *array)
{
    size_t n    = json_array_size(array);
    char **argv = n > 0 ? il__calloc(n + 1, sizeof *argv) : NULL;

    for (size_t i = 0; argv != NULL && i < n; i++) {
        const char *word = json_string_value(json_array_get(array, i));
        argv[i]          = word != NULL ? il__strdup(word) : NULL;
        if (argv[i] == NULL) {
            free_argv(argv);
            return NULL;
        }
    }
    return argv;
}

static char **
argv_of_program(const char *program)
{
    char **argv = il__calloc(2, sizeof *argv);

    if (argv != NULL && (argv[0] = il__strdup(program)) == NULL) {
        il__free(argv);
        return NULL;
    }
    return argv;
}

static il_status
take_one(const struct cli *cli, enum cli_hook_event event, const char *text, char ***ret,
         il_error *reterr)
{
    if (text == NULL || text[0] == '\0')
        return IL_OK;
    if (text[0] == '[') {
        json_t *array = json_loads(text, 0, NULL);
        *ret          = argv_of_array(array);
        json_decref(array);
    } else {
        *ret = argv_of_program(text);
    }
    if (*ret != NULL && (*ret)[0][0] != '\0')
        return IL_OK;
    return il__error_set(reterr, IL_INVAL,
                         "%s: on_%s: '%.80s' is neither a program nor a JSON array of strings",
                         cli->command->name, events[event], text);
}

il_status
il__cli_hooks_take(const struct cli *cli, struct cli_hooks *ret, il_error *reterr)
{
    const char *const texts[CLI_HOOK_COUNT] = {
        [CLI_HOOK_SUCCESS] = CLI_SETTING(cli, on_success)->text,
        [CLI_HOOK_FAILURE] = CLI_SETTING(cli, on_failure)->text,
        [CLI_HOOK_LOST]    = CLI_SETTING(cli, on_lost)->text,
    };
    il_status st = IL_OK;

    *ret = (struct cli_hooks){ { NULL } };
    for (size_t i = 0; st == IL_OK && i < CLI_HOOK_COUNT; i++)
        st = take_one(cli, (enum cli_hook_event)i, texts[i], &ret->argv[i], reterr);
    return st;
}

void
il__cli_hooks_release(struct cli_hooks *hooks)
{
    for (size_t i = 0; i < CLI_HOOK_COUNT; i++) {
        free_argv(hooks->argv[i]);
        hooks->argv[i] = NULL;
    }
}

bool
il__cli_hook_call(const struct cli_hooks *hooks, enum cli_hook_event event, struct il__hook *h,
                  const char *who)
{
    char why[IL__HOOK_WHY_BYTES];

    if (hooks->argv[event] == NULL)
        return true;
    h->argv = hooks->argv[event];
    if (il__hook_run(h, why))
        return true;
    il__proc_say("%s: hook on_%s (%.100s) failed: %s", who, events[event], h->argv[0], why);
    return false;
}
