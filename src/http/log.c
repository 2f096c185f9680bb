/*
 * log.c: log lines, formatted into one buffer and written once per turn of the loop. See log.h.
 *
 * Once the buffer has grown, a line costs no allocation and no system call of its own. If the
 * output is not read (a full pipe, a stopped terminal), lines stay in the buffer until it is full;
 * then whole lines are dropped and counted. The same applies to events that clients could use to
 * fill the disk.
 */
#include "http/log.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/parse.h"
#include "http/app.h"
#include "http/route.h"
#include "http/server.h"

#define LOG_BYTES_MAX (1 << 20)                /* of lines waiting to be written */
#define END_WAIT_MS 500                        /* for the reader, when the process exits */
#define OFTEN_NS (10 * (int64_t)IL__NS_PER_MS) /* is_too_much() */
#define OFTEN_BURST 500
#define TELL_EVERY_NS (1000 * (int64_t)IL__NS_PER_MS)
#define SLOW_NS (1000 * (int64_t)IL__NS_PER_MS) /* of a request */
#define COMING_MAX 1024                         /* lines of apps on their way to the loop */
#define VALUE_BYTES_MAX 2048                    /* of one value; a key has at most 512 */

struct http_log {
    int            fd;
    bool           json;
    bool           plain_file; /* writes do not block */
    bool           open_line;
    struct il__buf buf;
    size_t         line; /* start of the line being formatted */
    uint64_t       n_dropped_told;
    int64_t        tell_ns; /* not before */
    int64_t        full_ns[HTTP_EVENT_COUNT];
    /* Read or changed by the threads of apps, too. */
    atomic_int           level;
    atomic_uint          n_coming; /* lines of apps on their way to the loop */
    atomic_uint_fast64_t n_dropped;
};

static const char *const level_names[] = { "debug", "info", "warn", "error" };

static const struct {
    enum http_log_level level;
    const char         *name;
} events[] = {
#define X(id, level, name, text) { HTTP_LOG_##level, name },
#include "http/log.def"
#undef X
};

il_status
http_log_open(struct http_server *s, il_error *reterr)
{
    struct http_log *l = il__calloc(1, sizeof *l);
    struct stat      st;

    if (l == NULL)
        return il__error_set(reterr, IL_NOMEM, "out of memory for the log");
    *l = (struct http_log){ .fd = STDERR_FILENO, .json = s->o->log_json };
    atomic_store(&l->level, (int)s->o->log_level);
    l->plain_file = fstat(l->fd, &st) == 0 && S_ISREG(st.st_mode);
    il__buf_init(&l->buf, LOG_BYTES_MAX + VALUE_BYTES_MAX);
    s->log = l;
    return IL_OK;
}

void
http_log_set_level(struct http_server *s, enum http_log_level level)
{
    atomic_store(&s->log->level, (int)level);
}

uint64_t
http_log_dropped(const struct http_server *s)
{
    return atomic_load(&s->log->n_dropped);
}

/* From any thread. */
static bool
is_on(const struct http_log *l, enum http_log_level level)
{
    return (int)level >= atomic_load_explicit(&l->level, memory_order_relaxed);
}

bool
http_log_on(const struct http_server *s, enum http_event event)
{
    return s->log != NULL && is_on(s->log, events[event].level);
}

/* ---- writing --------------------------------------------------------------------------------- */

/* Write as much as possible within the time limit: a pipe that polls writable takes PIPE_BUF
 * bytes at once. */
static size_t
write_some(const struct http_log *l, const char *data, size_t n_bytes, int wait_ms)
{
    size_t done = 0;

    while (done < n_bytes) {
        struct pollfd p     = { .fd = l->fd, .events = POLLOUT };
        size_t        chunk = l->plain_file ? n_bytes - done : MIN(n_bytes - done, PIPE_BUF);
        if (!l->plain_file && (poll(&p, 1, wait_ms) != 1 || (p.revents & POLLOUT) == 0))
            break;
        ssize_t n = write(l->fd, data + done, chunk);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        done += (size_t)n;
    }
    return done;
}

