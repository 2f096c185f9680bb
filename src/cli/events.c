/* events.c: events of a key as sentences; see events.h. */
#include "cli/events.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>

#include "base/parse.h"
#include "cli/out.h"

#define SHOWN_BYTES_MAX 80 /* of a command, a host, a user */

/* "2026-11-19 03:00:12", or only the time of day if that is of the same day as `near`. */
static void
add_time(struct il__buf *b, int64_t wall_ms, int64_t near_ms)
{
    char text[IL__TIME_TEXT_BYTES];
    char near[IL__TIME_TEXT_BYTES];

    (void)il__time_text(wall_ms, text);
    (void)il__time_text(near_ms, near);
    const char *day_end = strchr(text, 'T');
    const char *point   = strchr(text, '.');
    if (day_end == NULL || point == NULL) {
        il__buf_adds(b, text);
        return;
    }
    int n_day = (int)(day_end - text);
    if (strncmp(text, near, (size_t)n_day + 1) != 0 || near_ms == 0)
        il__buf_addf(b, "%.*s ", n_day, text);
    il__buf_addf(b, "%.*s", (int)(point - day_end - 1), day_end + 1);
}

static void
add_part(struct il__buf *b, const char *before, const json_t *meta, const char *name,
         const char *after)
{
    const char *text = json_string_value(json_object_get(meta, name));

    if (text == NULL || text[0] == '\0')
        return;
    char shown[SHOWN_BYTES_MAX + 4];
    (void)snprintf(shown, sizeof shown, "%.*s%s", (int)il__utf8_cut(text, SHOWN_BYTES_MAX), text,
                   strlen(text) > SHOWN_BYTES_MAX ? "..." : "");
    il__buf_adds(b, before);
    il__cli_escape(b, shown);
    il__buf_adds(b, after);
}

/* A process, by what it says about itself: "pid 4711 on A (`sleep 20`)", "`report.sh` on A by
 * root"; the text itself if that is something else, the holder if it says nothing. */
static void
add_who(struct il__buf *b, const char *meta, const char *holder)
{
    json_t *object = json_loads(meta, 0, NULL);
    int64_t pid    = json_integer_value(json_object_get(object, "pid"));
    size_t  n      = b->n_bytes;

    if (pid > 0) {
        il__buf_addf(b, "pid %" PRId64, pid);
        add_part(b, " on ", object, "host", "");
        add_part(b, " (`", object, "command", "`)");
    } else if (json_is_object(object)) {
        add_part(b, "`", object, "command", "`");
        if (b->n_bytes == n)
            add_part(b, "pipeline ", object, "pipeline", "");
        if (b->n_bytes == n)
            add_part(b, "trigger ", object, "trigger", "");
        if (b->n_bytes == n)
            il__buf_adds(b, "a caller");
        add_part(b, " on ", object, "host", "");
        add_part(b, " by ", object, "user", "");
        add_part(b, " by ", object, "by", "");
        add_part(b, " with API key ", object, "api_key", "");
        add_part(b, " from ", object, "peer", "");
    } else if (meta[0] != '\0') {
        il__cli_escape(b, meta);
    } else {
        il__buf_adds(b, "holder ");
        il__cli_escape(b, holder[0] != '\0' ? holder : "unknown");
    }
    json_decref(object);
}

static void
add_since(struct il__buf *b, const il_event_info *e)
{
    if (e->since_at_ms == 0)
        return;
    il__buf_adds(b, " since ");
    add_time(b, e->since_at_ms, e->last_at_ms);
}

static void
add_reason(struct il__buf *b, const il_event_info *e)
{
    if (e->reason[0] == '\0')
        return;
    il__buf_adds(b, "; ");
    il__cli_escape(b, e->reason);
}

static void
add_refusal(struct il__buf *b, const il_event_info *e)
{
    il__buf_adds(b, "refused ");
    if (e->count > 1) {
        il__buf_addf(b, "%" PRIu32 " times between ", e->count);
        add_time(b, e->first_at_ms, 0);
        il__buf_adds(b, " and ");
        add_time(b, e->last_at_ms, e->first_at_ms);
    } else {
        il__buf_adds(b, "at ");
        add_time(b, e->last_at_ms, 0);
    }
    il__buf_adds(b, " UTC to ");
    add_who(b, e->meta, "");
    if (e->other[0] != '\0' || e->holder[0] != '\0') {
        il__buf_adds(b, ": held by ");
        add_who(b, e->other, e->holder);
        add_since(b, e);
    }
    add_reason(b, e);
}

static void
add_break(struct il__buf *b, const il_event_info *e)
{
    il__buf_adds(b, "broken at ");
    add_time(b, e->last_at_ms, 0);
    il__buf_adds(b, " UTC");
    if (e->other[0] != '\0') {
        il__buf_adds(b, " by ");
        add_who(b, e->other, "");
    }
    il__buf_adds(b, ": held by ");
    add_who(b, e->meta, e->holder);
    add_since(b, e);
    add_reason(b, e);
}

static void
add_expiry(struct il__buf *b, const il_event_info *e)
{
    il__buf_adds(b, "expired at ");
    add_time(b, e->last_at_ms, 0);
    il__buf_adds(b, " UTC without a renewal: held by ");
    add_who(b, e->meta, e->holder);
    add_since(b, e);
}

void
il__cli_event_text(struct il__buf *b, const il_event_info *e)
{
    il__buf_adds(b, "  ");
    if (e->kind == IL_EVENT_REFUSED)
        add_refusal(b, e);
    else if (e->kind == IL_EVENT_BROKEN)
        add_break(b, e);
    else
        add_expiry(b, e);
    il__buf_addc(b, '\n');
}
