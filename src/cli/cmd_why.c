/*
 * cmd_why.c: `interlock why`: explains why a key is not free: holder, age, expiry, waiters, what
 * happened to it, and what to do. The exit status is 0 whenever the store could be read.
 */
#include "cli/why.h"

#include <inttypes.h>

#include "base/error.h"
#include "base/parse.h"
#include "cli/events.h"
#include "cli/print_item.h"
#include "cli/print_lease.h"
#include "wire/why.h"

#define TEXT_BYTES_MAX ((size_t)64 << 20)
#define EVENTS_SHOWN ((size_t)5)

struct answer {
    struct il__buf text;
    bool           styled; /* colours, if stdout has them */
    const char    *key;
    il_op          ops[IL__WHY_OPS];
    struct il__why why; /* their meta */
};

static il_status
ask(struct cli *cli, struct answer *a, il_error *reterr)
{
    il_status st = il__cli_check_key(cli, a->key, reterr);

    il__why_ask(a->key, a->ops);
    if (st == IL_OK)
        st = il_apply(cli->store, a->ops, IL__WHY_OPS, reterr);
    for (size_t i = 0; st == IL_OK && i < IL__WHY_OPS; i++) {
        if (a->ops[i].status != IL_OK && a->ops[i].status != IL_NOT_HELD)
            st = il__error_set(reterr, a->ops[i].status, "%s",
                               a->ops[i].out.detail != NULL ? a->ops[i].out.detail
                                                            : il_status_text(a->ops[i].status));
    }
    if (st == IL_OK)
        il__why_answer(a->key, a->ops, &a->why);
    return st;
}

static const char *
style(const struct answer *a, enum cli_style style)
{
    return a->styled ? il__cli_style(stdout, style) : "";
}

static void
add_line(struct il__buf *b, const char *name, const char *value)
{
    il__buf_addf(b, "  %-14s", name);
    il__cli_escape(b, value);
    il__buf_addc(b, '\n');
}

/* pid, host, command and whatever else the holder says about itself. */
static void
add_meta(struct il__buf *b, const char *meta)
{
    json_t     *value = il__cli_meta_json(meta);
    const char *name;
    json_t     *member;

    if (json_is_string(value))
        add_line(b, "meta", json_string_value(value));
    json_object_foreach(value, name, member)
    {
        char *text =
            json_is_string(member) ? NULL : json_dumps(member, JSON_ENCODE_ANY | JSON_COMPACT);
        add_line(b, name, text != NULL ? text : json_string_value(member));
        free(text);
    }
    json_decref(value);
}

/* What the state of the lease means for someone who wants the key. */
static void
add_outlook(struct answer *a, const il_lease_info *info)
{
    struct il__buf *b = &a->text;
    char            rest[CLI_AGE_BYTES];
    char            ttl[IL__DURATION_TEXT_BYTES];

    il__cli_age(info->remaining_ms, rest);
    if (info->state == IL_LEASE_CLOSING) {
        il__buf_addf(b,
                     "  It was broken or has expired. Its holder may still be working, so the key "
                     "stays closed\n  until the holder releases it, at most %s.\n",
                     rest);
        return;
    }
    if (info->state == IL_LEASE_OFFERED) {
        il__buf_addf(b,
                     "  It was offered to the first waiter, which has %s to accept it before it "
                     "goes to the next.\n",
                     rest);
        return;
    }
    il__buf_addf(b, "  If the holder died, %s in %s.\n",
                 info->mode == IL_MODE_EXCLUSIVE ? "the key is free" : "its lease ends", rest);
    if (il__cli_lease_is_late(info))
        il__buf_addf(b,
                     "  %sIt missed a renewal (ttl %s): the holder is probably dead, paused or "
                     "disconnected.%s\n",
                     style(a, CLI_YELLOW), il__duration_text(info->ttl_ms, ttl),
                     style(a, CLI_PLAIN));
}

/* Little is known about a foreign lock, and its renewals are not visible. */
static void
add_classic(struct il__buf *b, const il_lease_info *info)
{
    char rest[CLI_AGE_BYTES];

    il__buf_addc(b, '\n');
    add_line(b, "holder", info->holder);
    add_line(b, "mode", "a classic client's lock in Redis, exclusive");
    if (info->remaining_ms == IL_FOREVER)
        il__buf_addf(b, "  It has no expiry; if its client died, delete it by hand.\n");
    else
        il__buf_addf(b, "  If its client died, the key is free in %s.\n",
                     il__cli_age(info->remaining_ms, rest));
}

static void
add_lease(struct answer *a, const il_lease_info *info)
{
    struct il__buf *b = &a->text;
    char            text[128];
    char            age[CLI_AGE_BYTES];
    char            time[IL__TIME_TEXT_BYTES];
    char            mode[CLI_MODE_BYTES];
    char            ttl[IL__DURATION_TEXT_BYTES];

    if (il__cli_is_classic(info)) {
        add_classic(b, info);
        return;
    }
    il__buf_addc(b, '\n');
    add_line(b, "holder", info->holder);
    (void)snprintf(text, sizeof text, "%s ago, %s", il__cli_age(info->age_ms, age),
                   il__time_text(info->acquired_at_ms, time));
    add_line(b, "since", text);
    (void)snprintf(text, sizeof text, "%s ago, ttl %s", il__cli_age(info->renewed_ms, age),
                   il__duration_text(info->ttl_ms, ttl));
    add_line(b, "last renewed", text);
    add_line(b, "mode", il__cli_mode_text(info, mode));
    (void)snprintf(text, sizeof text, "%" PRIu64, info->fence);
    add_line(b, "fence", text);
    if (info->place[0] != '\0')
        add_line(b, "place", info->place);
    add_meta(b, info->meta);
    add_outlook(a, info);
}

