/*
 * cmd_break.c: `interlock break`: breaks the lease on a key.
 */
#include "cli/audit.h"
#include "cli/break.h"

#include <inttypes.h>

#include "base/error.h"
#include "cli/print_lease.h"
#include "cli/store.h"
#include "cli/wrap/meta.h"

#define TEXT_BYTES_MAX ((size_t)64 << 20)
#define SHOWN_BYTES 400 /* of a key, in an error */

static il_status
report(struct cli_breaker *b, const il_lease_info *info)
{
    char age[CLI_AGE_BYTES];

    b->n_broken++;
    if (b->items != NULL) {
        json_t *item = json_pack("{s:o, s:o, s:I}", "key", il__cli_json_text(info->key), "holder",
                                 il__cli_json_text(info->holder), "fence", (json_int_t)info->fence);
        return json_array_append_new(b->items, item) == 0 ? IL_OK : IL_NOMEM;
    }
    il__buf_adds(&b->text, "broken: ");
    il__cli_escape(&b->text, info->key);
    il__buf_adds(&b->text, ", held by ");
    il__cli_escape(&b->text, info->holder);
    if (il__cli_is_classic(info))
        il__buf_adds(&b->text, ", a classic Redis client, which cannot be notified\n");
    else
        il__buf_addf(&b->text, " for %s, fence %" PRIu64 "\n", il__cli_age(info->age_ms, age),
                     info->fence);
    return IL_OK;
}

static bool
wanted(const struct cli_breaker *b, const il_lease_info *info)
{
    return strcmp(info->key, b->key) == 0 && (b->only == 0 || info->fence == b->only) &&
           (info->fence > b->done || b->done == 0);
}

/* Report the result of one op. A lease that ended meanwhile needs no breaking. */
static il_status
judge(struct cli_breaker *b, const il_lease_info *info, const il_op *op, il_error *reterr)
{
    il_status st = op->status;

    if (st == IL_NOT_HELD || st == IL_STALE)
        return IL_OK;
    if (st == IL_OK)
        st = report(b, info);
    if (st == IL_OK)
        return IL_OK;
    if (st == IL_STATE && il__cli_is_classic(info))
        return il__error_set(
            reterr, st,
            "break: '%.80s' is held by %.64s, a classic Redis client that cannot be "
            "notified; use --now to delete its lock",
            info->key, info->holder);
    return il__error_set(reterr, st, "break: '%.80s', fence %" PRIu64 ": %s", info->key, op->fence,
                         op->out.detail != NULL ? op->out.detail : il_status_text(st));
}

/* Break the leases shown in one batch. */
static il_status
break_leases(struct cli_breaker *b, const il_op *got, il_error *reterr)
{
    size_t           n_items = got->out.n_items;
    size_t           n       = 0;
    AUTO_FREE il_op *ops     = il__calloc(n_items, sizeof *ops);
    char             meta[IL_META_BYTES_MAX + 1];

    wrap_meta_breaker(meta);
    if (ops == NULL)
        return il__error_nomem(reterr);
    for (size_t i = 0; i < n_items; i++) {
        if (!wanted(b, &got->out.items[i]))
            continue;
        ops[n].type           = IL_OP_BREAK;
        ops[n].flags          = b->flags;
        ops[n].key            = b->key;
        ops[n].fence          = got->out.items[i].fence;
        ops[n].holder         = got->out.items[i].holder; /* names a lock without a fence */
        ops[n].in.lock.reason = b->reason;
        ops[n].in.lock.meta   = meta;
        n++;
    }
    il_status st = n > 0 ? il_apply(b->cli->store, ops, n, reterr) : IL_OK;
    il__cli_audit_ops(b->cli, ops, n, st);
    for (size_t i = 0, i_op = 0; st == IL_OK && i < n_items; i++) {
        if (wanted(b, &got->out.items[i]))
            st = judge(b, &got->out.items[i], &ops[i_op++], reterr);
    }
    for (size_t i = 0; i < n; i++)
        il_op_release(&ops[i]);
    return st;
}

/* Break the leases that il_get() did not show: it shows a limited number, by fence. */
static il_status
break_others(struct cli_breaker *b, il_error *reterr)
{
    AUTO_FREE char *cursor = NULL;
    bool            more   = true;
    il_status       st     = IL_OK;

    while (st == IL_OK && more) {
        il_op page = { 0 };
        st         = il_list(b->cli->store, b->key, cursor, IL_PAGE_ITEMS_MAX, 0, &page, reterr);
        if (st == IL_OK)
            st = break_leases(b, &page, reterr);
        size_t n = page.out.n_items;
        /* Of the keys with this prefix the key itself comes first. */
        more = page.out.next != NULL && (n == 0 || strcmp(page.out.items[n - 1].key, b->key) == 0);
        il__free(cursor);
        cursor = more ? il__strdup(page.out.next) : NULL;
        if (st == IL_OK && more && cursor == NULL)
            st = il__error_nomem(reterr);
        il_op_release(&page);
    }
    return st;
}

static il_status
break_all(struct cli_breaker *b, il_error *reterr)
{
    il_op     op = { 0 };
    il_status st = il_get(b->cli->store, b->key, &op, reterr);

    if (st == IL_OK)
        st = break_leases(b, &op, reterr);
    b->done   = op.out.n_items > 0 ? op.out.items[op.out.n_items - 1].fence : 0;
    bool more = op.out.fence > b->done;
    il_op_release(&op);
    return st == IL_OK && more ? break_others(b, reterr) : st;
}

il_status
il__cli_break(struct cli_breaker *b, il_error *reterr)
{
    il__buf_init(&b->text, TEXT_BYTES_MAX);
    il_status st = il__cli_check_key(b->cli, b->key, reterr);
    if (st == IL_OK)
        st = break_all(b, reterr);
    if (st == IL_NOT_HELD || (st == IL_OK && b->n_broken == 0)) {
        if (b->only != 0)
            return il__error_set(reterr, IL_NOT_HELD,
                                 "break: no lease of '%.*s' has fence %" PRIu64, SHOWN_BYTES,
                                 b->key, b->only);
        return il__error_set(reterr, IL_NOT_HELD, "break: key '%.*s' is not held", SHOWN_BYTES,
                             b->key);
    }
    return st;
}

static int
print(const struct cli_breaker *b)
{
    if (b->items != NULL)
        return il__cli_json_print(json_pack("{s:O, s:n}", "items", b->items, "next"));
    if (b->text.failed)
        return il__cli_fail_memory();
    (void)fputs(il__buf_str(&b->text), stdout); /* stdout remembers its errors */
    if ((b->flags & IL_BREAK_NOW) == 0)
        il__cli_note(b->cli, CLI_BREAK_NOTE "; --now frees it at once");
    return 0;
}

int
il__cli_cmd_break(struct cli *cli)
{
    struct cli_breaker b = {
        .cli    = cli,
        .key    = cli->args.operands[0],
        .reason = CLI_OPTION(cli, break, reason)->text,
        .flags  = CLI_GIVEN(cli, break, now) ? IL_BREAK_NOW : 0,
        .only   = (uint64_t)CLI_OPTION(cli, break, fence)->number,
    };
    il_error err;

    if (cli->json && (b.items = json_array()) == NULL)
        return il__cli_fail_memory();
    int status = il__cli_break(&b, &err) == IL_OK ? print(&b) : il__cli_fail(&err);
    il__buf_release(&b.text);
    json_decref(b.items);
    return status;
}
