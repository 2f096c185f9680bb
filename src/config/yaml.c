/*
 * yaml.c: parses YAML into a flat list of entries with line numbers. libyaml reads; this file
 * decides what is acceptable: one mapping of names to scalars, lists of scalars, and further
 * mappings. load.c decides what the names mean.
 */
#include "base/buf.h"
#include "base/error.h"
#include "config/libyaml.h"

#define DEPTH_MAX 4
#define NAME_BYTES_MAX 256

struct reader {
    const struct il__yaml *yaml;
    yaml_parser_t          parser;
    const char            *path;
    il__config_entry_fn   *fn;
    void                  *cookie;
    il_error              *reterr;
};

/* An event, and who frees it. */
struct event {
    const struct il__yaml *yaml;
    yaml_event_t           it;
};

static void
event_release(struct event *e)
{
    if (e->yaml != NULL)
        e->yaml->yaml_event_delete(&e->it);
}

#define AUTO_EVENT AUTO(event_release)

static il_status
fail(struct reader *r, size_t line, const char *what)
{
    return il__error_set(r->reterr, IL_INVAL, "%s:%zu: %s", r->path, line, what);
}

static il_status
next_event(struct reader *r, struct event *event)
{
    if (r->yaml->yaml_parser_parse(&r->parser, &event->it) != 0) {
        event->yaml = r->yaml;
        return IL_OK;
    }
    /* On failure libyaml leaves the event undefined: there is nothing to free. */
    if (r->parser.error == YAML_MEMORY_ERROR)
        return il__error_set(r->reterr, IL_NOMEM, "%s: out of memory", r->path);
    return fail(r, r->parser.problem_mark.line + 1,
                r->parser.problem != NULL ? r->parser.problem : "invalid YAML");
}

static size_t
line_of(const struct event *event)
{
    return event->it.start_mark.line + 1;
}

/* The text of a scalar, or NULL if it is null or contains a NUL byte. */
static const char *
scalar_text(const struct event *event)
{
    const char *text  = (const char *)event->it.data.scalar.value;
    bool        plain = event->it.data.scalar.style == YAML_PLAIN_SCALAR_STYLE;

    if (strlen(text) != event->it.data.scalar.length)
        return NULL;
    if (plain && (text[0] == '\0' || strcmp(text, "~") == 0 || strcmp(text, "null") == 0))
        return NULL;
    return text;
}

static il_status
emit(struct reader *r, const struct il__config_entry *entry)
{
    il_error  why = { .status = IL_INVAL };
    il_status st  = r->fn(r->cookie, entry, &why);

    if (st != IL_OK)
        return il__error_set(r->reterr, st, "%s:%zu: %s", r->path, entry->line, why.message);
    return IL_OK;
}

static il_status
read_list(struct reader *r, const char *name, size_t line)
{
    AUTO_BUF struct il__buf items = { 0 };

    il__buf_init(&items, IL__CONFIG_BYTES_MAX);
    for (size_t n = 0;; n++) {
        AUTO_EVENT struct event event = { 0 };
        il_status               st    = next_event(r, &event);
        if (st != IL_OK)
            return st;
        if (event.it.type == YAML_SEQUENCE_END_EVENT)
            break;
        const char *text = event.it.type == YAML_SCALAR_EVENT ? scalar_text(&event) : NULL;
        if (text == NULL || strchr(text, ',') != NULL)
            return fail(r, line_of(&event), "a list item must be text without commas");
        if (n > 0)
            il__buf_addc(&items, ',');
        il__buf_adds(&items, text);
    }
    struct il__config_entry entry = { name, il__buf_str(&items), true, line };
    return emit(r, &entry);
}

static il_status read_mapping(struct reader *r, const char *prefix, unsigned depth);

static il_status
read_value(struct reader *r, const char *name, unsigned depth)
{
    AUTO_EVENT struct event event = { 0 };
    il_status               st    = next_event(r, &event);

    if (st != IL_OK)
        return st;
    if (event.it.type == YAML_SEQUENCE_START_EVENT)
        return read_list(r, name, line_of(&event));
    if (event.it.type == YAML_MAPPING_START_EVENT && depth < DEPTH_MAX)
        return read_mapping(r, name, depth + 1);
    if (event.it.type == YAML_MAPPING_START_EVENT)
        return fail(r, line_of(&event), "mappings are nested too deeply");
    if (event.it.type != YAML_SCALAR_EVENT)
        return fail(r, line_of(&event), "anchors and aliases are not supported");

    struct il__config_entry entry = { name, scalar_text(&event), false, line_of(&event) };
    return emit(r, &entry);
}

static il_status
read_mapping(struct reader *r, const char *prefix, unsigned depth)
{
    for (;;) {
        AUTO_EVENT struct event event = { 0 };
        AUTO_BUF struct il__buf name  = { 0 };
        il_status               st    = next_event(r, &event);

        il__buf_init(&name, NAME_BYTES_MAX);
        if (st != IL_OK)
            return st;
        if (event.it.type == YAML_MAPPING_END_EVENT)
            return IL_OK;
        const char *key = event.it.type == YAML_SCALAR_EVENT ? scalar_text(&event) : NULL;
        if (key == NULL)
            return fail(r, line_of(&event), "expected a key");
        il__buf_addf(&name, "%s%s%s", prefix, prefix[0] != '\0' ? "." : "", key);
        if (name.failed)
            return fail(r, line_of(&event), "key too long");
        st = read_value(r, il__buf_str(&name), depth);
        if (st != IL_OK)
            return st;
    }
}

/* The events between the start and the end of the stream: nothing, or one document with one
 * mapping. */
static il_status
read_document(struct reader *r)
{
    unsigned n_documents = 0;

    for (;;) {
        AUTO_EVENT struct event event = { 0 };
        il_status               st    = next_event(r, &event);
        if (st != IL_OK || event.it.type == YAML_STREAM_END_EVENT)
            return st;
        switch (event.it.type) {
        case YAML_STREAM_START_EVENT:
        case YAML_DOCUMENT_END_EVENT:
            break;
        case YAML_DOCUMENT_START_EVENT:
            if (++n_documents > 1)
                st = fail(r, line_of(&event), "expected a single document");
            break;
        case YAML_MAPPING_START_EVENT:
            st = read_mapping(r, "", 0);
            break;
        case YAML_SCALAR_EVENT:
            if (scalar_text(&event) != NULL)
                st = fail(r, line_of(&event), "expected 'name: value'");
            break;
        default:
            st = fail(r, line_of(&event), "expected 'name: value'");
            break;
        }
        if (st != IL_OK)
            return st;
    }
}

il_status
il__config_parse(const struct il__yaml *yaml, const char *path, const char *data, size_t n_bytes,
                 il__config_entry_fn *fn, void *cookie, il_error *reterr)
{
    struct reader r = { .yaml = yaml, .path = path, .fn = fn, .cookie = cookie, .reterr = reterr };

    if (yaml->yaml_parser_initialize(&r.parser) == 0)
        return il__error_set(reterr, IL_NOMEM, "%s: out of memory", path);
    yaml->yaml_parser_set_input_string(&r.parser, (const unsigned char *)data, n_bytes);
    il_status st = read_document(&r);
    yaml->yaml_parser_delete(&r.parser);
    return st;
}
