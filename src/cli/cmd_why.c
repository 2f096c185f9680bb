/*
 * cmd_why.c: `interlock why`: explains why a key is not free: holder, age, expiry, waiters, and
 * what to do. The exit status is 0 whenever the store could be read.
 */
#include <inttypes.h>

#include "base/error.h"
#include "base/parse.h"
#include "cli/cli.h"
#include "cli/item.h"
#include "cli/lease.h"
#include "wire/why.h"

struct answer {
    const char    *key;
    il_op          ops[2];
    struct il__why why; /* their meta */
};

static il_status
ask(struct cli *cli, struct answer *a, il_error *reterr)
{
    il_status st = il__cli_check_key(cli, a->key, reterr);

    il__why_ask(a->key, a->ops);
    if (st == IL_OK)
        st = il_apply(cli->store, a->ops, 2, reterr);
    for (size_t i = 0; st == IL_OK && i < 2; i++) {
        if (a->ops[i].status != IL_OK && a->ops[i].status != IL_NOT_HELD)
            st = il__error_set(reterr, a->ops[i].status, "%s",
                               a->ops[i].out.detail != NULL ? a->ops[i].out.detail
                                                            : il_status_text(a->ops[i].status));
    }
    if (st == IL_OK)
        il__why_answer(a->key, a->ops, &a->why);
    return st;
}

static void
print_line(const char *name, const char *value)
{
    (void)printf("  %-14s", name);
    il__cli_puts(value);
    (void)putchar('\n');
}

/* pid, host, command and whatever else the holder says about itself. */
static void
print_meta(const char *meta)
{
    json_t     *value = il__cli_meta_json(meta);
    const char *name;
    json_t     *member;

    if (json_is_string(value))
        print_line("meta", json_string_value(value));
    json_object_foreach(value, name, member)
    {
        char *text =
            json_is_string(member) ? NULL : json_dumps(member, JSON_ENCODE_ANY | JSON_COMPACT);
        print_line(name, text != NULL ? text : json_string_value(member));
        free(text);
    }
    json_decref(value);
}

/* What the state of the lease means for someone who wants the key. */
static void
print_outlook(const il_lease_info *info)
{
    char rest[CLI_AGE_BYTES];
    char ttl[IL__DURATION_TEXT_BYTES];

    il__cli_age(info->remaining_ms, rest);
    if (info->state == IL_LEASE_CLOSING) {
        (void)printf("  It was broken or has expired. Its holder may still be working, so the key "
                     "stays closed\n  until the holder lets go, at most %s.\n",
                     rest);
        return;
    }
    if (info->state == IL_LEASE_OFFERED) {
        (void)printf("  It was offered to the first waiter, which has %s to accept it before it "
                     "goes to the next.\n",
                     rest);
        return;
    }
    (void)printf("  If the holder died, %s in %s.\n",
                 info->mode == IL_MODE_EXCLUSIVE ? "the key is free" : "its lease ends", rest);
    /* Renewals are due every third of the TTL: one missed may be chance, two are a sign of
     * trouble. */
    if (info->renewed_ms > info->ttl_ms / 3 * 2)
        (void)printf("  %sIt missed a renewal (ttl %s): the holder is probably dead, paused or "
                     "disconnected.%s\n",
                     il__cli_style(stdout, CLI_YELLOW), il__duration_text(info->ttl_ms, ttl),
                     il__cli_style(stdout, CLI_PLAIN));
}

/* Little is known about a foreign lock, and its renewals are not visible. */
static void
print_classic(const il_lease_info *info)
{
    char rest[CLI_AGE_BYTES];

    (void)putchar('\n');
    print_line("holder", info->holder);
    print_line("mode", "a classic client's lock in Redis, exclusive");
    if (info->remaining_ms == IL_FOREVER)
        (void)printf("  It has no expiry: if its client died, it must be deleted by hand.\n");
    else
        (void)printf("  If its client died, the key is free in %s.\n",
                     il__cli_age(info->remaining_ms, rest));
}

