/*
 * cmd_why.c: `interlock why`: is the key free, and if not: who, since when, until when, who waits,
 * and what to do about it. The exit status is 0 whenever the store could answer.
 */
#include <inttypes.h>

#include "base/error.h"
#include "base/parse.h"
#include "cli/cli.h"
#include "cli/lease.h"

struct answer {
    const char *key;
    il_op       leases;
    il_op       waiters;
    size_t      n_waiters;  /* of this very key; the listing is by prefix */
    int64_t     free_in_ms; /* at the latest, if no holder renews any more; 0 = it is free */
};

static il_status
ask(struct cli *cli, struct answer *a, il_error *reterr)
{
    il_status st = il__cli_check_key(cli, a->key, reterr);

    if (st == IL_OK)
        st = il_get(cli->store, a->key, &a->leases, reterr);
    if (st != IL_OK && st != IL_NOT_HELD)
        return st;
    st = il_list(cli->store, a->key, NULL, IL_PAGE_ITEMS_MAX, IL_LIST_WAITERS, &a->waiters, reterr);
    if (st != IL_OK)
        return st;
    /* A key sorts before every longer one that starts with it. */
    while (a->n_waiters < a->waiters.out.n_items &&
           strcmp(a->waiters.out.items[a->n_waiters].key, a->key) == 0)
        a->n_waiters++;
    for (size_t i = 0; i < a->leases.out.n_items; i++)
        a->free_in_ms = MAX(a->free_in_ms, a->leases.out.items[i].remaining_ms);
    return IL_OK;
}

static const char *
state_of(const struct answer *a)
{
    return a->leases.out.n_items > 0 ? il_lease_state_name(a->leases.out.items[0].state) : "free";
}

static int
print_json(const struct answer *a)
{
    return il__cli_json_print(
        json_pack("{s:o, s:s, s:I, s:o, s:o}", "key", il__cli_json_text(a->key), "state",
                  state_of(a), "free_in_ms", (json_int_t)a->free_in_ms, "leases",
                  il__cli_lease_array(a->leases.out.items, a->leases.out.n_items, false), "waiters",
                  il__cli_lease_array(a->waiters.out.items, a->n_waiters, true)));
}

static void
print_line(const char *name, const char *value)
{
    (void)printf("  %-14s", name);
    il__cli_puts(value);
    (void)putchar('\n');
}

/* pid, host, command and whatever else the holder said about itself. */
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

/* What the state of the lease means for somebody who wants the key. */
static void
print_outlook(const il_lease_info *info)
{
    char rest[CLI_AGE_BYTES];
    char ttl[IL__DURATION_TEXT_BYTES];

    il__cli_age(info->remaining_ms, rest);
    if (info->state == IL_LEASE_CLOSING) {
        (void)printf("  It was broken or ran out. Its holder may still be at work, so the key "
                     "stays closed until the\n"
                     "  holder lets go, at most %s.\n",
                     rest);
        return;
    }
    if (info->state == IL_LEASE_OFFERED) {
        (void)printf("  It was offered to the first in the queue, who has %s to take it; then it "
                     "goes to the next.\n",
                     rest);
        return;
    }
    (void)printf("  If the holder died, %s in %s.\n",
                 info->mode == IL_MODE_EXCLUSIVE ? "the key is free" : "its hold ends", rest);
    /* Renewals come at every third of the TTL: one missed can be chance, two are a sign. */
    if (info->renewed_ms > info->ttl_ms / 3 * 2)
        (void)printf("  %sIt has missed a renewal (ttl %s): the holder is probably dead, paused or "
                     "cut off.%s\n",
                     il__cli_style(stdout, CLI_YELLOW), il__duration_text(info->ttl_ms, ttl),
                     il__cli_style(stdout, CLI_PLAIN));
}

static void
print_lease(const il_lease_info *info)
{
    char text[128];
    char age[CLI_AGE_BYTES];
    char time[IL__TIME_TEXT_BYTES];
    char mode[CLI_MODE_BYTES];
    char ttl[IL__DURATION_TEXT_BYTES];

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
    for (size_t i = 0; i < a->n_waiters; i++) {
        const il_lease_info *info = &a->waiters.out.items[i];
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
    (void)printf("\n%zu waiting, first come first served:\n", a->n_waiters);
    return il__cli_grid_print(&g);
}

/* "KEY is held", "KEY is held by 3", "KEY is held: 2 of 3 permits are taken" */
static void
print_headline(const struct answer *a)
{
    size_t      n     = a->leases.out.n_items;
    const char *style = il__cli_style(stdout, n == 0 ? CLI_GREEN : CLI_RED);

    il__cli_puts(a->key);
    (void)printf(" is %s%s%s", style, state_of(a), il__cli_style(stdout, CLI_PLAIN));
    if (n > 0 && a->leases.out.items[0].mode == IL_MODE_PERMIT)
        (void)printf(": %zu of %u permits %s taken", n, a->leases.out.items[0].permits,
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
    for (size_t i = 0; i < a->leases.out.n_items; i++)
        print_lease(&a->leases.out.items[i]);
    if (a->n_waiters > 0)
        status = print_waiters(a);
    if (a->leases.out.n_items > 0) {
        (void)printf("\nTo wait for it: interlock run --wait 5m ");
        il__cli_puts(a->key);
        (void)printf(" -- COMMAND\nTo end it:      interlock break ");
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
        status = cli->json ? print_json(&a) : print_text(&a);
    if (st == IL_OK && cli->store_missing)
        il__cli_note(cli, "the store does not exist yet");
    il_op_release(&a.leases);
    il_op_release(&a.waiters);
    return status;
}
