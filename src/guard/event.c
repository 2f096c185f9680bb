/*
 * event.c: events as lines of JSON, for logs and for `interlock locks --report`.
 * docs/guard-event.schema.json describes a line.
 *
 * Texts are cut to IL_GUARD_NAME_BYTES_MAX bytes and an escaped byte takes at most six, so a line
 * never exceeds IL_GUARD_EVENT_BYTES_MAX.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/parse.h"
#include "guard/guard_internal.h"
#include "wire/wire.h"

#define NS_PER_US 1000
#define ESCAPED_BYTES_MAX 6 /* \u0001 */
/* Eight texts, the names and values of tags, and 1 KiB for all else. */
_Static_assert((8 + 2 * IL_GUARD_TAGS_MAX) * IL_GUARD_NAME_BYTES_MAX * ESCAPED_BYTES_MAX + 1024 <=
                   IL_GUARD_EVENT_BYTES_MAX,
               "the longest event fits");

/* Add `text` as a JSON string, cut between two characters. */
static void
add_text(struct il__buf *out, const char *text)
{
    char   cut[IL_GUARD_NAME_BYTES_MAX + 1];
    size_t n = strnlen(text, sizeof cut);

    if (n == sizeof cut) {
        n = IL_GUARD_NAME_BYTES_MAX;
        while (n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80)
            n--;
    }
    memcpy(cut, text, n);
    cut[n] = '\0';
    il__wire_print_text(out, cut);
}

static void
put_text(struct il__buf *out, const char *name, const char *text)
{
    il__wire_name(out, name);
    add_text(out, text != NULL ? text : "");
    il__buf_addc(out, ',');
}

static void
put_ms(struct il__buf *out, const char *name, int64_t ns)
{
    int64_t us = MAX(ns, 0) / NS_PER_US;

    il__wire_name(out, name);
    il__buf_addf(out, "%" PRId64 ".%03d,", us / 1000, (int)(us % 1000));
}

static void
put_event_name(struct il__buf *out, const char *pipeline)
{
    static const char what[] = "lock_acquired";
    char              name[IL_GUARD_NAME_BYTES_MAX + 1 + sizeof what];
    bool              has = pipeline != NULL && pipeline[0] != '\0';

    (void)snprintf(name, sizeof name, "%.*s%s%s", IL_GUARD_NAME_BYTES_MAX, has ? pipeline : "",
                   has ? "." : "", what);
    il__wire_put_text(out, "event", name);
}

static void
add_value(struct il__buf *out, const il_guard_value *value)
{
    switch (value->type) {
    case IL_GUARD_INT:
        il__buf_addf(out, "%" PRId64, value->integer);
        break;
    case IL_GUARD_DOUBLE:
        if (isfinite(value->number))
            il__guard_value_print(value, out);
        else
            il__buf_adds(out, "null");
        break;
    case IL_GUARD_JSON:
        if (value->n_bytes <= IL_GUARD_NAME_BYTES_MAX)
            il__wire_print_json(out, value->data, value->n_bytes);
        else
            add_text(out, value->data);
        break;
    case IL_GUARD_TEXT:
        add_text(out, value->data);
        break;
    case IL_GUARD_BLOB:
        il__buf_addf(out, "\"%zu bytes\"", value->n_bytes);
        break;
    case IL_GUARD_NULL:
    case IL_GUARD_TYPE_COUNT:
        il__buf_adds(out, "null");
        break;
    }
}

/* Was this name given again later? Then that value counts: names in JSON must not repeat. */
static bool
is_replaced(const il_guard_event *e, size_t i)
{
    for (size_t j = i + 1; j < e->n_tags; j++) {
        if (strcmp(e->tags[i].name, e->tags[j].name) == 0)
            return true;
    }
    return false;
}

static void
put_tags(struct il__buf *out, const il_guard_event *e)
{
    il__wire_open(out, "tags");
    for (size_t i = 0; i < MIN(e->n_tags, (size_t)IL_GUARD_TAGS_MAX); i++) {
        if (is_replaced(e, i))
            continue;
        add_text(out, e->tags[i].name);
        il__buf_addc(out, ':');
        add_value(out, &e->tags[i].value);
        il__buf_addc(out, ',');
    }
    il__wire_close(out);
}

static void
print_event(struct il__buf *out, const il_guard_event *e, int64_t at_ms)
{
    char ts[IL__TIME_TEXT_BYTES];

    il__wire_open(out, NULL);
    put_text(out, "ts", il__time_text(at_ms, ts));
    put_event_name(out, e->pipeline);
    put_text(out, "pipeline", e->pipeline);
    put_text(out, "caller", e->caller);
    put_text(out, "entity", e->entity);
    put_text(out, "table", e->table);
    put_text(out, "key", e->key);
    put_ms(out, "lock_wait_ms", e->wait_ns);
    put_ms(out, "lock_hold_ms", e->hold_ns);
    il__wire_put_int(out, "query_count", e->n_queries);
    il__wire_put_int(out, "attempt", e->n_attempt);
    put_text(out, "outcome", il_guard_outcome_name(e->outcome));
    if (e->constraint != NULL && e->constraint[0] != '\0')
        put_text(out, "constraint", e->constraint);
    else
        il__wire_put_null(out, "constraint");
    put_text(out, "place", e->place);
    put_tags(out, e);
    il__buf_addc(out, ',');
    il__wire_close(out);
}

static il_status
check_event(const il_guard_event *e, il_error *reterr)
{
    if (e == NULL || (e->tags == NULL && e->n_tags > 0))
        return il__error_set(reterr, IL_INVAL, "no event given");
    for (size_t i = 0; i < e->n_tags; i++) {
        if (e->tags[i].name == NULL || !il__guard_value_is_valid(&e->tags[i].value))
            return il__error_set(reterr, IL_INVAL, "tag %zu of the event is not valid", i + 1);
    }
    return IL_OK;
}

il_status
il_guard_event_json(const il_guard_event *event, int64_t at_ms, char *out, size_t n_bytes,
                    il_error *reterr)
{
    AUTO_BUF struct il__buf line = { 0 };

    il_status st = check_event(event, reterr);
    if (st != IL_OK)
        return st;
    if (out == NULL)
        return il__error_set(reterr, IL_INVAL, "out must not be NULL");
    il__buf_init(&line, IL_GUARD_EVENT_BYTES_MAX);
    print_event(&line, event, at_ms);
    if (line.failed)
        return il__error_set(reterr, IL_NOMEM, "out of memory for an event");
    if (line.n_bytes >= n_bytes)
        return il__error_set(reterr, IL_LIMIT,
                             "buffer of %zu bytes is too small for an event of %zu bytes", n_bytes,
                             line.n_bytes + 1);
    memcpy(out, il__buf_str(&line), line.n_bytes + 1);
    return IL_OK;
}

void
il_guard_log(void *cookie, const il_guard_event *event)
{
    AUTO_BUF struct il__buf line = { 0 };
    const int              *fd   = cookie;

    if (fd == NULL || check_event(event, NULL) != IL_OK)
        return;
    il__buf_init(&line, IL_GUARD_EVENT_BYTES_MAX + 1);
    print_event(&line, event, il__clock_wall_ms());
    il__buf_addc(&line, '\n');
    if (line.failed)
        return;
    for (size_t at = 0; at < line.n_bytes;) {
        ssize_t n = write(*fd, line.data + at, line.n_bytes - at);
        if (n < 0 && errno != EINTR)
            return;
        at += n > 0 ? (size_t)n : 0;
    }
}
