/*
 * ui_files.c: serves the files of the admin page, which are compiled into the binary
 * (tools/embed-files), from memory. A file changes with the binary only, and its ETag is a hash of
 * its content: browsers ask each time and mostly get 304.
 */
#include "http/ui.h"

#include <strings.h>

#include "http/handler.h"
#include "http/server.h"

struct file {
    const char          *name, *type, *etag, *etag_gzip;
    const unsigned char *data, *gzip;
    size_t               n_bytes, n_gzip_bytes;
};

#include "http/ui_files.inc"

/* ---- what a client accepts ------------------------------------------------------------------- */

/* "0.25": 250. 0 if it is no number. */
static int
number_of(const char *at)
{
    int weight = 0;

    for (int unit = 1000; unit > 0 && (*at == '.' || (*at >= '0' && *at <= '9')); at++) {
        if (*at == '.')
            continue;
        weight += (*at - '0') * unit;
        unit /= 10;
    }
    return MIN(weight, 1000);
}

/* The weight among the parameters of one element of a list: ";level=1;q=0.25". */
static int
weight_of(const char *at, size_t n_bytes)
{
    const char *end = at + n_bytes;

    while (at < end) {
        at += strspn(at, "; \t");
        if (at < end && (at[0] == 'q' || at[0] == 'Q') && at[1] == '=')
            return number_of(at + 2);
        at += strcspn(at, ";,");
    }
    return 1000;
}

int
http_ui_weight(const char *header, const char *name)
{
    size_t n_name = strlen(name);

    while (header != NULL && *header != '\0') {
        header += strspn(header, ", \t");
        size_t n_bytes = strcspn(header, ",");
        size_t n_word  = strcspn(header, ",; \t");
        if (n_word == n_name && strncasecmp(header, name, n_name) == 0)
            return weight_of(header + n_word, n_bytes - n_word);
        header += n_bytes;
    }
    return -1;
}

/* ---- answers --------------------------------------------------------------------------------- */

static void
send_file(struct http_request *r, const struct file *f)
{
    bool        gzip  = http_ui_weight(http_request_header(r, "Accept-Encoding"), "gzip") > 0;
    const char *etag  = gzip ? f->etag_gzip : f->etag;
    const char *known = http_request_header(r, "If-None-Match");

    r->is_file = true;
    http_header(r, "ETag", etag);
    http_header(r, "Vary", "Accept-Encoding");
    if (known != NULL && (strcmp(known, "*") == 0 || strstr(known, etag) != NULL)) {
        http_answer(r, 304);
        return;
    }
    r->content_type = f->type;
    if (gzip)
        http_header(r, "Content-Encoding", "gzip");
    http_answer_constant(r, 200, gzip ? f->gzip : f->data, gzip ? f->n_gzip_bytes : f->n_bytes);
}

static void
send_named(struct http_request *r, const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        if (strcmp(files[i].name, name) == 0) {
            send_file(r, &files[i]);
            return;
        }
    }
    http_fail(r, 404, "NOT_FOUND", "request", NULL, "no such route: %.80s", r->path);
}

void
http_ui_index(struct http_request *r)
{
    send_named(r, "index.html");
}

void
http_ui_file(struct http_request *r)
{
    send_named(r, r->args[0]);
}

void
http_ui_folder(struct http_request *r)
{
    http_header(r, "Location", "/ui/");
    http_answer(r, 301);
}

bool
http_ui_redirect(struct http_request *r)
{
    const char *accept = http_request_header(r, "Accept");
    int         html   = http_ui_weight(accept, "text/html");

    http_header(r, "Vary", "Accept");
    if (html <= 0 || html <= http_ui_weight(accept, "application/json"))
        return false;
    http_header(r, "Location", "/ui/");
    http_answer(r, 302);
    return true;
}