static void
tell_dropped(struct http_server *s)
{
    struct http_log *l = s->log;
    uint64_t         n = atomic_load(&l->n_dropped) - l->n_dropped_told;

    int64_t now_ns = il__clock_boot_ns();
    if (n == 0 || l->buf.n_bytes > 0 || now_ns < l->tell_ns)
        return;
    l->n_dropped_told += n;
    l->tell_ns = now_ns + TELL_EVERY_NS;
    if (http_log_begin(s, HTTP_EVENT_log_dropped)) {
        http_log_int(s, "lines", (int64_t)n);
        http_log_end(s);
    }
}

static void
flush(struct http_server *s, int wait_ms)
{
    struct http_log *l = s->log;

    if (l == NULL || l->open_line)
        return;
    for (int round = 0; round < 2 && l->buf.n_bytes > 0; round++) {
        size_t n = write_some(l, l->buf.data, l->buf.n_bytes, wait_ms);
        if (n < l->buf.n_bytes)
            memmove(l->buf.data, l->buf.data + n, l->buf.n_bytes - n);
        l->buf.n_bytes -= n;
        tell_dropped(s); /* written in the second round */
    }
}

void
http_log_flush(struct http_server *s)
{
    flush(s, 0);
}

void
http_log_close(struct http_server *s)
{
    if (s->log == NULL)
        return;
    flush(s, END_WAIT_MS);
    il__buf_release(&s->log->buf);
    il__free(s->log);
    s->log = NULL;
}

/* ---- a line ---------------------------------------------------------------------------------- */

static size_t
utf8_length(const unsigned char *p)
{
    size_t n = p[0] >= 0xC2 && p[0] <= 0xDF   ? 2
               : p[0] >= 0xE0 && p[0] <= 0xEF ? 3
               : p[0] >= 0xF0 && p[0] <= 0xF4 ? 4
                                              : 0;

    for (size_t i = 1; i < n; i++) {
        if ((p[i] & 0xC0) != 0x80)
            return 0;
    }
    /* Overlong forms, surrogates, and the controls U+0080..U+009F, which terminals obey. */
    if ((p[0] == 0xE0 && p[1] < 0xA0) || (p[0] == 0xED && p[1] > 0x9F) ||
        (p[0] == 0xF0 && p[1] < 0x90) || (p[0] == 0xF4 && p[1] > 0x8F) ||
        (p[0] == 0xC2 && p[1] < 0xA0))
        return 0;
    return n;
}

/* How many bytes at p need no escaping; 0: the first one must be escaped. */
static size_t
clean_length(const unsigned char *p)
{
    if (p[0] < 0x20 || p[0] == '"' || p[0] == '\\' || p[0] == 0x7F)
        return 0;
    return p[0] < 0x80 ? 1 : utf8_length(p);
}

/* A quoted string. In both formats, characters that could end the line or move the cursor are
 * escaped as in JSON. */
static void
add_quoted(struct il__buf *b, const char *text)
{
    const unsigned char *p   = (const unsigned char *)text;
    const unsigned char *end = p + strnlen(text, VALUE_BYTES_MAX);

    il__buf_addc(b, '"');
    while (p < end) {
        const unsigned char *from = p;
        for (size_t n; p < end && (n = clean_length(p)) > 0;)
            p += n;
        il__buf_add(b, from, (size_t)(p - from));
        if (p >= end)
            break;
        if (*p == '"' || *p == '\\') {
            il__buf_addc(b, '\\');
            il__buf_addc(b, (char)*p);
        } else {
            il__buf_addf(b, "\\u%04x", *p);
        }
        p++;
    }
    il__buf_addc(b, '"');
}

/* Can a value in name=value go without quotes? */
static bool
is_word(const char *text)
{
    if (text[0] == '\0')
        return false;
    for (const char *p = text; *p != '\0'; p++) {
        if (*p <= ' ' || *p == '"' || *p == '\\' || *p == '=' || *p >= 0x7F)
            return false;
    }
    return strlen(text) < VALUE_BYTES_MAX;
}

static void
add_number(struct il__buf *b, int64_t value)
{
    char     text[24];
    char    *p    = text + sizeof text;
    uint64_t rest = value < 0 ? -(uint64_t)value : (uint64_t)value;

    do {
        *--p = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest > 0);
    if (value < 0)
        *--p = '-';
    il__buf_add(b, p, (size_t)(text + sizeof text - p));
}

static void
add_now(struct http_log *l)
{
    char text[IL__TIME_TEXT_BYTES];

    il__buf_adds(&l->buf, il__time_text(il__clock_wall_ms(), text));
}

