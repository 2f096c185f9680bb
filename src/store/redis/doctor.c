/*
 * doctor.c: the findings of `interlock doctor` about a Redis store: how the server's settings
 * weaken our guarantees.
 */
#include <inttypes.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/parse.h"
#include "store/redis/redis_internal.h"

#define SKEW_MS 1000
#define VALUE_BYTES 96

struct report {
    struct il__report to;
    const char       *info;
    char              appendfsync[16], save[64], maxmemory[24];
};

static void
tell_server(const struct report *r)
{
    char version[VALUE_BYTES], role[VALUE_BYTES], replicas[VALUE_BYTES];

    il__redis_info(r->info, "redis_version", version, sizeof version);
    il__redis_info(r->info, "role", role, sizeof role);
    il__redis_info(r->info, "connected_slaves", replicas, sizeof replicas);
    il__tell(&r->to, IL__FINDING_GOOD, "redis_version", version,
             "supports function libraries (7.0 or newer)");
    if (strcmp(role, "master") != 0)
        il__tell(&r->to, IL__FINDING_BAD, "role", role,
                 "nothing can be granted here: connect to the master");
    else if (strcmp(replicas, "0") == 0)
        il__tell(&r->to, IL__FINDING_GOOD, "role", "master, no replicas",
                 "a single server; no replica can be promoted");
    else
        il__tell(
            &r->to, IL__FINDING_NOTE, "role", "master with replicas",
            "replication is asynchronous: a promoted replica may lack the latest leases. Nothing "
            "is granted for max_ttl afterwards and fences keep increasing, but check fences at "
            "the resource");
}

static void
tell_memory(const struct report *r)
{
    char policy[VALUE_BYTES];

    il__redis_info(r->info, "maxmemory_policy", policy, sizeof policy);
    bool keeps = strcmp(policy, "noeviction") == 0;
    il__tell(&r->to, keeps ? IL__FINDING_GOOD : IL__FINDING_BAD, "maxmemory-policy", policy,
             keeps ? "acknowledged data is never evicted"
                   : "a full server evicts locks, waiters and jobs: set it to noeviction");
    if (r->maxmemory[0] == '\0')
        return;
    bool limited = strcmp(r->maxmemory, "0") != 0;
    il__tell(
        &r->to, limited ? IL__FINDING_GOOD : IL__FINDING_NOTE, "maxmemory", r->maxmemory,
        limited
            ? "when it is reached, nothing new is accepted; release, renew and finish still work"
            : "no limit: if the machine runs out of memory, the system may kill the server");
}

static void
tell_durability(const struct report *r)
{
    char on[VALUE_BYTES];

    il__redis_info(r->info, "aof_enabled", on, sizeof on);
    bool aof = strcmp(on, "1") == 0;
    if (!aof) {
        il__tell(
            &r->to, IL__FINDING_WARN, "appendonly", "no",
            r->save[0] != '\0'
                ? "a crash loses everything since the last snapshot, including acknowledged jobs; "
                  "after a restart nothing is granted for max_ttl"
                : "a restart loses everything, including acknowledged jobs; afterwards nothing is "
                  "granted for max_ttl");
        return;
    }
    if (r->appendfsync[0] == '\0') {
        il__tell(&r->to, IL__FINDING_NOTE, "appendfsync", "unknown",
                 "CONFIG GET is not allowed: every restart is treated as a loss of data");
        return;
    }
    bool always = strcmp(r->appendfsync, "always") == 0;
    il__tell(&r->to, always ? IL__FINDING_GOOD : IL__FINDING_WARN, "appendfsync", r->appendfsync,
             always
                 ? "acknowledged data survives a crash, and a restarted server continues at once"
                 : "a crash of the machine can lose the last second, including acknowledged jobs; "
                   "after a restart nothing is granted for max_ttl");
}

/* The i-th string of an array; "" if it is not one: a proxy between us and the server may reply
 * anything. */
static const char *
text_at(const redisReply *r, size_t i)
{
    bool is_text = r->type == REDIS_REPLY_ARRAY && i < r->elements &&
                   r->element[i]->type == REDIS_REPLY_STRING;

    return is_text ? r->element[i]->str : "";
}

/* The server's clock against this machine's. */
static void
tell_clock(const struct report *r, const redisReply *time)
{
    char     value[VALUE_BYTES];
    uint64_t seconds, micros;

    if (!il__parse_u64(text_at(time, 0), UINT32_MAX, &seconds) ||
        !il__parse_u64(text_at(time, 1), 999999, &micros))
        return;
    int64_t skew_ms = (int64_t)(seconds * 1000 + micros / 1000) - il__clock_wall_ms();
    bool    far     = skew_ms > SKEW_MS || skew_ms < -SKEW_MS;
    (void)snprintf(value, sizeof value, "%+" PRId64 " ms", skew_ms);
    il__tell(
        &r->to, far ? IL__FINDING_NOTE : IL__FINDING_GOOD, "clock", value,
        far ? "differs from this machine's; displayed times, run_at and schedules use the server's"
            : "agrees with this machine's");
}

