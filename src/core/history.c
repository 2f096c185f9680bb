/*
 * history.c: the events of a key; see history.h.
 *
 * The stored text has five strings per event, each with its NUL: the numbers in hex, separated by
 * spaces, then holder, meta, other and reason.
 */
#include "core/history.h"

#include <inttypes.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/parse.h"
#include "core/cursor.h"
#include "core/key.h"
#include "core/limits.h"
#include "core/op.h"

#define NUMBERS 7
/* texts of at most 4 bytes per character, a holder, a reason, and the numbers */
#define EVENT_BYTES_MAX ((size_t)2 * (4 * IL__EVENT_TEXT_CHARS + 1) + 1024)

/* ---- the stored text ------------------------------------------------------------------------- */

/* The bytes of at most IL__EVENT_TEXT_CHARS characters. */
static size_t
cut(const char *text)
{
    size_t n_chars = 0;
    size_t i       = 0;

    for (; text[i] != '\0'; i++) {
        if (((unsigned char)text[i] & 0xC0U) != 0x80 && n_chars++ == IL__EVENT_TEXT_CHARS)
            break;
    }
    return i;
}

static void
put_text(struct il__buf *b, const char *text)
{
    if (text != NULL)
        il__buf_add(b, text, cut(text));
    il__buf_addc(b, '\0');
}

static void
put(struct il__buf *b, const struct il__event *e)
{
    il__buf_addf(b, "%x %" PRIx64 " %x %" PRIx64 " %" PRIx64 " %" PRIx64 " %" PRIx64,
                 (unsigned)e->kind, e->seq, e->count, e->fence, (uint64_t)e->since_ms,
                 (uint64_t)e->first_ms, (uint64_t)e->last_ms);
    il__buf_addc(b, '\0');
    put_text(b, e->holder);
    put_text(b, e->meta);
    put_text(b, e->other);
    put_text(b, e->reason);
}

/* The next string; NULL: the text is over or damaged. */
static const char *
take_text(const char **at, const char *end)
{
    const char *text = *at;
    const char *nul  = text < end ? memchr(text, '\0', (size_t)(end - text)) : NULL;

    if (nul == NULL)
        return NULL;
    *at = nul + 1;
    return text;
}

static bool
take_numbers(const char *text, uint64_t ret[NUMBERS])
{
    for (size_t i = 0; i < NUMBERS; i++) {
        size_t n_digits = 0;
        ret[i]          = 0;
        for (int digit; n_digits < 16 && (digit = il__hex_digit(*text)) >= 0; text++, n_digits++)
            ret[i] = ret[i] * 16 + (uint64_t)digit;
        if (n_digits == 0 || *text != (i + 1 < NUMBERS ? ' ' : '\0'))
            return false;
        text++;
    }
    return ret[0] > IL_EVENT_NONE && ret[0] < IL_EVENT_KIND_COUNT;
}

/* False: damaged. */
static bool
take(const char **at, const char *end, struct il__event *ret)
{
    uint64_t    n[NUMBERS];
    const char *numbers = take_text(at, end);

    if (numbers == NULL || !take_numbers(numbers, n))
        return false;
    *ret        = (struct il__event){ .seq      = n[1],
                                      .kind     = (il_event_kind)n[0],
                                      .count    = (uint32_t)n[2],
                                      .fence    = n[3],
                                      .since_ms = (int64_t)n[4],
                                      .first_ms = (int64_t)n[5],
                                      .last_ms  = (int64_t)n[6] };
    ret->holder = take_text(at, end);
    ret->meta   = take_text(at, end);
    ret->other  = take_text(at, end);
    ret->reason = take_text(at, end);
    return ret->reason != NULL;
}

/* The stored events, oldest first. False: damaged. */
static bool
load(const struct il__history *h, struct il__event ret[IL_EVENTS_MAX], size_t *ret_n)
{
    const char *at  = h->data;
    const char *end = at + h->n_bytes;

    for (*ret_n = 0; at < end; ++*ret_n) {
        if (*ret_n == IL_EVENTS_MAX || !take(&at, end, &ret[*ret_n]))
            return false;
    }
    return true;
}

