/*
 * lease.c: the state machine of a lease, and the time comparisons.
 */
#include "core/lease.h"

#include "core/limits.h"
#include "harness/unit.h"

static const struct {
    il_lease_state       from;
    enum il__lease_event event;
    il_lease_state       to;
    const char          *name, *why;
} edges[] = {
#define X(from, event, to, why) { IL_LEASE_##from, IL__EV_##event, IL_LEASE_##to, #event, why },
#include "core/lease_edges.def"
#undef X
};

U_TEST(every_state_is_reachable)
{
    bool reached[IL_LEASE_STATE_COUNT] = { [IL_LEASE_NONE] = true };

    for (size_t round = 0; round < IL_LEASE_STATE_COUNT; round++) {
        for (size_t i = 0; i < ARRAY_LEN(edges); i++) {
            if (reached[edges[i].from])
                reached[edges[i].to] = true;
        }
    }
    for (unsigned s = 0; s < IL_LEASE_STATE_COUNT; s++) {
        if (!reached[s])
            T_FAIL("%s cannot be reached", il_lease_state_name((il_lease_state)s));
    }
}

U_TEST(ended_states_have_no_exits)
{
    for (size_t i = 0; i < ARRAY_LEN(edges); i++) {
        if (il__lease_ended(edges[i].from))
            T_FAIL("an edge leaves %s", il_lease_state_name(edges[i].from));
        T_TRUE(edges[i].why != NULL && edges[i].why[0] != '\0');
    }
    for (unsigned s = 0; s < IL_LEASE_STATE_COUNT; s++) {
        for (unsigned e = 0; il__lease_ended((il_lease_state)s) && e < IL__LEASE_EVENT_COUNT; e++)
            T_EQ(il__lease_step((il_lease_state)s, (enum il__lease_event)e), IL_LEASE_NONE);
    }
    T_TRUE(il__lease_ended(IL_LEASE_RELEASED) && il__lease_ended(IL_LEASE_EXPIRED));
    T_TRUE(il__lease_ended(IL_LEASE_BROKEN) && !il__lease_ended(IL_LEASE_CLOSING));
    T_TRUE(!il__lease_ended(IL_LEASE_NONE) && !il__lease_ended(IL_LEASE_WAITING));
}

/* From every live state there is a way to an end. */
U_TEST(every_live_state_can_end)
{
    bool ends[IL_LEASE_STATE_COUNT] = { false };

    for (size_t round = 0; round < IL_LEASE_STATE_COUNT; round++) {
        for (size_t i = 0; i < ARRAY_LEN(edges); i++) {
            if (ends[edges[i].to] || il__lease_ended(edges[i].to))
                ends[edges[i].from] = true;
        }
    }
    for (unsigned s = 0; s < IL_LEASE_STATE_COUNT; s++)
        T_TRUE(ends[s] || il__lease_ended((il_lease_state)s));
}

U_TEST(one_edge_per_state_and_event)
{
    for (size_t i = 0; i < ARRAY_LEN(edges); i++) {
        T_EQ(il__lease_step(edges[i].from, edges[i].event), edges[i].to);
        T_TRUE((unsigned)edges[i].event < IL__LEASE_EVENT_COUNT);
        for (size_t j = i + 1; j < ARRAY_LEN(edges); j++) {
            if (edges[i].from == edges[j].from && edges[i].event == edges[j].event)
                T_FAIL("two edges leave %s on %s", il_lease_state_name(edges[i].from),
                       edges[i].name);
        }
    }
}

U_TEST(what_must_never_happen)
{
    /* A lease is confirmed or renewed only by who could have worked with it. */
    T_EQ(il__lease_step(IL_LEASE_CLOSING, IL__EV_RENEW), IL_LEASE_NONE);
    T_EQ(il__lease_step(IL_LEASE_OFFERED, IL__EV_RENEW), IL_LEASE_NONE);
    T_EQ(il__lease_step(IL_LEASE_HELD, IL__EV_CONFIRM), IL_LEASE_NONE);
    T_EQ(il__lease_step(IL_LEASE_WAITING, IL__EV_CONFIRM), IL_LEASE_NONE);
    T_EQ(il__lease_step(IL_LEASE_WAITING, IL__EV_GRANT), IL_LEASE_NONE); /* only by an offer */
    T_EQ(il__lease_step(IL_LEASE_OFFERED, IL__EV_SETTLE), IL_LEASE_NONE);
    T_EQ(il__lease_step(IL_LEASE_HELD, IL__EV_GRANT), IL_LEASE_NONE);
}

U_TEST(names)
{
    for (unsigned s = 0; s < IL_LEASE_STATE_COUNT; s++)
        T_TRUE(il_lease_state_name((il_lease_state)s)[0] != '\0');
    T_STREQ(il_lease_state_name(IL_LEASE_STATE_COUNT), "unknown");
    T_STREQ(il_lease_state_name((il_lease_state)-1), "unknown");
}

U_TEST(expiry_is_strict)
{
    T_EQ(il__lease_due(100, 99), false);
    T_EQ(il__lease_due(100, 100), true);
    T_EQ(il__lease_due(100, 101), true);
    T_EQ(il__lease_due(IL__NEVER, INT64_MAX - 1), false);
}

U_TEST(an_offer_is_short)
{
    T_EQ(il__offer_expires_ms(1000, 1000), 2000);
    T_EQ(il__offer_expires_ms(1000, 2000), 3000);
    T_EQ(il__offer_expires_ms(1000, IL_TTL_MS_MAX), 3000);
}

U_TEST(the_local_deadline_is_before_the_expiry)
{
    static const struct {
        int64_t ttl_ms;
        int64_t margin_ms;
    } rows[] = {
        { 1000, 50 }, { 2000, 100 }, { 20000, 1000 }, { 30000, 1000 }, { IL_TTL_MS_MAX, 1000 }
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        T_EQ(il__lease_local_deadline_ns(5, rows[i].ttl_ms),
             5 + (rows[i].ttl_ms - rows[i].margin_ms) * INT64_C(1000000));
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        U_ROW(every_state_is_reachable),
        U_ROW(ended_states_have_no_exits),
        U_ROW(every_live_state_can_end),
        U_ROW(one_edge_per_state_and_event),
        U_ROW(what_must_never_happen),
        U_ROW(names),
        U_ROW(expiry_is_strict),
        U_ROW(an_offer_is_short),
        U_ROW(the_local_deadline_is_before_the_expiry),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
