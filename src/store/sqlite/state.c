/*
 * state.c: the counters and the clock of a store, kept in the one row of il_state.
 *
 * Lease time = offset + CLOCK_BOOTTIME. Within one boot all processes add the same offset, so they agree, and
 * setting the wall clock changes nothing. After a reboot of the same machine time goes on from the mark that the
 * last commit left, and has run since the boot: a holder that the reboot killed frees its key a TTL after it.
 * On another machine, whose boot time means nothing here, and when the sum lies below the mark, time goes
 * on from the mark now. In each case a lease is never shorter than promised, and no row has to be touched.
 */
#include <stdio.h>

#include "base/clock.h"
#include "store/sqlite/sqlite_internal.h"

/* Do two boot ids name the same machine? (BOOT@MACHINE) */
static bool
same_machine(const char *a, const char *b)
{
    const char *machine_a = strchr(a, '@');
    const char *machine_b = strchr(b, '@');

    return machine_a != NULL && machine_b != NULL && strcmp(machine_a, machine_b) == 0;
}

/* One kernel, whatever the machine is called: containers may have a machine id of their own. */
static bool
same_boot(const char *a, const char *b)
{
    size_t n = strcspn(a, "@");

    return strcmp(a, b) == 0 || (n > 0 && n == strcspn(b, "@") && memcmp(a, b, n) == 0);
}

/* Set the transaction's now, and the offset if it has to be chosen anew. */
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
    if (!il__sq_run(c, row))
        return false;
    if (st->fence >= IL__FENCE_END || st->ticket >= IL__FENCE_END)
        return il__sq_corrupt(c);
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
           il__sq_bind_text(c, stmt, 3, st->boot_id) && il__sq_bind_int(c, stmt, 4, st->offset_ms) &&
           il__sq_bind_int(c, stmt, 5, st->now_ms) && il__sq_bind_int(c, stmt, 6, st->order_n) &&
           il__sq_bind_int(c, stmt, 7, st->ended_seq) && il__sq_run(c, stmt);
}

bool
il__sq_state_create(struct sq_conn *c, const il_clock *clock, bool test_clock)
{
    sqlite3_stmt *stmt    = il__sq_use(c, SQ_state_create);
    int64_t       boot_ms = il__clock_now_ms(clock);
    int64_t       seed    = 0;

    /* The seed keeps others from preparing names with equal hashes; sqlite3_randomness() never fails. */
    sqlite3_randomness((int)sizeof seed, &seed);
    /* Lease time begins where boot time is: offset 0. Fences begin at the wall clock's microseconds, so
     * that they also grow when a store is deleted and made again. */
    return il__sq_bind_int(c, stmt, 1, SQ_SCHEMA_VERSION) &&
           il__sq_bind_int(c, stmt, 2, il__clock_wall_us()) &&
           il__sq_bind_text(c, stmt, 3, clock->boot_id(clock->cookie)) &&
           il__sq_bind_int(c, stmt, 4, 0) && il__sq_bind_int(c, stmt, 5, boot_ms) &&
           il__sq_bind_int(c, stmt, 6, test_clock) && il__sq_bind_int(c, stmt, 7, seed) &&
           il__sq_bind_int(c, stmt, 8, SQ_SCHEMA_MIN_VERSION) && il__sq_run(c, stmt);
}
