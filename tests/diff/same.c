/*
 * same.c: compares results, struct by struct. Every field of every struct is in a table; its
 * meaning determines how it is compared.
 */
#include "diff/same.h"

#include <inttypes.h>
#include <stdarg.h>

bool
same_differ(struct same *s, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(s->why, WHY_BYTES, fmt, ap);
    va_end(ap);
    return false;
}

/* ---- numbers that the engines draw ----------------------------------------------------------- */

/* Is the pair known as a pair, or new on both sides (then it is from now on)? */
static bool
same_number(struct known *known, size_t *n, uint64_t a, uint64_t b, const struct known *names)
{
    if ((a == 0) != (b == 0))
        return false;
    if (a == 0)
        return true;
    for (size_t i = *n; i-- > 0;) {
        if (known[i].real[0] != a && known[i].real[1] != b)
            continue;
        if (known[i].family == IL__FAMILY_LOCK && names->id != NULL) {
            known[i].family = names->family; /* an offer that turns out to be a run's */
            known[i].id     = names->id;
        }
        return known[i].real[0] == a && known[i].real[1] == b;
    }
    if (*n < KNOWN_MAX) {
        known[*n]         = *names;
        known[*n].real[0] = a;
        known[*n].real[1] = b;
        (*n)++;
    }
    return true;
}

static const char *
lasting(const char *name)
{
    return name != NULL ? t_name(name) : NULL;
}

const struct known *
same_known(const struct same *s, enum il__family family, unsigned i)
{
    const struct known *last = NULL;

    for (size_t k = s->n_fences; k-- > 0;) {
        const struct known *it = &s->fences[k];
        bool                fits =
            it->family == family || (family == IL__FAMILY_LOCK && it->family == IL__FAMILY_RUN);
        if (!fits)
            continue;
        last = it;
        if (i-- == 0)
            break;
    }
    return last;
}

/* ---- tables ---------------------------------------------------------------------------------- */

enum field_kind {
    TEXT,   /* const char * */
    BYTES,  /* const void *, and behind it its size_t */
    WORD,   /* 32 bits, or an enum */
    NUMBER, /* 64 bits */
    FENCE,
    TICKET,
    REMAINS, /* a time to something that is worth waiting for */
    DATE,    /* the same on the wall clock */
};

struct field {
    const char     *name;
    enum field_kind kind;
    size_t          offset;
};

#define F(type, kind, name)               \
    {                                     \
#name, kind, offsetof(type, name) \
    }

#define L(kind, name) F(il_lease_info, kind, name)
static const struct field lease_fields[] = {
    L(TEXT, tenant),
    L(TEXT, key),
    L(TEXT, holder),
    L(TEXT, meta),
    L(TEXT, place),
    L(TEXT, reason),
    L(FENCE, fence),
    L(TICKET, ticket),
    L(WORD, mode),
    L(WORD, permits),
    L(WORD, state),
    L(WORD, n_waiters),
    L(NUMBER, ttl_ms),
    L(NUMBER, age_ms),
    L(REMAINS, remaining_ms),
    L(NUMBER, renewed_ms),
    L(NUMBER, acquired_at_ms),
    L(NUMBER, expires_at_ms),
};

#define R(kind, name) F(il_run_info, kind, name)
static const struct field run_fields[] = {
    R(TEXT, tenant),
    R(TEXT, id),
    R(TEXT, key),
    R(TEXT, holder),
    R(TEXT, trigger),
    R(TEXT, by),
    R(TEXT, meta),
    R(TEXT, stage),
    R(TEXT, error),
    R(WORD, state),
    R(WORD, cancelled),
    R(WORD, n_joined),
    R(WORD, progress),
    R(WORD, position),
    R(FENCE, fence),
    R(TICKET, seq),
    R(NUMBER, log_bytes),
    R(NUMBER, ttl_ms),
    R(REMAINS, remaining_ms),
    R(NUMBER, created_at_ms),
    R(NUMBER, started_at_ms),
    R(NUMBER, ended_at_ms),
    R(NUMBER, updated_at_ms),
};

#define J(kind, name) F(il_job_info, kind, name)
static const struct field job_fields[] = {
    J(TEXT, tenant),
    J(TEXT, queue),
    J(TEXT, id),
    J(TEXT, parent),
    J(TEXT, group),
    J(TEXT, unique_key),
    J(TEXT, worker),
    J(TEXT, error),
    J(TEXT, message),
    J(BYTES, payload),
    J(BYTES, result),
    J(WORD, state),
    J(WORD, priority),
    J(WORD, attempt),
    J(WORD, max_attempts),
    J(WORD, progress),
    J(WORD, cancelled),
    J(WORD, is_parent),
    J(WORD, n_children),
    J(WORD, n_children_completed),
    J(WORD, n_children_failed),
    J(FENCE, token),
    J(TICKET, seq),
    J(REMAINS, remaining_ms),
    J(DATE, run_at_ms),
    J(NUMBER, created_at_ms),
    J(NUMBER, started_at_ms),
    J(NUMBER, updated_at_ms),
    J(NUMBER, completed_at_ms),
};

