/*
 * cmd_cache.c: `interlock cache get`, `fill`, `drop` and `stats`. wrap/hold_build.c runs a command
 * that builds a value.
 */
#include <inttypes.h>

#include "base/error.h"
#include "cli/apply.h"
#include "cli/input.h"
#include "cli/print_item.h"
#include "cli/wrap/wrap.h"

#define FILL_TRIES_MAX 16 /* builders that get in between our drop and our lookup */

/* ---- get ------------------------------------------------------------------------------------- */

static json_t *
value_json(const il_op *op)
{
    bool    stale = op->status == IL_STALE_HIT;
    json_t *value =
        json_pack("{s:o, s:s, s:b, s:I, s:I, s:I}", "key", il__cli_json_text(op->key), "state",
                  stale ? "stale" : "fresh", "negative", (op->out.flags & IL_OUT_NEGATIVE) != 0,
                  "code", (json_int_t)op->out.code, "age_ms", (json_int_t)op->out.age_ms,
                  "remaining_ms", (json_int_t)op->out.remaining_ms);

    if (value != NULL &&
        !il__cli_json_set_bytes(value, "value", op->out.value, op->out.value_bytes)) {
        json_decref(value);
        return NULL;
    }
    return value;
}

static int
print_hit(const struct cli *cli, const il_op *op)
{
    int status = (op->out.flags & IL_OUT_NEGATIVE) != 0 ? op->out.code & 0xFF : 0;

    if (!cli->json)
        return wrap_print_value(op);
    int printed = il__cli_json_print(value_json(op));
    return printed != 0 ? printed : status;
}

/* Without a command: print the existing value, or wait for one being built. */
static int
get(struct cli *cli, const char *key)
{
    int64_t       wait_ms = CLI_OPTION(cli, cache_get, wait)->number;
    il_cache_opts opts    = IL_CACHE_OPTS_INIT;
    il_op         op      = { .type = IL_OP_NONE };
    il_error      err;
    int           status;

    opts.wait_ms = wait_ms != 0 ? wait_ms : 1; /* 0 would be the default */
    il_status st = il__cli_store_open(cli, false, &err);
    if (st == IL_OK)
        st = il_cache_lookup(cli->store, key, &opts, NULL, &op, &err);
    if (st == IL_NOT_FOUND)
        (void)il__error_set(&err, st, "cache get: no value for key '%.80s'", key);
    if (st == IL_WAIT)
        (void)il__error_set(&err, st, "cache get: another process is building '%.80s'", key);
    if (st == IL_HIT || st == IL_STALE_HIT)
        status = print_hit(cli, &op);
    else
        status = il__cli_fail(&err);
    il_op_release(&op);
    return status;
}

/* Look up the value before preparing a build: most of the time it exists. true: *ret is the exit
 * status. */
static bool
try_hit(struct cli *cli, const char *key, int *ret)
{
    il_op op  = { .type = IL_OP_CACHE_GET, .key = key };
    bool  hit = false;
    char  uuid[37];

    /* The last digits of a UUID are random, as needed for an early refresh. */
    if (il__cli_store_open(cli, true, NULL) != IL_OK || il_uuid(uuid) != IL_OK)
        return false;
    op.in.cache.chance = (uint32_t)strtoul(uuid + 28, NULL, 16);
    if (il_apply(cli->store, &op, 1, NULL) == IL_OK && op.status == IL_HIT &&
        (op.out.flags & IL_OUT_EARLY) == 0) {
        hit  = true;
        *ret = print_hit(cli, &op);
    }
    il_op_release(&op);
    return hit;
}

static int
get_or_build(struct cli *cli, const char *key)
{
    il_open_opts     open_opts;
    struct wrap_opts run = {
        .open_opts     = &open_opts,
        .key           = key,
        .argv          = cli->args.tail,
        .ttl_ms        = CLI_OPTION(cli, cache_get, lease)->number,
        .wait_ms       = CLI_OPTION(cli, cache_get, wait)->number,
        .timeout_ms    = CLI_OPTION(cli, cache_get, timeout)->number,
        .conflict_exit = il_status_exit(IL_WAIT),
        .quiet         = cli->quiet,
        .kind          = WRAP_BUILD,
        .build         = { .fresh_ms       = CLI_OPTION(cli, cache_get, ttl)->number,
                           .stale_ms       = CLI_OPTION(cli, cache_get, grace)->number,
                           .negative_ms    = CLI_OPTION(cli, cache_get, negative_ttl)->number,
                           .stale_if_error = CLI_GIVEN(cli, cache_get, stale_if_error) },
    };
    il_error  err;
    int       status;
    il_status st = il__cli_choose_grace(cli, NULL, run.ttl_ms, &run.grace_ms, &err);

    if (cli->json)
        return il__cli_usage("cache get: --json and a command cannot be combined");
    if (st == IL_OK)
        st = il__cli_shared_store(cli, &open_opts, &run.store_url, &err);
    if (st != IL_OK)
        return il__cli_fail(&err);
    if (try_hit(cli, key, &status))
        return status;
    /* The process between us and the command must not inherit the open store, so close it and
     * start over. */
    il_close(cli->store);
    cli->store = NULL;
    return wrap_command(&run);
}