/* ---- adding ---------------------------------------------------------------------------------- */

static bool
is_old(const struct il__event *e, int64_t wall_ms)
{
    return wall_ms - e->last_ms >= IL_EVENT_KEEP_MS;
}

/* Refusals of one caller: its meta has no process id, so it is the same every time. */
static bool
is_merged(const struct il__event *stored, const struct il__event *e)
{
    const char *meta    = e->meta != NULL ? e->meta : "";
    size_t      n_bytes = cut(meta);

    return e->kind == IL_EVENT_REFUSED && stored->kind == IL_EVENT_REFUSED &&
           strncmp(stored->meta, meta, n_bytes) == 0 && stored->meta[n_bytes] == '\0';
}

bool
il__history_add(const struct il__history *h, const struct il__event *e, int64_t wall_ms,
                struct il__buf *ret, bool *ret_damaged)
{
    struct il__event events[IL_EVENTS_MAX];
    struct il__event added = *e;
    size_t           n;
    size_t           first = 0;

    *ret_damaged = !load(h, events, &n);
    if (*ret_damaged)
        return false;
    added.seq = n > 0 ? events[n - 1].seq + 1 : 1;
    for (size_t i = 0; i < n; i++) {
#ifndef IL_MUTANT_refusals_not_merged
        if (is_merged(&events[i], e)) {
            added.count    = MIN(added.count + events[i].count, IL__REFUSED_MAX);
            added.first_ms = MIN(added.first_ms, events[i].first_ms);
            events[i].kind = IL_EVENT_NONE;
        }
#endif
        if (is_old(&events[i], wall_ms))
            events[i].kind = IL_EVENT_NONE;
    }
    size_t n_kept = 1; /* the new one */
    for (size_t i = 0; i < n; i++)
        n_kept += events[i].kind != IL_EVENT_NONE;
    for (; n_kept > IL_EVENTS_MAX; first++)
        n_kept -= events[first].kind != IL_EVENT_NONE;
    il__buf_init(ret, IL_EVENTS_MAX * EVENT_BYTES_MAX);
    for (size_t i = first; i < n; i++) {
        if (events[i].kind != IL_EVENT_NONE)
            put(ret, &events[i]);
    }
    put(ret, &added);
    return !ret->failed;
}

/* ---- what happened --------------------------------------------------------------------------- */

struct il__event
il__event_expired(const struct il__lease_facts *l, int64_t wall_ms)
{
    return (struct il__event){ .kind     = IL_EVENT_EXPIRED,
                               .count    = 1,
                               .fence    = l->fence,
                               .since_ms = wall_ms - l->held_ms,
                               .first_ms = wall_ms - l->over_ms,
                               .last_ms  = wall_ms - l->over_ms,
                               .holder   = l->holder,
                               .meta     = l->meta };
}

struct il__event
il__event_broken(const struct il__lease_facts *l, const il_op *op, int64_t wall_ms)
{
    return (struct il__event){ .kind     = IL_EVENT_BROKEN,
                               .count    = 1,
                               .fence    = l->fence,
                               .since_ms = wall_ms - l->held_ms,
                               .first_ms = wall_ms,
                               .last_ms  = wall_ms,
                               .holder   = l->holder,
                               .meta     = l->meta,
                               .other    = op->in.lock.meta,
                               .reason   = op->in.lock.reason };
}

struct il__event
il__event_refused(const il_op *op, int64_t wall_ms)
{
    const il_refused_in *in = &op->in.refused;

    return (struct il__event){ .kind     = IL_EVENT_REFUSED,
                               .count    = in->count,
                               .fence    = op->fence,
                               .since_ms = in->held_ms > 0 ? wall_ms - in->held_ms : 0,
                               .first_ms = wall_ms - in->span_ms,
                               .last_ms  = wall_ms,
                               .holder   = op->holder,
                               .meta     = in->meta,
                               .other    = in->other,
                               .reason   = in->reason };
}

