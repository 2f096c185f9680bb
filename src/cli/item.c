/*
 * item.c: jobs, queues, schedules and runs as JSON and for people.
 */
#include "cli/item.h"

#include <inttypes.h>
#include <stdarg.h>
#include <unistd.h>

#include "base/parse.h"

#define NAME_WIDTH 14

/* "" is nothing. */
static json_t *
text_or_null(const char *text)
{
    return il__cli_json_text(text != NULL && text[0] != '\0' ? text : NULL);
}

/* 0 is not yet. */
static json_t *
time_or_null(int64_t wall_ms)
{
    return wall_ms != 0 ? il__cli_json_time(wall_ms) : json_null();
}

/* -1 is unknown, unlimited or for ever. */
static json_t *
number_or_null(int64_t number)
{
    return number >= 0 ? json_integer(number) : json_null();
}

/* false when there is no memory. */
static bool
base64(const unsigned char *data, size_t n_bytes, struct il__buf *b)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

    for (size_t i = 0; i < n_bytes; i += 3) {
        size_t   n    = MIN(n_bytes - i, 3);
        uint32_t bits = (uint32_t)data[i] << 16;
        char     four[4];
        if (n > 1)
            bits |= (uint32_t)data[i + 1] << 8;
        if (n > 2)
            bits |= data[i + 2];
        for (size_t k = 0; k < 4; k++)
            four[k] = k <= n ? digits[bits >> (18 - 6 * k) & 63] : '=';
        il__buf_add(b, four, sizeof four);
    }
    return !b->failed;
}

bool
il__cli_json_set_bytes(json_t *object, const char *name, const void *data, size_t n_bytes)
{
    AUTO_BUF struct il__buf b = { 0 };
    char                    other[64];

    if (data == NULL || (n_bytes > 0 && !il__utf8_valid(data, n_bytes))) {
        if (json_object_set_new(object, name, json_null()) != 0 || data == NULL)
            return data == NULL;
        il__buf_init(&b, (n_bytes + 2) / 3 * 4 + 1);
        (void)snprintf(other, sizeof other, "%s_base64", name);
        return base64(data, n_bytes, &b) &&
               json_object_set_new(object, other, json_string(il__buf_str(&b))) == 0;
    }
    return json_object_set_new(object, name, json_stringn(data, n_bytes)) == 0;
}

/* The same, and how large it is: that is known also of what is too large for a listing. */
static bool
set_sized(json_t *object, const char *name, const void *data, size_t n_bytes)
{
    char size[64];

    (void)snprintf(size, sizeof size, "%s_bytes", name);
    return il__cli_json_set_bytes(object, name, data, n_bytes) &&
           json_object_set_new(object, size,
                               data != NULL || n_bytes > 0 ? json_integer((json_int_t)n_bytes)
                                                           : json_null()) == 0;
}

static json_t *
children_json(const il_job_info *info)
{
    if (!info->is_parent)
        return json_null();
    return json_pack("{s:I, s:I, s:I}", "total", (json_int_t)info->n_children, "completed",
                     (json_int_t)info->n_children_completed, "failed",
                     (json_int_t)info->n_children_failed);
}

json_t *
il__cli_job_json(const il_job_info *info)
{
    json_t *job =
        json_pack("{s:o, s:o, s:o, s:s, s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, "
                  "s:I, s:b, s:o}",
                  "id", il__cli_json_text(info->id), "queue", il__cli_json_text(info->queue),
                  "tenant", il__cli_json_text(info->tenant), "state", il_job_state_name(info->state),
                  "attempt", (json_int_t)info->attempt, "max_attempts", (json_int_t)info->max_attempts,
                  "priority", (json_int_t)info->priority, "run_at", time_or_null(info->run_at_ms),
                  "error", text_or_null(info->error), "progress", number_or_null(info->progress),
                  "message", text_or_null(info->message), "group", text_or_null(info->group),
                  "unique", text_or_null(info->unique_key), "parent", text_or_null(info->parent),
                  "worker", text_or_null(info->worker), "token", (json_int_t)info->token,
                  "cancelled", (int)info->cancelled, "children", children_json(info));
    if (job == NULL || !set_sized(job, "payload", info->payload, info->payload_bytes) ||
        !set_sized(job, "result", info->result, info->result_bytes) ||
        json_object_set_new(job, "created_at", time_or_null(info->created_at_ms)) != 0 ||
        json_object_set_new(job, "started_at", time_or_null(info->started_at_ms)) != 0 ||
        json_object_set_new(job, "completed_at", time_or_null(info->completed_at_ms)) != 0 ||
        json_object_set_new(job, "updated_at", time_or_null(info->updated_at_ms)) != 0) {
        json_decref(job);
        return NULL;
    }
    return job;
}