int
il__cli_cmd_cache_get(struct cli *cli)
{
    const char *key = cli->args.operands[0];
    il_error    err;

    if (il__cli_check_key(cli, key, &err) != IL_OK)
        return il__cli_fail(&err);
    bool build = cli->args.tail != NULL && cli->args.tail[0] != NULL;
    return build ? get_or_build(cli, key) : get(cli, key);
}

/* ---- fill, drop ------------------------------------------------------------------------------ */

/* Take over the right to build from whoever has it: the current value becomes stale, and a build
 * in progress is wasted. */
static il_status
lead(struct cli *cli, const char *key, il_build **ret, il_error *reterr)
{
    il_cache_opts opts = IL_CACHE_OPTS_INIT;

    opts.wait_ms     = 1;
    opts.never_early = 1;
    for (int i = 0; i < FILL_TRIES_MAX; i++) {
        il_op     op = { .type = IL_OP_NONE };
        il_status st = il_cache_drop(cli->store, key, IL_DROP_STALE, reterr);
        if (st != IL_OK)
            return st;
        st = il_cache_lookup(cli->store, key, &opts, ret, &op, reterr);
        il_op_release(&op);
        if (st == IL_LEAD)
            return IL_OK;
        if (st != IL_WAIT && st != IL_HIT && st != IL_STALE_HIT)
            return st;
    }
    return il__error_set(reterr, IL_STALE,
                         "cache fill: other processes keep filling '%.80s'; try again", key);
}

int
il__cli_cmd_cache_fill(struct cli *cli)
{
    const char             *key   = cli->args.operands[0];
    AUTO_BUF struct il__buf value = { 0 };
    il_build               *build = NULL;
    il_error                err;
    il_status               st = il__cli_check_key(cli, key, &err);

    if (st == IL_OK)
        st = il__cli_read(cli, NULL, "value", IL_BLOB_BYTES_MAX, &value, &err);
    if (st == IL_OK)
        st = lead(cli, key, &build, &err);
    if (st == IL_OK)
        st = il_build_fill(build, il__buf_str(&value), value.n_bytes,
                           CLI_OPTION(cli, cache_fill, ttl)->number,
                           CLI_OPTION(cli, cache_fill, grace)->number, 0, 0, &err);
    il_build_free(build);
    if (st != IL_OK)
        return il__cli_fail(&err);
    if (cli->json)
        return il__cli_json_print(json_pack("{s:o, s:I}", "key", il__cli_json_text(key), "bytes",
                                            (json_int_t)value.n_bytes));
    return 0;
}

int
il__cli_cmd_cache_drop(struct cli *cli)
{
    const char *key   = cli->args.operands[0];
    uint32_t    flags = CLI_GIVEN(cli, cache_drop, stale) ? IL_DROP_STALE : 0;
    il_error    err;
    il_status   st = il__cli_check_key(cli, key, &err);

    if (st == IL_OK)
        st = il_cache_drop(cli->store, key, flags, &err);
    if (st != IL_OK)
        return il__cli_fail(&err);
    if (cli->json)
        return il__cli_json_print(json_pack("{s:o}", "dropped", il__cli_json_text(key)));
    return 0;
}

/* ---- stats ----------------------------------------------------------------------------------- */

static void
add(il_cache_info *sums, const il_cache_info *page)
{
    sums->n_entries += page->n_entries;
    sums->n_bytes += page->n_bytes;
    sums->n_fresh += page->n_fresh;
    sums->n_stale += page->n_stale;
    sums->n_negative += page->n_negative;
    sums->n_building += page->n_building;
}

/* Page by page, so that no other caller waits for all of it. */
static il_status
count_pages(const struct cli *cli, il_op *op, il_cache_info *sums, il_error *reterr)
{
    char *cursor = NULL;

    for (;;) {
        op->in.list.cursor = cursor;
        il_status st       = il__cli_apply(cli, op, reterr);
        il__free(cursor);
        bool more = st == IL_OK && op->out.next != NULL;
        cursor    = more ? il__strdup(op->out.next) : NULL;
        if (st == IL_OK)
            add(sums, &op->out.cache);
        il_op_release(op);
        if (more && cursor == NULL)
            return il__error_nomem(reterr);
        if (!more)
            return st;
    }
}

int
il__cli_cmd_cache_stats(struct cli *cli)
{
    const char *prefix = cli->args.operands[0];
    il_op       op     = { .type    = IL_OP_CACHE_STATS,
                           .in.list = { .prefix = prefix, .limit = IL_PAGE_ITEMS_MAX } };
    il_error    err;
    il_status   st =
        prefix != NULL && prefix[0] != '\0' ? il__cli_check_key(cli, prefix, &err) : IL_OK;

    il_cache_info c = { 0 };
    if (st == IL_OK)
        st = count_pages(cli, &op, &c, &err);
    if (st != IL_OK)
        return il__cli_fail(&err);
    if (cli->json)
        return il__cli_print_item(&il__wire_cache_stats, &c);
    il__cli_field("entries", "%" PRIu64, c.n_entries);
    il__cli_field("bytes", "%" PRIu64, c.n_bytes);
    il__cli_field("fresh", "%" PRIu64, c.n_fresh);
    il__cli_field("stale", "%" PRIu64, c.n_stale);
    il__cli_field("negative", "%" PRIu64, c.n_negative);
    il__cli_field("building", "%" PRIu64, c.n_building);
    return 0;
}
