/*
 * lease.c: the state machine of leases, and the time comparisons that decide their fate.
 */
#include "core/lease.h"

#include "base/clock.h"
#include "core/limits.h"
#include "core/names.h"

static const unsigned char next_state[IL_LEASE_STATE_COUNT][IL__LEASE_EVENT_COUNT] = {
#define X(from, event, to, why) [IL_LEASE_##from][IL__EV_##event] = IL_LEASE_##to,
#include "core/lease_edges.def"
#undef X
};

_Static_assert(IL_LEASE_NONE == 0, "transitions that are not in the table are invalid");

il_lease_state
il__lease_step(il_lease_state from, enum il__lease_event event)
{
    CHECK((unsigned)from < IL_LEASE_STATE_COUNT);
    CHECK((unsigned)event < IL__LEASE_EVENT_COUNT);
    return (il_lease_state)next_state[from][event];
}

const char *const il__lease_state_names[IL_LEASE_STATE_COUNT + 1] = {
    [IL_LEASE_NONE] = "none",       [IL_LEASE_WAITING] = "waiting",
    [IL_LEASE_OFFERED] = "offered", [IL_LEASE_HELD] = "held",
    [IL_LEASE_CLOSING] = "closing", [IL_LEASE_RELEASED] = "released",
    [IL_LEASE_EXPIRED] = "expired", [IL_LEASE_BROKEN] = "broken",
};

const char *
il_lease_state_name(il_lease_state state)
{
    return (unsigned)state < IL_LEASE_STATE_COUNT ? il__lease_state_names[state] : "unknown";
}

bool
il__lease_ended(il_lease_state state)
{
    return state == IL_LEASE_RELEASED || state == IL_LEASE_EXPIRED || state == IL_LEASE_BROKEN;
}

bool
il__lease_due(int64_t expires_ms, int64_t now_ms)
{
#ifdef IL_MUTANT_expiry_reversed
    return now_ms <= expires_ms;
#else
    return now_ms >= expires_ms;
#endif
}

bool
il__lease_view(int64_t now_ms, int64_t settle_ms, il_lease_state *state, int64_t *expires_ms)
{
    if (!il__lease_due(*expires_ms, now_ms))
        return true;
    il_lease_state settled = il__lease_step(*state, IL__EV_SETTLE);
    if (settle_ms == 0 || settled == IL_LEASE_NONE)
        return false;
    *state = settled;
    *expires_ms += settle_ms;
    return !il__lease_due(*expires_ms, now_ms);
}

bool
il__lease_lasts(int64_t now_ms, int64_t settle_ms, il_lease_state state, int64_t expires_ms)
{
    return il__lease_view(now_ms, settle_ms, &state, &expires_ms) && state != IL_LEASE_CLOSING;
}

int64_t
il__offer_expires_ms(int64_t now_ms, int64_t ttl_ms)
{
    return now_ms + MIN(ttl_ms, IL__OFFER_MS);
}

int64_t
il__wait_deadline_ms(int64_t now_ms, int64_t wait_ms)
{
    return wait_ms == IL_FOREVER || wait_ms > IL__WAIT_MS_MAX ? IL__NEVER : now_ms + wait_ms;
}

int64_t
il__lease_local_deadline_ns(int64_t sent_ns, int64_t ttl_ms)
{
    int64_t margin_ms = MIN(MAX(ttl_ms / 20, 20), 1000);

    CHECK(ttl_ms > margin_ms);
    return sent_ns + (ttl_ms - margin_ms) * IL__NS_PER_MS;
}