static void
add_waiters(struct answer *a)
{
    static const char *const headers[] = {
        ">#", "HOLDER", "MODE", ">WAITING", ">GIVES UP IN", "WHO"
    };
    AUTO_GRID struct cli_grid g = { 0 };

    il__cli_grid_init(&g, headers, ARRAY_LEN(headers));
    g.elastic = 1; /* the holder */
    for (size_t i = 0; i < a->why.n_waiters; i++) {
        const il_lease_info *info = &a->why.waiters[i];
        char                 age[CLI_AGE_BYTES];
        char                 rest[CLI_AGE_BYTES];
        char                 mode[CLI_MODE_BYTES];
        char                 who[CLI_WHO_BYTES];
        il__cli_grid_add(&g, "%zu", i + 1);
        il__cli_grid_add(&g, "%s", info->holder);
        il__cli_grid_add(&g, "%s", il__cli_mode_text(info, mode));
        il__cli_grid_add(&g, "%s", il__cli_age(info->age_ms, age));
        il__cli_grid_add(&g, "%s",
                         info->remaining_ms == IL_FOREVER ? "never"
                                                          : il__cli_age(info->remaining_ms, rest));
        il__cli_grid_add(&g, "%s", il__cli_lease_who(info, who));
    }
    il__buf_addf(&a->text, "\n%zu waiting, first come first served:\n", a->why.n_waiters);
    il__cli_grid_text(&g, a->styled, &a->text);
}

/* "KEY is held", "KEY is held by 3", "KEY is held: 2 of 3 permits are taken" */
static void
add_headline(struct answer *a)
{
    struct il__buf *b  = &a->text;
    size_t          n  = a->why.n_leases;
    const char     *on = style(a, n == 0 ? CLI_GREEN : CLI_RED);

    il__cli_escape(b, a->key);
    il__buf_addf(b, " is %s%s%s", on, a->why.state, style(a, CLI_PLAIN));
    if (n > 0 && a->why.leases[0].mode == IL_MODE_PERMIT)
        il__buf_addf(b, ": %zu of %u permits %s taken", n, a->why.leases[0].permits,
                     n == 1 ? "is" : "are");
    else if (n > 1)
        il__buf_addf(b, " by %zu holders", n);
    il__buf_addc(b, '\n');
}

/* The answer of the next morning. */
static void
add_events(struct answer *a)
{
    struct il__buf *b = &a->text;

    if (a->why.n_events > 0)
        il__buf_addf(b, "\nHistory, newest first:\n");
    for (size_t i = 0; i < MIN(a->why.n_events, EVENTS_SHOWN); i++)
        il__cli_event_text(b, &a->why.events[i]);
    if (a->why.n_events > EVENTS_SHOWN) {
        il__buf_addf(b, "All %zu events:  interlock history ", a->why.n_events);
        il__cli_escape(b, a->key);
        il__buf_addc(b, '\n');
    }
}

static void
add_text(struct answer *a)
{
    struct il__buf *b = &a->text;

    add_headline(a);
    for (size_t i = 0; i < a->why.n_leases; i++)
        add_lease(a, &a->why.leases[i]);
    if (a->why.n_waiters > 0)
        add_waiters(a);
    add_events(a);
    if (a->why.n_leases > 0) {
        il__buf_addf(b, "\nTo wait for it:  interlock run --wait 5m ");
        il__cli_escape(b, a->key);
        il__buf_addf(b, " -- COMMAND\n");
    }
    if (a->why.n_leases > 0 && !il__cli_is_classic(&a->why.leases[0])) {
        il__buf_addf(b, "To break it:     interlock break ");
        il__cli_escape(b, a->key);
        il__buf_addf(b, " --reason TEXT\n");
    }
}

static void
release(struct answer *a)
{
    for (size_t i = 0; i < IL__WHY_OPS; i++)
        il_op_release(&a->ops[i]);
    il__buf_release(&a->text);
}

static int
print_text(struct answer *a)
{
    add_text(a);
    if (a->text.failed)
        return il__cli_fail_memory();
    (void)fputs(il__buf_str(&a->text), stdout); /* stdout remembers its errors */
    return 0;
}

char *
il__cli_why(struct cli *cli, const char *key, il_error *reterr)
{
    struct answer a    = { .key = key };
    char         *text = NULL;

    il__buf_init(&a.text, TEXT_BYTES_MAX);
    if (ask(cli, &a, reterr) == IL_OK) {
        add_text(&a);
        text = il__buf_take(&a.text);
        if (text == NULL)
            (void)il__error_nomem(reterr);
    }
    release(&a);
    return text;
}

int
il__cli_cmd_why(struct cli *cli)
{
    struct answer a = { .key = cli->args.operands[0], .styled = true };
    il_error      err;
    int           status;

    il__buf_init(&a.text, TEXT_BYTES_MAX);
    il_status st = ask(cli, &a, &err);
    if (st != IL_OK)
        status = il__cli_fail(&err);
    else
        status = cli->json ? il__cli_print_item(&il__wire_why, &a.why) : print_text(&a);
    if (st == IL_OK && cli->store_missing)
        il__cli_note(cli, "the store does not exist yet");
    release(&a);
    return status;
}