#define Q(kind, name) F(il_queue_info, kind, name)
static const struct field queue_fields[] = {
    Q(TEXT, tenant),
    Q(TEXT, name),
    Q(TEXT, reason),
    Q(WORD, paused),
    Q(WORD, n_workers),
    Q(WORD, opts.strategy),
    Q(WORD, opts.max_attempts),
    Q(NUMBER, opts.lease_ms),
    Q(NUMBER, opts.backoff_ms),
    Q(NUMBER, opts.backoff_max_ms),
    Q(WORD, opts.group_limit),
    Q(WORD, opts.rate_n),
    Q(NUMBER, opts.rate_ms),
    Q(NUMBER, opts.keep_ms),
    Q(NUMBER, opts.keep_failed_ms),
    Q(NUMBER, opts.processing_timeout_ms),
    Q(NUMBER, opts.executing_timeout_ms),
    Q(NUMBER, n_scheduled),
    Q(NUMBER, n_ready),
    Q(NUMBER, n_running),
    Q(NUMBER, n_failed),
    Q(NUMBER, oldest_ms),
    Q(NUMBER, pushed),
    Q(NUMBER, claimed),
    Q(NUMBER, completed),
    Q(NUMBER, failed_attempts),
    Q(NUMBER, failed),
    Q(NUMBER, snoozed),
    Q(NUMBER, cancelled),
    Q(NUMBER, recovered),
    Q(NUMBER, duplicates),
    Q(NUMBER, stale),
};

#define C(kind, name) F(il_cron_info, kind, name)
static const struct field cron_fields[] = {
    C(TEXT, tenant),    C(TEXT, name),       C(TEXT, queue),        C(TEXT, schedule),
    C(BYTES, payload),  C(WORD, missed),     C(WORD, priority),     C(WORD, max_attempts),
    C(NUMBER, n_ticks), C(DATE, next_at_ms), C(NUMBER, last_at_ms),
};

#define E(kind, name) F(il_edge_info, kind, name)
static const struct field edge_fields[] = {
    E(TEXT, tenant),     E(TEXT, from),     E(TEXT, to),
    E(TEXT, from_place), E(TEXT, to_place), E(WORD, flags),
};

#define S(name) F(il_sweep_out, WORD, name)
static const struct field sweep_fields[] = {
    S(n_expired), S(n_offered), S(n_dropped), S(n_deadlocks),
    S(n_runs),    S(n_jobs),    S(n_ticks),   S(n_purged),
};

/* ---- fields ---------------------------------------------------------------------------------- */

struct pair { /* two structs that should say the same */
    const char  *what;
    const char  *name;
    const void  *a;
    const void  *b;
    struct known names; /* of the numbers in them */
};

static const void *
at(const void *base, size_t offset)
{
    return (const char *)base + offset;
}

static bool
same_text(struct same *s, const struct pair *p, const struct field *f)
{
    const char *a = *(const char *const *)at(p->a, f->offset);
    const char *b = *(const char *const *)at(p->b, f->offset);

    if (a == NULL || b == NULL)
        return same_differ(s, "%s '%s': %s is NULL", p->what, p->name, f->name);
    if (strcmp(a, b) != 0)
        return same_differ(s, "%s '%s': %s '%.200s' and '%.200s'", p->what, p->name, f->name, a, b);
    return true;
}

static bool
same_bytes(struct same *s, const struct pair *p, const struct field *f)
{
    const void *a   = *(const void *const *)at(p->a, f->offset);
    const void *b   = *(const void *const *)at(p->b, f->offset);
    size_t      n_a = *(const size_t *)at(p->a, f->offset + sizeof a);
    size_t      n_b = *(const size_t *)at(p->b, f->offset + sizeof b);

    if (n_a != n_b)
        return same_differ(s, "%s '%s': %zu and %zu bytes of %s", p->what, p->name, n_a, n_b,
                           f->name);
    if ((a == NULL) != (b == NULL))
        return same_differ(s, "%s '%s': %s is NULL in one", p->what, p->name, f->name);
    if (n_a > 0 && a != NULL && memcmp(a, b, n_a) != 0)
        return same_differ(s, "%s '%s': other %s of %zu bytes", p->what, p->name, f->name, n_a);
    return true;
}

