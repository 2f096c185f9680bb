/*
 * state.c: the counters and the clock of a store, kept in the single row of il_state.
 *
 * Lease time = offset + CLOCK_BOOTTIME. Within one boot all processes add the same offset, so they
 * agree, and setting the wall clock changes nothing. After a reboot of the same machine, lease time
 * starts at the mark left by the last commit and runs from the moment of the boot: the key of a
 * holder killed by the reboot becomes free one TTL after it. On another machine, whose boot time is
 * unrelated, and whenever the sum is below the mark, lease time continues from the mark as of now.
 * In each case a lease is never shorter than promised, and no row has to be updated.
 */
#include <stdio.h>

#include "base/clock.h"
#include "store/sqlite/sqlite_internal.h"

#define DRAWS_MAX (UINT64_C(1) << 32) /* of one transaction, and more */

/* Do two boot ids name the same machine? (BOOT@MACHINE) */
static bool
same_machine(const char *a, const char *b)
{
    const char *machine_a = strchr(a, '@');
    const char *machine_b = strchr(b, '@');

    return machine_a != NULL && machine_b != NULL && strcmp(machine_a, machine_b) == 0;
}

/* The same kernel, whatever the machine id: containers may have their own. */
static bool
same_boot(const char *a, const char *b)
{
    size_t n = strcspn(a, "@");

    return strcmp(a, b) == 0 || (n > 0 && n == strcspn(b, "@") && memcmp(a, b, n) == 0);
}

/* Set the transaction's now, and choose a new offset if necessary. */
static void
read_clock(const il_clock *clock, struct sq_state *st)
{
    int64_t     boot_ms = il__clock_now_ms(clock);
    const char *boot_id = clock->boot_id(clock->cookie);

    if (!same_boot(st->boot_id, boot_id)) {
        st->offset_ms = same_machine(st->boot_id, boot_id) ? st->mark_ms : st->mark_ms - boot_ms;
        (void)snprintf(st->boot_id, sizeof st->boot_id, "%s", boot_id); /* fits */
    }
    if (st->offset_ms + boot_ms < st->mark_ms)
        st->offset_ms = st->mark_ms - boot_ms;
    st->now_ms  = st->offset_ms + boot_ms;
    st->wall_ms = clock->wall_ms(clock->cookie);
}

bool
il__sq_state_load(struct sq_conn *c, const il_clock *clock, struct sq_state *st)
{
    sqlite3_stmt *row = il__sq_use(c, SQ_state_load);

    if (il__sq_step(c, row) != SQLITE_ROW) {
        if (c->rc == SQLITE_OK)
            c->rc = SQLITE_CORRUPT; /* the row is missing */
        return false;
    }
    *st = (struct sq_state){
        .version     = sqlite3_column_int64(row, 0),
        .min_version = sqlite3_column_int64(row, 1),
        .fence       = (uint64_t)sqlite3_column_int64(row, 2),
        .ticket      = (uint64_t)sqlite3_column_int64(row, 3),
        .offset_ms   = sqlite3_column_int64(row, 5),
        .mark_ms     = sqlite3_column_int64(row, 6),
        .order_n     = sqlite3_column_int64(row, 7),
        .test_clock  = sqlite3_column_int64(row, 8) != 0,
        .seed        = (uint64_t)sqlite3_column_int64(row, 9),
        .ended_seq   = sqlite3_column_int64(row, 10),
    };
    (void)snprintf(st->boot_id, sizeof st->boot_id, "%s", il__sq_text(row, 4));
    read_clock(clock, st);
    if (!il__sq_stmt_run(c, row))
        return false;
    /* No one draws that many: it is damaged, and a transaction must not run out of numbers. */
    if (MAX(st->fence, st->ticket) >= IL__FENCE_END - DRAWS_MAX)
        return il__sq_corrupt(c);
    /* In every transaction, so that all numbers it draws are above the clock. A test clock stands
     * still: there only the counter decides. */
    if (!st->test_clock)
        st->fence = il__fence_floor(st->fence, il__clock_wall_us());
    return true;
}

bool
il__sq_state_save(struct sq_store *s)
{
    const struct sq_state *st   = &s->state;
    struct sq_conn        *c    = &s->conn;
    sqlite3_stmt          *stmt = il__sq_use(c, SQ_state_save);

    CHECK(st->fence < IL__FENCE_END);
    return il__sq_bind_int(c, stmt, 1, (int64_t)st->fence) &&
           il__sq_bind_int(c, stmt, 2, (int64_t)st->ticket) &&
           il__sq_bind_text(c, stmt, 3, st->boot_id) &&
           il__sq_bind_int(c, stmt, 4, st->offset_ms) && il__sq_bind_int(c, stmt, 5, st->now_ms) &&
           il__sq_bind_int(c, stmt, 6, st->order_n) && il__sq_bind_int(c, stmt, 7, st->ended_seq) &&
           il__sq_stmt_run(c, stmt);
}

bool
il__sq_state_create(struct sq_conn *c, const il_clock *clock, bool test_clock)
{
    sqlite3_stmt *stmt    = il__sq_use(c, SQ_state_create);
    int64_t       boot_ms = il__clock_now_ms(clock);
    int64_t       seed    = 0;

    /* The seed prevents attackers from crafting names with equal hashes; sqlite3_randomness() never
     * fails. */
    sqlite3_randomness((int)sizeof seed, &seed);
    /* Lease time starts equal to boot time: offset 0. Fences start at the wall clock, so that they
     * also grow when a store is deleted and created again. */
    return il__sq_bind_int(c, stmt, 1, il__sq_schema.version) &&
           il__sq_bind_int(c, stmt, 2, (int64_t)il__fence_floor(0, il__clock_wall_us())) &&
           il__sq_bind_text(c, stmt, 3, clock->boot_id(clock->cookie)) &&
           il__sq_bind_int(c, stmt, 4, 0) && il__sq_bind_int(c, stmt, 5, boot_ms) &&
           il__sq_bind_int(c, stmt, 6, test_clock) && il__sq_bind_int(c, stmt, 7, seed) &&
           il__sq_bind_int(c, stmt, 8, il__sq_schema.min_version) && il__sq_stmt_run(c, stmt);
}
