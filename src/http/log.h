/*
 * log.h: the event log, one line per event on stderr: a JSON object, or text for people on a
 * terminal. Events have fixed names (log.def).
 *
 * Used on the loop only, except during start and shutdown; apps have http_app_log() (app.h) for
 * their own threads. Lines are buffered and written once per turn of the loop. A stalled reader
 * never blocks the loop: lines are then dropped, and counted.
 *
 * Names that come from callers are escaped. Never logged: keys, Authorization, payloads, results,
 * meta, URLs.
 */
#ifndef IL_HTTP_LOG_H
#define IL_HTTP_LOG_H

#include "http/http.h"

struct http_log;

enum http_event {
#define X(id, level, name, text) HTTP_EVENT_##id,
#include "http/log.def"
#undef X
    HTTP_EVENT_COUNT
};

il_status http_log_open(struct http_server *s, il_error *reterr)
    MUST_USE;                                   /* s->o->log_json, s->o->log_level; stderr */
void     http_log_close(struct http_server *s); /* flushes */
void     http_log_set_level(struct http_server *s, enum http_log_level level);
void     http_log_flush(struct http_server *s); /* at the end of each turn of the loop */
uint64_t http_log_dropped(const struct http_server *s);
bool     http_log_on(const struct http_server *s, enum http_event event);

/* A line with a message; fmt NULL = none. */
void http_log(struct http_server *s, enum http_event event, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* A request has ended: level debug, or warning if it failed. */
void http_log_request(struct http_request *r);

/*
 * A line with fields: begin, fields, end. begin returns false if the level excludes the event; then
 * nothing may follow:
 *
 *     if (http_log_begin(s, HTTP_EVENT_listening)) {
 *         http_log_text(s, "address", address);
 *         http_log_end(s);
 *     }
 */
bool http_log_begin(struct http_server *s, enum http_event event) MUST_USE;
/* The same for an event of an app, which has its own table. */
bool http_log_begin_app(struct http_server *s, enum http_log_level level, const char *name)
    MUST_USE;
void http_log_text(struct http_server *s, const char *name, const char *value); /* NULL: left out */
void http_log_int(struct http_server *s, const char *name, int64_t value);
/* milliseconds with three decimals */
void http_log_ms(struct http_server *s, const char *name, int64_t ns);
void http_log_who(struct http_server        *s,
                  const struct http_request *r); /* request_id, tenant_id, key_id, route */
void http_log_end(struct http_server *s);

#endif