static json_t *
queue_settings(const il_queue_opts *o)
{
    bool        optimistic = o->strategy == 1 + IL_STRATEGY_OPTIMISTIC;
    il_strategy strategy   = optimistic ? IL_STRATEGY_OPTIMISTIC : IL_STRATEGY_PESSIMISTIC;

    return json_pack("{s:s, s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:I, s:I}", "strategy",
                     il_strategy_name(strategy), "attempts", (json_int_t)o->max_attempts,
                     "lease_ms", (json_int_t)o->lease_ms, "backoff_ms", (json_int_t)o->backoff_ms,
                     "backoff_max_ms", (json_int_t)o->backoff_max_ms, "group_limit",
                     number_or_null(o->group_limit), "rate_n", number_or_null(o->rate_n), "rate_ms",
                     number_or_null(o->rate_n < 0 ? -1 : o->rate_ms), "keep_ms",
                     number_or_null(o->keep_ms), "keep_dead_ms", number_or_null(o->keep_dead_ms),
                     "processing_timeout_ms", (json_int_t)o->processing_timeout_ms,
                     "executing_timeout_ms", (json_int_t)o->executing_timeout_ms);
}

static json_t *
queue_totals(const il_queue_info *info)
{
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "pushed",
                     (json_int_t)info->pushed, "claimed", (json_int_t)info->claimed, "completed",
                     (json_int_t)info->completed, "failed", (json_int_t)info->failed, "dead",
                     (json_int_t)info->dead, "snoozed", (json_int_t)info->snoozed, "cancelled",
                     (json_int_t)info->cancelled, "recovered", (json_int_t)info->recovered,
                     "duplicates", (json_int_t)info->duplicates, "stale", (json_int_t)info->stale);
}

json_t *
il__cli_queue_json(const il_queue_info *info)
{
    return json_pack("{s:o, s:o, s:b, s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o}", "name",
                     il__cli_json_text(info->name), "tenant", il__cli_json_text(info->tenant),
                     "paused", (int)info->paused, "reason", text_or_null(info->reason), "workers",
                     (json_int_t)info->n_workers, "scheduled", (json_int_t)info->n_scheduled,
                     "ready", (json_int_t)info->n_ready, "running", (json_int_t)info->n_running,
                     "dead", (json_int_t)info->n_dead, "oldest_ms", (json_int_t)info->oldest_ms,
                     "totals", queue_totals(info), "settings", queue_settings(&info->opts));
}

json_t *
il__cli_cron_json(const il_cron_info *info)
{
    json_t *cron =
        json_pack("{s:o, s:o, s:o, s:o, s:s, s:I, s:o, s:I, s:o, s:o}", "name",
                  il__cli_json_text(info->name), "queue", il__cli_json_text(info->queue), "tenant",
                  il__cli_json_text(info->tenant), "schedule", il__cli_json_text(info->schedule),
                  "missed", il_missed_name(info->missed), "priority", (json_int_t)info->priority,
                  "attempts", number_or_null((int64_t)info->max_attempts - (info->max_attempts == 0)),
                  "ticks", (json_int_t)info->n_ticks, "next_at", time_or_null(info->next_at_ms),
                  "last_at", time_or_null(info->last_at_ms));

    if (cron != NULL && !il__cli_json_set_bytes(cron, "payload", info->payload, info->payload_bytes)) {
        json_decref(cron);
        return NULL;
    }
    return cron;
}

