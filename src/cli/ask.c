/*
 * ask.c: helpers shared by the queue, run and cache commands; the contract is in ask.h.
 */
#include "cli/ask.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/error.h"
#include "base/parse.h"
#include "cli/data.h"
#include "proc/sys.h"

#define SHOWN_BYTES 80

/* An empty page of a listing that is not the last one. */
static bool
is_empty_page(const il_op *op)
{
    return op->status == IL_OK && op->out.next != NULL && op->type != IL_OP_CACHE_STATS &&
           op->out.n_items + op->out.n_edges + op->out.n_events + op->out.n_runs + op->out.n_jobs +
                   op->out.n_queues + op->out.n_crons ==
               0;
}

/* Apply the op for the next page. Its cursor is freed on return, when it is no longer used. */
static il_status
apply_next(const struct cli *cli, il_op *op, il_error *reterr)
{
    AUTO_FREE char *cursor = il__strdup(op->out.next);

    if (cursor == NULL)
        return il__error_set(reterr, IL_NOMEM, "out of memory");
    il_op_release(op);
    op->in.list.cursor = cursor;
    il_status st       = il_apply(cli->store, op, 1, reterr);
    op->in.list.cursor = NULL;
    return st;
}

/* The status of an op that was applied with st. */
static il_status
outcome(const struct cli *cli, const il_op *op, il_status st, il_error *reterr)
{
    if (st != IL_OK || il_status_exit(op->status) == 0)
        return st != IL_OK ? st : op->status;
    return il__error_set(reterr, op->status, "%s: %s", cli->command->name,
                         op->out.detail != NULL ? op->out.detail : il_status_text(op->status));
}

il_status
il__cli_apply(const struct cli *cli, il_op *op, il_error *reterr)
{
    il_status st = il_apply(cli->store, op, 1, reterr);

    il__cli_audit_ops(cli, op, 1, st);
    while (st == IL_OK && is_empty_page(op))
        st = apply_next(cli, op, reterr);
    return outcome(cli, op, st, reterr);
}

il_status
il__cli_apply_more(const struct cli *cli, il_op *op, il_error *reterr)
{
    il_op_release(op);
    il_status st = il_apply(cli->store, op, 1, reterr);

#ifdef IL_MUTANT_steps_audited
    il__cli_audit_ops(cli, op, 1, st);
#endif
    return outcome(cli, op, st, reterr);
}

il_status
il__cli_apply_to(const struct cli *cli, il_op *op, const char *what, const char *name,
                 il_error *reterr)
{
    il_status st = il__cli_apply(cli, op, reterr);

    if (st != IL_NOT_FOUND)
        return st;
    return il__error_set(reterr, st, "%s: no such %s: '%.*s'", cli->command->name, what,
                         SHOWN_BYTES, name);
}

il_status
il__cli_queue_exists(const struct cli *cli, const char *queue, il_error *reterr)
{
    il_op     op = { .type = IL_OP_QUEUE_LIST, .in.list = { .prefix = queue, .limit = 1 } };
    il_status st = il__cli_apply(cli, &op, reterr);

    /* Sorted by name, the prefix itself comes first. */
    if (st == IL_OK && (op.out.n_queues == 0 || strcmp(op.out.queues[0].name, queue) != 0))
        st = il__error_set(reterr, IL_NOT_FOUND, "%s: no such queue: '%.*s'", cli->command->name,
                           SHOWN_BYTES, queue);
    il_op_release(&op);
    return st;
}

il_status
il__cli_cursor_error(const struct cli *cli, il_status st, const char *cursor, il_error *reterr)
{
    if (st != IL_INVAL || cursor == NULL)
        return st;
    return il__error_set(reterr, st, "%s: --cursor: '%.*s' is not a cursor from a listing",
                         cli->command->name, SHOWN_BYTES, cursor);
}

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
        return il__error_set(reterr, IL_INVAL, "%s: %.200s: %s", cli->command->name,
                             file ? path : "standard input", strerror(errno));
    if (b->n_bytes > n_bytes_max)
        return il__error_set(reterr, IL_INVAL, "%s: the %s is larger than %zu bytes",
                             cli->command->name, what, n_bytes_max);
    if (b->failed)
        return il__error_set(reterr, IL_NOMEM, "out of memory");
    return IL_OK;
}

il_status
il__cli_payload(const struct cli *cli, const char *operand, const char *file, struct il__buf *b,
                const char **ret, size_t *ret_bytes, il_error *reterr)
{
    bool      typed = operand != NULL && strcmp(operand, "-") != 0;
    il_status st    = IL_OK;

    if (operand != NULL && file != NULL)
        return il__error_set(reterr, IL_INVAL,
                             "%s: --file and a payload argument cannot be combined",
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
            reterr, IL_INVAL, "%s: --grace %s is more than a third of the ttl of %s",
            cli->command->name, il__duration_text(grace_ms, grace), il__duration_text(ttl_ms, ttl));
    *ret_ms = MIN(grace_ms, ttl_ms / 3);
    return IL_OK;
}

il_status
il__cli_shared_store(struct cli *cli, il_open_opts *ret_opts, const char **ret_url,
                     il_error *reterr)
{
    il_status st = il__cli_store_prepare(cli, true, ret_opts, reterr);

    if (st != IL_OK)
        return st;
    *ret_url = CLI_SETTING(cli, store)->text;
    if (!il__cli_store_is_private(*ret_url))
        return IL_OK;
    return il__error_set(reterr, IL_INVAL,
                         "%s: store '%s' is private to one process; use sqlite:PATH",
                         cli->command->name, *ret_url);
}
