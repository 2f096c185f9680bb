/*
 * input.c: reads what a command is given; the contract is in input.h.
 */
#include "cli/input.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/error.h"
#include "base/parse.h"
#include "proc/sys.h"

/* The names of the states of a kind of object. */
struct state_names {
    int (*parse)(const char *name); /* 0 = unknown name */
    const char *known;
};

static int
job_state(const char *name)
{
    return (int)il_job_state_parse(name);
}

static int
run_state(const char *name)
{
    return (int)il_run_state_parse(name);
}

/* Look up one name of n bytes, ignoring case; 0 = unknown. */
static int
parse_state(const struct state_names *names, const char *text, size_t n)
{
    char name[24] = "";

    if (n >= sizeof name)
        return 0;
    for (size_t i = 0; i < n; i++)
        name[i] = (char)toupper((unsigned char)text[i]);
    return names->parse(name);
}

static il_status
parse_states(const struct cli *cli, const struct state_names *names, const char *text,
             uint32_t *ret, il_error *reterr)
{
    *ret = 0;
    for (const char *p = text; p != NULL;) {
        size_t n     = strcspn(p, ",");
        int    state = parse_state(names, p, n);
        if (state == 0)
            return il__error_set(reterr, IL_INVAL, "%s: --state: '%.*s' is not one of %s",
                                 cli->command->name, (int)MIN(n, 40), p, names->known);
        *ret |= 1U << state;
        p = p[n] == ',' ? p + n + 1 : NULL;
    }
    return IL_OK;
}

il_status
il__cli_job_states(const struct cli *cli, const char *text, uint32_t *ret, il_error *reterr)
{
    static const struct state_names names = {
        job_state, "scheduled|ready|running|completed|failed|cancelled"
    };

    return parse_states(cli, &names, text, ret, reterr);
}

il_status
il__cli_run_states(const struct cli *cli, const char *text, uint32_t *ret, il_error *reterr)
{
    static const struct state_names names = {
        run_state, "pending|running|completed|failed|cancelled|timeout|interrupted"
    };

    return parse_states(cli, &names, text, ret, reterr);
}

il_status
il__cli_read(const struct cli *cli, const char *path, const char *what, size_t n_bytes_max,
             struct il__buf *b, il_error *reterr)
{
    bool        file = path != NULL && strcmp(path, "-") != 0;
    AUTO_FD int fd   = file ? open(path, O_RDONLY | O_CLOEXEC) : dup(STDIN_FILENO);
    char        chunk[65536];
    ssize_t     n = fd < 0 ? -1 : 1;

    il__buf_init(b, n_bytes_max + 1);
    while (n > 0 && b->n_bytes <= n_bytes_max) {
        n = read(fd, chunk, MIN(sizeof chunk, n_bytes_max + 1 - b->n_bytes));
        if (n < 0 && errno == EINTR)
            n = 1;
        else if (n > 0)
            il__buf_add(b, chunk, (size_t)n);
    }
    if (n < 0)
        return il__error_set(reterr, IL_INVAL, "%s: cannot read %.200s: %s", cli->command->name,
                             file ? path : "standard input", strerror(errno));
    if (b->n_bytes > n_bytes_max)
        return il__error_set(reterr, IL_INVAL, "%s: the %s is larger than %zu bytes",
                             cli->command->name, what, n_bytes_max);
    if (b->failed)
        return il__error_nomem(reterr);
    return IL_OK;
}

il_status
il__cli_payload(const struct cli *cli, const char *operand, const char *file, struct il__buf *b,
                const char **ret, size_t *ret_bytes, il_error *reterr)
{
    bool      typed = operand != NULL && strcmp(operand, "-") != 0;
    il_status st    = IL_OK;

    if (operand != NULL && file != NULL)
        return il__error_set(reterr, IL_INVAL, "%s: --file and PAYLOAD cannot be combined",
                             cli->command->name);
    if (typed && strlen(operand) > IL_BLOB_BYTES_MAX)
        return il__error_set(reterr, IL_INVAL, "%s: the payload is larger than %d bytes",
                             cli->command->name, IL_BLOB_BYTES_MAX);
    if (!typed)
        st = il__cli_read(cli, file, "payload", IL_BLOB_BYTES_MAX, b, reterr);
    *ret       = typed ? operand : il__buf_str(b);
    *ret_bytes = typed ? strlen(operand) : b->n_bytes;
    return st;
}

il_status
il__cli_choose_grace(const struct cli *cli, const struct cli_value *option, int64_t ttl_ms,
                     int64_t *ret_ms, il_error *reterr)
{
    int64_t grace_ms = CLI_SETTING(cli, grace)->number;
    char    grace[IL__DURATION_TEXT_BYTES];
    char    ttl[IL__DURATION_TEXT_BYTES];

    if (grace_ms > ttl_ms / 3 && option != NULL && option->given)
        return il__error_set(
            reterr, IL_INVAL, "%s: --grace %s is more than a third of the TTL of %s",
            cli->command->name, il__duration_text(grace_ms, grace), il__duration_text(ttl_ms, ttl));
    *ret_ms = MIN(grace_ms, ttl_ms / 3);
    return IL_OK;
}