/* ---- listing --------------------------------------------------------------------------------- */

static const char *
copy(il_op *op, const char *text)
{
    return il__op_strdup(op, text != NULL ? text : "");
}

/* False: out of memory. */
static bool
show(il_op *op, const struct il__event *e)
{
    il_event_info info = {
        .tenant      = copy(op, op->tenant),
        .key         = copy(op, op->key),
        .holder      = copy(op, e->holder),
        .meta        = copy(op, e->meta),
        .other       = copy(op, e->other),
        .reason      = copy(op, e->reason),
        .kind        = e->kind,
        .count       = e->count,
        .fence       = e->fence,
        .since_at_ms = e->since_ms,
        .first_at_ms = e->first_ms,
        .last_at_ms  = e->last_ms,
    };

    if (info.tenant == NULL || info.key == NULL || info.holder == NULL || info.meta == NULL ||
        info.other == NULL || info.reason == NULL)
        return false;
    il_event_info *slot =
        il__arena_append(&op->mem, &op->out.events, &op->out.n_events, sizeof *slot);
    if (slot != NULL)
        *slot = info;
    return slot != NULL;
}

bool
il__history_page(const struct il__event *events, size_t n, il_op *op, int64_t wall_ms)
{
    const char *key   = NULL;
    uint64_t    after = UINT64_MAX;
    uint64_t    last  = 0;

    op->status = IL_OK;
    if (op->in.list.cursor != NULL)
        CHECK(il__cursor_parse(op->in.list.cursor, &key, &after));
    for (size_t i = n; i-- > 0;) {
        if (events[i].seq >= after || is_old(&events[i], wall_ms))
            continue;
        if (op->out.n_events == op->in.list.limit) {
            op->out.next = il__op_cursor(op, IL__NO_ID, last);
            return op->out.next != NULL;
        }
        if (!show(op, &events[i]))
            return false;
        last = events[i].seq;
    }
    return true;
}

bool
il__history_list(const struct il__history *h, il_op *op, int64_t wall_ms, bool *ret_damaged)
{
    struct il__event events[IL_EVENTS_MAX];
    size_t           n;

    *ret_damaged = !load(h, events, &n);
    return !*ret_damaged && il__history_page(events, n, op, wall_ms);
}

/* ---- checking -------------------------------------------------------------------------------- */

static il_status
check_refused(il_op *op, il_error *reterr)
{
    il_refused_in *in = &op->in.refused;

    if (in->count == 0)
        in->count = 1;
    if (in->count > IL__REFUSED_MAX)
        return il__error_set(reterr, IL_INVAL, "count %u exceeds the maximum of %d", in->count,
                             IL__REFUSED_MAX);
    if (in->span_ms < 0 || in->span_ms > IL_DELAY_MS_MAX || in->held_ms < 0 ||
        in->held_ms > IL_DELAY_MS_MAX)
        return il__error_set(reterr, IL_INVAL,
                             "span_ms and held_ms must be between 0 and 366 days");
    if (op->fence >= IL__FENCE_END)
        return il__error_set(reterr, IL_INVAL, "invalid fence %" PRIu64, op->fence);
    if (il__check_text("meta", in->meta, 1, IL_META_BYTES_MAX, true, reterr) != IL_OK ||
        il__check_optional("holder", op->holder, IL_HOLDER_BYTES_MAX, false, reterr) != IL_OK ||
        il__check_optional("other", in->other, IL_META_BYTES_MAX, true, reterr) != IL_OK)
        return IL_INVAL;
    return il__check_optional("reason", in->reason, IL_PLACE_BYTES_MAX, false, reterr);
}

il_status
il__history_check(il_op *op, il_error *reterr)
{
    if (il__op_check_key(op, reterr) != IL_OK)
        return IL_INVAL;
    return op->type == IL_OP_HISTORY ? il__op_check_page(op, IL_KEY_BYTES_MAX, reterr)
                                     : check_refused(op, reterr);
}