/* Remember that something is due in so many ms. */
static void
learn_date(struct same *s, int64_t in_ms)
{
    if (in_ms > 0 && in_ms < INT64_C(2) * 86400000)
        s->dates[s->n_dates++ % DATES_MAX] = s->now_ms + in_ms;
}

static bool
same_int(struct same *s, const struct pair *p, const struct field *f)
{
    int64_t a, b;

    if (f->kind == WORD) {
        a = *(const int32_t *)at(p->a, f->offset);
        b = *(const int32_t *)at(p->b, f->offset);
    } else {
        a = *(const int64_t *)at(p->a, f->offset);
        b = *(const int64_t *)at(p->b, f->offset);
    }
    if (f->kind == FENCE || f->kind == TICKET) {
        bool same =
            f->kind == FENCE
                ? same_number(s->fences, &s->n_fences, (uint64_t)a, (uint64_t)b, &p->names)
                : same_number(s->tickets, &s->n_tickets, (uint64_t)a, (uint64_t)b, &p->names);
        return same || same_differ(s, "%s '%s': another %s", p->what, p->name, f->name);
    }
    if (a != b)
        return same_differ(s, "%s '%s': %s %" PRId64 " and %" PRId64, p->what, p->name, f->name, a,
                           b);
    if (f->kind == REMAINS)
        learn_date(s, a);
    if (f->kind == DATE)
        learn_date(s, a - s->wall_ms);
    return true;
}

static bool
same_struct(struct same *s, const struct field *fields, size_t n, const struct pair *p)
{
    for (size_t i = 0; i < n; i++) {
        bool same = fields[i].kind == TEXT    ? same_text(s, p, &fields[i])
                    : fields[i].kind == BYTES ? same_bytes(s, p, &fields[i])
                                              : same_int(s, p, &fields[i]);
        if (!same)
            return false;
    }
    return true;
}

#define SAME_STRUCT(s, fields, pair) same_struct(s, fields, ARRAY_LEN(fields), pair)

/* ---- results --------------------------------------------------------------------------------- */

static bool
same_leases(struct same *s, const il_op_out *a, const il_op_out *b)
{
    for (size_t i = 0; i < a->n_items; i++) {
        const il_lease_info *it = &a->items[i];
        struct pair          p  = { "lease",
                                    it->key,
                                    it,
                                    &b->items[i],
                                    { .family = IL__FAMILY_LOCK,
                                      .tenant = lasting(it->tenant),
                                      .key    = lasting(it->key),
                                      .holder = lasting(it->holder) } };
        if (!SAME_STRUCT(s, lease_fields, &p))
            return false;
    }
    return true;
}

static bool
same_runs(struct same *s, const il_op_out *a, const il_op_out *b)
{
    for (size_t i = 0; i < a->n_runs; i++) {
        const il_run_info *it = &a->runs[i];
        struct pair        p  = { "run",
                                  it->id,
                                  it,
                                  &b->runs[i],
                                  { .family = IL__FAMILY_RUN,
                                    .tenant = lasting(it->tenant),
                                    .key    = lasting(it->key),
                                    .holder = lasting(it->holder),
                                    .id     = lasting(it->id) } };
        if (!SAME_STRUCT(s, run_fields, &p))
            return false;
    }
    return true;
}

static bool
same_jobs(struct same *s, const il_op_out *a, const il_op_out *b)
{
    for (size_t i = 0; i < a->n_jobs; i++) {
        const il_job_info *it = &a->jobs[i];
        struct pair        p  = { "job",
                                  it->id,
                                  it,
                                  &b->jobs[i],
                                  { .family = IL__FAMILY_QUEUE,
                                    .tenant = lasting(it->tenant),
                                    .key    = lasting(it->queue),
                                    .holder = lasting(it->worker),
                                    .id     = lasting(it->id) } };
        if (!SAME_STRUCT(s, job_fields, &p))
            return false;
    }
    return true;
}

static bool
same_queues(struct same *s, const il_op_out *a, const il_op_out *b)
{
    for (size_t i = 0; i < a->n_queues; i++) {
        struct pair p = {
            .what = "queue", .name = a->queues[i].name, .a = &a->queues[i], .b = &b->queues[i]
        };
        if (!SAME_STRUCT(s, queue_fields, &p))
            return false;
    }
    for (size_t i = 0; i < a->n_crons; i++) {
        struct pair p = {
            .what = "schedule", .name = a->crons[i].name, .a = &a->crons[i], .b = &b->crons[i]
        };
        if (!SAME_STRUCT(s, cron_fields, &p))
            return false;
    }
    return true;
}