/* Limit events that any client can cause at will, with a wrong key or while a store or the database
 * of an app is down, to a hundred per second. A bucket is the time at which it is full again. */
static bool
is_too_much(struct http_log *l, enum http_event event)
{
    if (event != HTTP_EVENT_login_failed && event != HTTP_EVENT_login_limited &&
        event != HTTP_EVENT_forbidden && event != HTTP_EVENT_request_failed &&
        event != HTTP_EVENT_app_failed)
        return false;
    int64_t now_ns = il__clock_boot_ns();
    if (l->full_ns[event] - now_ns > OFTEN_BURST * OFTEN_NS)
        return true;
    l->full_ns[event] = MAX(l->full_ns[event], now_ns) + OFTEN_NS;
    return false;
}

/* Make room if necessary. */
static bool
begin_line(struct http_server *s, enum http_log_level level, const char *name)
{
    struct http_log *l = s->log;

    CHECK(!l->open_line);
    if (l->buf.n_bytes >= LOG_BYTES_MAX)
        http_log_flush(s);
    if (l->buf.n_bytes >= LOG_BYTES_MAX) {
        l->n_dropped++;
        return false;
    }
    l->open_line = true;
    l->line      = l->buf.n_bytes;
    il__buf_adds(&l->buf, l->json ? "{\"ts\":\"" : "");
    add_now(l);
    if (l->json) {
        il__buf_adds(&l->buf, "\",\"level\":\"");
        il__buf_adds(&l->buf, level_names[level]);
        il__buf_adds(&l->buf, "\",\"event\":\"");
        il__buf_adds(&l->buf, name);
        il__buf_addc(&l->buf, '"');
    } else {
        il__buf_addf(&l->buf, " %-5s %-20s", level_names[level], name);
    }
    return true;
}

bool
http_log_begin(struct http_server *s, enum http_event event)
{
    if (!http_log_on(s, event))
        return false;
    if (is_too_much(s->log, event)) {
        s->log->n_dropped++;
        return false;
    }
    return begin_line(s, events[event].level, events[event].name);
}

bool
http_log_begin_app(struct http_server *s, enum http_log_level level, const char *name)
{
    return s->log != NULL && is_on(s->log, level) && begin_line(s, level, name);
}

static void
add_name(struct http_log *l, const char *name)
{
    CHECK(l->open_line);
    il__buf_adds(&l->buf, l->json ? ",\"" : " ");
    il__buf_adds(&l->buf, name);
    il__buf_adds(&l->buf, l->json ? "\":" : "=");
}

void
http_log_text(struct http_server *s, const char *name, const char *value)
{
    if (value == NULL)
        return;
    add_name(s->log, name);
    if (!s->log->json && is_word(value))
        il__buf_adds(&s->log->buf, value);
    else
        add_quoted(&s->log->buf, value);
}

void
http_log_int(struct http_server *s, const char *name, int64_t value)
{
    add_name(s->log, name);
    add_number(&s->log->buf, value);
}

void
http_log_ms(struct http_server *s, const char *name, int64_t ns)
{
    int64_t us          = MAX(ns, 0) / 1000;
    char    decimals[5] = { '.', (char)('0' + us / 100 % 10), (char)('0' + us / 10 % 10),
                            (char)('0' + us % 10), '\0' };

    add_name(s->log, name);
    add_number(&s->log->buf, us / 1000);
    il__buf_adds(&s->log->buf, decimals);
}

void
http_log_who(struct http_server *s, const struct http_request *r)
{
    http_log_text(s, "request_id", r->id[0] != '\0' ? r->id : NULL);
    if (r->caller != NULL) {
        http_log_text(s, "tenant_id", r->caller->tenant);
        http_log_text(s, "key_id", r->caller->key_id);
    }
    http_log_text(s, "route", r->route != NULL ? r->route->id : NULL);
}

void
http_log_end(struct http_server *s)
{
    struct http_log *l = s->log;

    CHECK(l->open_line);
    il__buf_adds(&l->buf, l->json ? "}\n" : "\n");
    l->open_line = false;
    if (!l->buf.failed)
        return;
    /* Out of memory: half a line is worse than none. */
    l->buf.failed  = false;
    l->buf.n_bytes = l->line;
    l->n_dropped++;
}