static void
print_lease(const il_lease_info *info)
{
    char text[128];
    char age[CLI_AGE_BYTES];
    char time[IL__TIME_TEXT_BYTES];
    char mode[CLI_MODE_BYTES];
    char ttl[IL__DURATION_TEXT_BYTES];

    if (il__cli_is_classic(info)) {
        print_classic(info);
        return;
    }
    (void)putchar('\n');
    print_line("holder", info->holder);
    (void)snprintf(text, sizeof text, "%s ago, %s", il__cli_age(info->age_ms, age),
                   il__time_text(info->acquired_at_ms, time));
    print_line("since", text);
    (void)snprintf(text, sizeof text, "%s ago, ttl %s", il__cli_age(info->renewed_ms, age),
                   il__duration_text(info->ttl_ms, ttl));
    print_line("last renewed", text);
    print_line("mode", il__cli_mode_text(info, mode));
    (void)snprintf(text, sizeof text, "%" PRIu64, info->fence);
    print_line("fence", text);
    if (info->place[0] != '\0')
        print_line("place", info->place);
    print_meta(info->meta);
    print_outlook(info);
}

static int
print_waiters(const struct answer *a)
{
    static const char *const  headers[] = { ">#", "HOLDER", "MODE", ">WAITING", ">GIVES UP IN" };
    AUTO_GRID struct cli_grid g         = { 0 };

    il__cli_grid_init(&g, headers, ARRAY_LEN(headers));
    g.elastic = 1; /* the holder */
    for (size_t i = 0; i < a->why.n_waiters; i++) {
        const il_lease_info *info = &a->why.waiters[i];
        char                 age[CLI_AGE_BYTES];
        char                 rest[CLI_AGE_BYTES];
        char                 mode[CLI_MODE_BYTES];
        il__cli_grid_add(&g, "%zu", i + 1);
        il__cli_grid_add(&g, "%s", info->holder);
        il__cli_grid_add(&g, "%s", il__cli_mode_text(info, mode));
        il__cli_grid_add(&g, "%s", il__cli_age(info->age_ms, age));
        il__cli_grid_add(&g, "%s",
                         info->remaining_ms == IL_FOREVER ? "never"
                                                          : il__cli_age(info->remaining_ms, rest));
    }
    (void)printf("\n%zu waiting, first come first served:\n", a->why.n_waiters);
    return il__cli_grid_print(&g);
}

/* "KEY is held", "KEY is held by 3", "KEY is held: 2 of 3 permits are taken" */
static void
print_headline(const struct answer *a)
{
    size_t      n     = a->why.n_leases;
    const char *style = il__cli_style(stdout, n == 0 ? CLI_GREEN : CLI_RED);

    il__cli_puts(a->key);
    (void)printf(" is %s%s%s", style, a->why.state, il__cli_style(stdout, CLI_PLAIN));
    if (n > 0 && a->why.leases[0].mode == IL_MODE_PERMIT)
        (void)printf(": %zu of %u permits %s taken", n, a->why.leases[0].permits,
                     n == 1 ? "is" : "are");
    else if (n > 1)
        (void)printf(" by %zu", n);
    (void)putchar('\n');
}

static int
print_text(const struct answer *a)
{
    int status = 0;

    print_headline(a);
    for (size_t i = 0; i < a->why.n_leases; i++)
        print_lease(&a->why.leases[i]);
    if (a->why.n_waiters > 0)
        status = print_waiters(a);
    if (a->why.n_leases > 0) {
        (void)printf("\nTo wait for it:  interlock run --wait 5m ");
        il__cli_puts(a->key);
        (void)printf(" -- COMMAND\n");
    }
    if (a->why.n_leases > 0 && !il__cli_is_classic(&a->why.leases[0])) {
        (void)printf("To break it:     interlock break ");
        il__cli_puts(a->key);
        (void)printf(" --reason TEXT\n");
    }
    return status;
}

int
il__cli_cmd_why(struct cli *cli)
{
    struct answer a = { .key = cli->args.operands[0] };
    il_error      err;
    il_status     st = ask(cli, &a, &err);
    int           status;

    if (st != IL_OK)
        status = il__cli_fail(&err);
    else
        status = cli->json ? il__cli_print_item(&il__wire_why, &a.why) : print_text(&a);
    if (st == IL_OK && cli->store_missing)
        il__cli_note(cli, "the store does not exist yet");
    il_op_release(&a.ops[0]);
    il_op_release(&a.ops[1]);
    return status;
}