static void
tell_store(const struct redis_store *s, const struct report *r, const redisReply *row)
{
    char        value[VALUE_BYTES];
    const char *why = text_at(row, 1);
    uint64_t    until, max_ttl_ms;

    /* The longest that any client has reported counts for the store. */
    if (!il__parse_u64(text_at(row, 2), INT64_MAX, &max_ttl_ms))
        max_ttl_ms = (uint64_t)s->url.max_ttl_ms;
    (void)snprintf(value, sizeof value, "%" PRIu64 " s", max_ttl_ms / 1000);
    il__tell(&r->to, IL__FINDING_NOTE, "max_ttl", value,
             "maximum lease; after a promotion or a restart that may have lost data, nothing is "
             "granted for this long");
    il__tell(&r->to, IL__FINDING_NOTE, "classic", s->url.classic ? "yes" : "no",
             s->url.classic
                 ? "locks of clients that use SET key NX PX are respected on this server; "
                   "their release is noticed by polling"
                 : "locks of clients that use SET key NX PX are ignored");
    if (!s->test_clock && il__parse_u64(text_at(row, 0), INT64_MAX, &until) &&
        (int64_t)until > il__clock_wall_ms()) {
        (void)snprintf(value, sizeof value, "for %" PRId64 " s more",
                       ((int64_t)until - il__clock_wall_ms()) / 1000);
        il__tell(&r->to, IL__FINDING_WARN, "closed", value,
                 why[0] != '\0' ? why : "the server has changed");
    }
}

/* Whether changes by others are noticed at once. */
static void
tell_wakes(struct redis_store *s, const struct report *r, int64_t deadline_ns)
{
    char means[256];

    (void)snprintf(means, sizeof means,
                   "not permitted to SUBSCRIBE to the store's channel, so waiters poll every half "
                   "second. Allow it: ACL SETUSER USER +subscribe +publish '&%s:wake'",
                   s->url.tag);
    il__redis_listen_await(s, deadline_ns);
    if (atomic_load(&s->listener.n_refused) > 0)
        il__tell(&r->to, IL__FINDING_WARN, "wake-ups", "refused", means);
    else if (atomic_load(&s->listener.hears))
        il__tell(&r->to, IL__FINDING_GOOD, "wake-ups", "working", "waiters are notified at once");
}

static void
read_settings(struct report *r, const redisReply *config)
{
    struct {
        const char *name;
        char       *to;
        size_t      n_bytes;
    } fields[] = {
        { "appendfsync", r->appendfsync, sizeof r->appendfsync },
        { "save", r->save, sizeof r->save },
        { "maxmemory", r->maxmemory, sizeof r->maxmemory },
    };

    for (size_t i = 0; config->type == REDIS_REPLY_ARRAY && i < config->elements; i += 2) {
        for (size_t k = 0; k < ARRAY_LEN(fields); k++) {
            if (strcmp(text_at(config, i), fields[k].name) == 0)
                (void)snprintf(fields[k].to, fields[k].n_bytes, "%s", text_at(config, i + 1));
        }
    }
}

/* On the read connection, whose mutex is held. */
static il_status
report_on(struct redis_store *s, struct report *r, il_error *reterr)
{
    struct redis_conn     *c           = &s->reader;
    int64_t                deadline_ns = il__clock_boot_ns() + s->timeout_ms * IL__NS_PER_MS;
    AUTO_REPLY redisReply *info        = NULL;
    AUTO_REPLY redisReply *config      = NULL;
    AUTO_REPLY redisReply *time        = NULL;
    AUTO_REPLY redisReply *row         = NULL;
    redisReply           **replies[]   = { &info, &config, &time, &row };
    char                   key[REDIS_PREFIX_BYTES_MAX + 16];

    (void)snprintf(key, sizeof key, "%s:store", s->url.tag);
    il_status st = il__redis_connect(s, c, deadline_ns, reterr);
    if (st != IL_OK)
        return st;
    il__redis_say(c, "INFO");
    il__redis_say(c, "CONFIG", "GET", "appendfsync", "save", "maxmemory");
    il__redis_say(c, "TIME");
    il__redis_say(c, "HMGET", key, "closed", "why", "max_ttl");
    st = il__redis_send(c, deadline_ns, reterr);
    for (size_t i = 0; st == IL_OK && i < ARRAY_LEN(replies); i++)
        st = il__redis_recv(c, deadline_ns, replies[i], reterr);
    if (st != IL_OK)
        return st;
    if (info->type != REDIS_REPLY_STRING)
        return il__error_set(reterr, IL_STORE, "%s: the server does not reply to INFO",
                             s->url.shown);
    r->info = info->str;
    read_settings(r, config);
    tell_server(r);
    tell_memory(r);
    tell_durability(r);
    tell_clock(r, time);
    tell_store(s, r, row);
    tell_wakes(s, r, deadline_ns);
    return IL_OK;
}

il_status
il__redis_report(struct remote_store *remote, const char *table, il__report_fn *each, void *cookie,
                 il_error *reterr)
{
    struct redis_store *s = container_of(remote, struct redis_store, remote);
    struct report       r = { .to = { each, cookie } };

    if (table != NULL)
        return il__error_set(reterr, IL_INVAL,
                             "%s: a redis: store has no user tables to check; use --connection",
                             s->url.shown);
    il__mutex_lock(&s->reader_mutex);
    il_status st = report_on(s, &r, reterr);
    il__mutex_unlock(&s->reader_mutex);
    return st;
}
