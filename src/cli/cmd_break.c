/*
 * cmd_break.c: `interlock break`: take a key away from whoever holds it.
 */
#include <inttypes.h>

#include "base/error.h"
#include "cli/cli.h"
#include "cli/lease.h"
#include "cli/store.h"

struct breaker {
    struct cli *cli;
    const char *key;
    const char *reason;
    uint32_t    flags; /* IL_BREAK_NOW or 0 */
    uint64_t    only;  /* the fence to break; 0 = all */
    json_t     *items; /* --json: what was broken; NULL = print it */
    size_t      n_broken;
};

static il_status
report(struct breaker *b, const il_lease_info *info)
{
    char age[CLI_AGE_BYTES];

    b->n_broken++;
    if (b->items != NULL) {
        json_t *item = json_pack("{s:o, s:o, s:I}", "key", il__cli_json_text(info->key), "holder",
                                 il__cli_json_text(info->holder), "fence", (json_int_t)info->fence);
        return json_array_append_new(b->items, item) == 0 ? IL_OK : IL_NOMEM;
    }
    il__cli_puts("broken: ");
    il__cli_puts(info->key);
    il__cli_puts(", held by ");
    il__cli_puts(info->holder);
    (void)printf(" for %s, fence %" PRIu64 "\n", il__cli_age(info->age_ms, age), info->fence);
    return IL_OK;
}

static bool
wanted(const struct breaker *b, const il_lease_info *info)
{
    return b->only == 0 || info->fence == b->only;
}

/* What became of one op. A lease that ended in the meantime needs no breaking any more. */
static il_status
judge(struct breaker *b, const il_lease_info *info, const il_op *op, il_error *reterr)
{
    il_status st = op->status;

    if (st == IL_NOT_HELD || st == IL_STALE)
        return IL_OK;
    if (st == IL_OK)
        st = report(b, info);
    if (st == IL_OK)
        return IL_OK;
    return il__error_set(reterr, st, "break: fence %" PRIu64 ": %s", op->fence,
                         op->out.detail != NULL ? op->out.detail : il_status_text(st));
}

/*
 * A classic client's lock has no lease to break: it is a string in Redis, and its client looks at nothing else. Through a server the
 * tenant is the key's, which is not known here.
 */
static il_status
refuse_classic(const struct breaker *b, const il_lease_info *info, il_error *reterr)
{
    static const char         begin[] = "pipeline:";
    const struct cli_setting *tenant  = CLI_SETTING(b->cli, tenant);
    bool                      unknown = tenant->source == CLI_FROM_DEFAULT &&
                   il__cli_store_is_server(CLI_SETTING(b->cli, store)->text);
    const char *name = b->key + (strncmp(b->key, begin, sizeof begin - 1) == 0 ? sizeof begin - 1 : 0);

    return il__error_set(
        reterr, IL_STATE,
        "break: held by %.64s, a classic client, whose lock only Redis can end (the "
        "client is not told): redis-cli DEL 'pipeline_lock:%s:%s'",
        info->holder, unknown ? "TENANT" : tenant->text, name);
}

/* Break the leases that are there, as one batch. */
static il_status
break_leases(struct breaker *b, const il_op *got, il_error *reterr)
{
    size_t           n_items = MIN(got->out.n_items, IL_BATCH_OPS_MAX);
    size_t           n       = 0;
    AUTO_FREE il_op *ops     = il__calloc(n_items, sizeof *ops);

    if (ops == NULL)
        return il__error_set(reterr, IL_NOMEM, "out of memory");
    for (size_t i = 0; i < n_items; i++) {
        if (!wanted(b, &got->out.items[i]))
            continue;
        ops[n].type           = IL_OP_BREAK;
        ops[n].flags          = b->flags;
        ops[n].key            = b->key;
        ops[n].fence          = got->out.items[i].fence;
        ops[n].in.lock.reason = b->reason;
        n++;
    }
    il_status st = n > 0 ? il_apply(b->cli->store, ops, n, reterr) : IL_OK;
    for (size_t i = 0, i_op = 0; st == IL_OK && i < n_items; i++) {
        if (wanted(b, &got->out.items[i]))
            st = judge(b, &got->out.items[i], &ops[i_op++], reterr);
    }
    for (size_t i = 0; i < n; i++)
        il_op_release(&ops[i]);
    return st;
}

static int
conclude(struct breaker *b)
{
    if (b->items != NULL && b->n_broken > 0)
        return il__cli_json_print(json_pack("{s:O, s:n}", "items", b->items, "next"));
    if (b->n_broken > 0) {
        if ((b->flags & IL_BREAK_NOW) == 0)
            il__cli_note(
                b->cli,
                "the key opens when the holder has let go, at the latest at the end of its ttl; "
                "--now opens it at once");
        return 0;
    }
    if (b->only != 0)
        il__cli_error("break: no lease of '%s' has the fence %" PRIu64, b->key, b->only);
    else
        il__cli_error("break: nobody holds '%s'", b->key);
    return il_status_exit(IL_NOT_HELD);
}

int
il__cli_cmd_break(struct cli *cli)
{
    struct breaker b = {
        .cli    = cli,
        .key    = cli->args.operands[0],
        .reason = CLI_OPTION(cli, break, reason)->text,
        .flags  = CLI_GIVEN(cli, break, now) ? IL_BREAK_NOW : 0,
        .only   = (uint64_t)CLI_OPTION(cli, break, fence)->number,
    };
    il_op    op = { 0 };
    il_error err;

    if (cli->json && (b.items = json_array()) == NULL)
        return il__cli_fail_memory();
    il_status st = il__cli_check_key(cli, b.key, &err);
    if (st == IL_OK)
        st = il_get(cli->store, b.key, &op, &err);
    if (st == IL_OK && op.out.n_items > 0 && il__cli_is_classic(&op.out.items[0]))
        st = refuse_classic(&b, &op.out.items[0], &err);
    else if (st == IL_OK)
        st = break_leases(&b, &op, &err);
    int status = st == IL_OK || st == IL_NOT_HELD ? conclude(&b) : il__cli_fail(&err);
    il_op_release(&op);
    json_decref(b.items);
    return status;
}