#define H(kind, name) F(il_event_info, kind, name)
static const struct field event_fields[] = {
    H(TEXT, tenant), H(TEXT, key),           H(TEXT, holder),        H(TEXT, meta),
    H(TEXT, other),  H(TEXT, reason),        H(WORD, kind),          H(WORD, count),
    H(FENCE, fence), H(NUMBER, since_at_ms), H(NUMBER, first_at_ms), H(NUMBER, last_at_ms),
};

static bool
same_events(struct same *s, const il_op_out *a, const il_op_out *b)
{
    for (size_t i = 0; i < a->n_events; i++) {
        struct pair p = {
            .what = "event", .name = a->events[i].key, .a = &a->events[i], .b = &b->events[i]
        };
        if (!SAME_STRUCT(s, event_fields, &p))
            return false;
    }
    return true;
}

static bool
same_edges(struct same *s, const il_op_out *a, const il_op_out *b)
{
    for (size_t i = 0; i < a->n_edges; i++) {
        struct pair p = {
            .what = "edge", .name = a->edges[i].from, .a = &a->edges[i], .b = &b->edges[i]
        };
        if (!SAME_STRUCT(s, edge_fields, &p))
            return false;
    }
    return true;
}

static bool
same_sweep(struct same *s, const il_sweep_out *a, const il_sweep_out *b)
{
    struct pair p = { .what = "sweep", .name = "", .a = a, .b = b };

    return SAME_STRUCT(s, sweep_fields, &p);
}

/* A sentence, a text, both there or both not. Sentences name fences, which differ. */
static bool
same_words(struct same *s, const il_op_out *a, const il_op_out *b)
{
    if ((a->detail == NULL) != (b->detail == NULL))
        return same_differ(s, "detail '%s' and '%s'", a->detail != NULL ? a->detail : "(none)",
                           b->detail != NULL ? b->detail : "(none)");
    if ((a->next == NULL) != (b->next == NULL))
        return same_differ(s, "there is %s next page", a->next == NULL ? "no" : "a");
    if ((a->meta == NULL) != (b->meta == NULL) ||
        (a->meta != NULL && b->meta != NULL && strcmp(a->meta, b->meta) != 0))
        return same_differ(s, "meta '%s' and '%s'", a->meta != NULL ? a->meta : "(none)",
                           b->meta != NULL ? b->meta : "(none)");
    if (a->value_bytes != b->value_bytes || (a->value == NULL) != (b->value == NULL) ||
        (a->value_bytes > 0 && memcmp(a->value, b->value, a->value_bytes) != 0))
        return same_differ(s, "values of %zu and %zu bytes", a->value_bytes, b->value_bytes);
    return true;
}

#define SAME(name)          \
    if (a->name != b->name) \
    return same_differ(s, #name " %" PRId64 " and %" PRId64, (int64_t)a->name, (int64_t)b->name)

static bool
same_out(struct same *s, const il_op_out *a, const il_op_out *b)
{
    SAME(flags);
    SAME(position);
    SAME(remaining_ms);
    SAME(n_items);
    SAME(n_edges);
    SAME(n_events);
    SAME(n_runs);
    SAME(n_jobs);
    SAME(n_queues);
    SAME(n_crons);
    SAME(offset);
    SAME(code);
    SAME(age_ms);
    SAME(cache.n_entries);
    SAME(cache.n_bytes);
    SAME(cache.n_fresh);
    SAME(cache.n_stale);
    SAME(cache.n_negative);
    SAME(cache.n_building);
    learn_date(s, a->remaining_ms);
    return same_words(s, a, b) && same_leases(s, a, b) && same_edges(s, a, b) &&
           same_events(s, a, b) && same_runs(s, a, b) && same_jobs(s, a, b) &&
           same_queues(s, a, b) && same_sweep(s, &a->sweep, &b->sweep);
}

bool
same_result(struct same *s, const il_op *a, const il_op *b)
{
    char         text_a[T_OP_TEXT_BYTES];
    char         text_b[T_OP_TEXT_BYTES];
    char         why[WHY_BYTES];
    struct known names = { .family = il__op_family(a->type),
                           .tenant = lasting(a->tenant),
                           .key    = lasting(a->key),
                           .holder = lasting(a->holder) };
    bool         same  = a->status == b->status;

    if (same)
        same = same_out(s, &a->out, &b->out);
    else
        (void)same_differ(s, "status");
    if (same && (!same_number(s->fences, &s->n_fences, a->out.fence, b->out.fence, &names) ||
                 !same_number(s->tickets, &s->n_tickets, a->out.ticket, b->out.ticket, &names)))
        same = same_differ(s, "another fence or ticket");
    if (same)
        return true;
    (void)snprintf(why, sizeof why, "%s", s->why);
    return same_differ(s, "%.400s\nmodel: %.700s\nother: %.700s", why, t_op_text(a, text_a),
                       t_op_text(b, text_b));
}