void
http_log(struct http_server *s, enum http_event event, const char *fmt, ...)
{
    char    message[1024];
    va_list ap;

    if (!http_log_begin(s, event))
        return;
    if (fmt != NULL) {
        va_start(ap, fmt);
        (void)vsnprintf(message, sizeof message, fmt, ap); /* cut when it is too long */
        va_end(ap);
        http_log_text(s, "message", message);
    }
    http_log_end(s);
}

/* Slow by our fault: neither the time that it asked to wait nor a stream counts. */
static bool
is_slow(const struct http_request *r, int64_t took_ns)
{
    return !r->streams && took_ns - r->waited_ns - r->delayed_ns >= SLOW_NS;
}

void
http_log_request(struct http_request *r)
{
    struct http_server *s       = r->server;
    int64_t             took_ns = il__clock_boot_ns() - r->began_ns;

    if (!http_log_begin(s, r->status >= 500      ? HTTP_EVENT_request_failed
                           : is_slow(r, took_ns) ? HTTP_EVENT_request_slow
                                                 : HTTP_EVENT_request))
        return;
    http_log_who(s, r);
    http_log_text(s, "method", r->method);
    http_log_text(s, "path", r->path);
    http_log_int(s, "status", r->status);
    http_log_text(s, "code", r->code);
    http_log_ms(s, "took_ms", took_ns);
    http_log_int(s, "bytes", (int64_t)r->bytes_out);
    http_log_text(s, "peer", r->peer);
    http_log_end(s);
}

/* ---- lines of apps, from any thread ---------------------------------------------------------- */

/* On its way to the loop; the texts of the fields follow it. */
struct app_line {
    const struct http_app_event *event;
    size_t                       n_fields;
    struct http_log_field        fields[];
};

static void
write_app_line(struct http_server *s, void *cookie)
{
    AUTO_FREE struct app_line *line = cookie;

    atomic_fetch_sub(&s->log->n_coming, 1);
    if (!http_log_begin_app(s, line->event->level, line->event->name))
        return;
    for (size_t i = 0; i < line->n_fields; i++) {
        const struct http_log_field *f = &line->fields[i];
        if (f->kind == HTTP_FIELD_TEXT)
            http_log_text(s, f->name, f->text);
        else if (f->kind == HTTP_FIELD_INT)
            http_log_int(s, f->name, f->number);
        else
            http_log_ms(s, f->name, f->number);
    }
    http_log_end(s);
}

static struct app_line *
copy_line(const struct http_app_event *event, const struct http_log_field *fields, size_t n)
{
    size_t           n_text = 0;
    struct app_line *line;

    for (size_t i = 0; i < n; i++)
        n_text += fields[i].text != NULL ? strnlen(fields[i].text, VALUE_BYTES_MAX) + 1 : 0;
    line = il__alloc(sizeof *line + n * sizeof *fields + n_text);
    if (line == NULL)
        return NULL;
    *line    = (struct app_line){ .event = event, .n_fields = n };
    char *at = (char *)&line->fields[n];
    for (size_t i = 0; i < n; i++) {
        line->fields[i] = fields[i];
        if (fields[i].text == NULL)
            continue;
        size_t n_bytes       = strnlen(fields[i].text, VALUE_BYTES_MAX);
        line->fields[i].text = il__put(&at, fields[i].text, n_bytes);
        *at++                = '\0';
    }
    return line;
}

/* The count is taken before the line is sent and given back when it arrives, so never more than
 * COMING_MAX are in memory, however many threads log at once. */
void
http_app_log_fields(struct http_server *s, const struct http_app *app, size_t event,
                    const struct http_log_field *fields, size_t n_fields)
{
    struct http_log *l = s->log;
    struct app_line *line;

    CHECK(event < app->n_events && n_fields <= HTTP_LOG_FIELDS_MAX);
    if (!is_on(l, app->events[event].level))
        return;
    bool room = atomic_fetch_add(&l->n_coming, 1) < COMING_MAX;
    line      = room ? copy_line(&app->events[event], fields, n_fields) : NULL;
    if (line != NULL && http_post(s, write_app_line, line))
        return;
    il__free(line);
    atomic_fetch_sub(&l->n_coming, 1);
    atomic_fetch_add(&l->n_dropped, 1);
}