json_t *
il__cli_run_json(const il_run_info *info)
{
    int64_t duration_ms = info->started_at_ms != 0 && info->ended_at_ms != 0
                              ? MAX(info->ended_at_ms - info->started_at_ms, 0)
                              : -1;

    json_t *run =
        json_pack("{s:o, s:o, s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:b, s:I, s:I, s:I}", "id",
                  il__cli_json_text(info->id), "key", il__cli_json_text(info->key), "tenant",
                  il__cli_json_text(info->tenant), "state", il_run_state_name(info->state),
                  "trigger", text_or_null(info->trigger), "by", text_or_null(info->by), "stage",
                  text_or_null(info->stage), "progress", number_or_null(info->progress), "error",
                  text_or_null(info->error), "holder", text_or_null(info->holder), "cancelled",
                  (int)info->cancelled, "joined", (json_int_t)info->n_joined, "position",
                  (json_int_t)info->position, "log_bytes", (json_int_t)info->log_bytes);
    json_t *rest =
        json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "fence",
                  info->fence != 0 ? json_integer((json_int_t)info->fence) : json_null(), "created_at",
                  time_or_null(info->created_at_ms), "started_at", time_or_null(info->started_at_ms),
                  "ended_at", time_or_null(info->ended_at_ms), "updated_at",
                  time_or_null(info->updated_at_ms), "duration_ms", number_or_null(duration_ms));
    bool whole = run != NULL && rest != NULL && json_object_update(run, rest) == 0;
    json_decref(rest);
    if (whole)
        return run;
    json_decref(run);
    return NULL;
}

json_t *
il__cli_json_items(size_t n, json_t *(*item)(const void *cookie, size_t i), const void *cookie)
{
    json_t *items = json_array();

    for (size_t i = 0; items != NULL && i < n; i++) {
        if (json_array_append_new(items, item(cookie, i)) != 0) {
            json_decref(items);
            return NULL;
        }
    }
    return items;
}

int
il__cli_json_page(json_t *items, const char *next)
{
    return il__cli_json_print(
        items != NULL ? json_pack("{s:o, s:o}", "items", items, "next", il__cli_json_text(next))
                      : NULL);
}

void
il__cli_field(const char *name, const char *fmt, ...)
{
    AUTO_BUF struct il__buf b = { 0 };
    va_list                 ap;

    il__buf_init(&b, (size_t)2 * IL_BLOB_BYTES_MAX);
    va_start(ap, fmt);
    il__buf_vaddf(&b, fmt, ap);
    va_end(ap);
    if (b.n_bytes == 0)
        return;
    (void)printf("%-*s ", NAME_WIDTH, name);
    il__cli_puts(il__buf_str(&b));
    (void)putchar('\n');
}

void
il__cli_field_time(const char *name, int64_t wall_ms)
{
    char text[IL__TIME_TEXT_BYTES];

    if (wall_ms != 0)
        il__cli_field(name, "%s", il__time_text(wall_ms, text));
}

/* On a terminal: line by line, as what is between the lines is escaped. */
static void
put_escaped(const char *data, size_t n_bytes)
{
    AUTO_BUF struct il__buf line = { 0 };

    il__buf_init(&line, (size_t)2 * IL_BLOB_BYTES_MAX);
    for (size_t i = 0; i < n_bytes; i++) {
        if (data[i] != '\n') {
            il__buf_addc(&line, data[i] != '\0' ? data[i] : ' ');
            continue;
        }
        il__cli_puts(il__buf_str(&line));
        (void)putchar('\n');
        il__buf_clear(&line);
    }
    il__cli_puts(il__buf_str(&line));
}

void
il__cli_put_bytes(const void *data, size_t n_bytes)
{
    if (isatty(STDOUT_FILENO) != 0)
        put_escaped(data, n_bytes);
    else
        (void)fwrite(data, 1, n_bytes, stdout); /* stdout remembers its errors */
}
