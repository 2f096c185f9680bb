/*
 * yaml.c: builds a tree from libyaml's events; the contract is in yaml.h. Everything is bounded:
 * bytes (by the caller), nodes, depth. Aliases, which could make a small file large, are refused.
 */
#include "apps/common/yaml.h"

#include <stdio.h>
#include <yaml.h>

#include "base/arena.h"

struct doc_reader {
    yaml_parser_t     parser;
    const char       *text;
    void            **mem;
    size_t            n_nodes;
    struct doc_fault *fault;
};

#define AUTO_EVENT AUTO(yaml_event_delete)

static il_status
fail(struct doc_reader *r, size_t line, const char *text)
{
    r->fault->line = line;
    (void)snprintf(r->fault->text, sizeof r->fault->text, "%s", text);
    return IL_INVAL;
}

/* The line of a reader error, for which libyaml gives only the byte offset. */
static size_t
line_at(const struct doc_reader *r)
{
    size_t line = 1;

    for (size_t i = 0; i < r->parser.problem_offset; i++)
        line += r->text[i] == '\n';
    return line;
}

static il_status
next_event(struct doc_reader *r, yaml_event_t *event)
{
    if (yaml_parser_parse(&r->parser, event) != 0)
        return IL_OK;
    memset(event, 0, sizeof *event); /* libyaml leaves it undefined, and the caller deletes it */
    if (r->parser.error == YAML_MEMORY_ERROR)
        return IL_NOMEM;
    const char *problem = r->parser.problem != NULL ? r->parser.problem : "invalid YAML";
    size_t      line    = r->parser.problem_mark.line + 1;
    if (strstr(problem, "cannot start any token") != NULL)
        return fail(r, line, "invalid YAML: unexpected character (a tab, or an unquoted value?)");
    if (r->parser.error == YAML_READER_ERROR)
        return fail(r, line_at(r), "invalid YAML: not UTF-8, or contains control characters");
    (void)fail(r, line, "invalid YAML: ");
    size_t n = strlen(r->fault->text);
    (void)snprintf(r->fault->text + n, sizeof r->fault->text - n, "%s%s%s",
                   r->parser.context != NULL ? r->parser.context : "",
                   r->parser.context != NULL ? ", " : "", problem);
    return IL_INVAL;
}

static size_t
line_of(const yaml_event_t *event)
{
    return event->start_mark.line + 1;
}

static struct doc_node *
new_node(struct doc_reader *r, enum doc_type type, size_t line)
{
    struct doc_node *node = il__arena_alloc(r->mem, sizeof *node);

    if (node != NULL)
        *node = (struct doc_node){ .type = type, .line = (uint32_t)line };
    return node;
}

static bool
is_null(const char *text)
{
    return text[0] == '\0' || strcmp(text, "~") == 0 || strcmp(text, "null") == 0 ||
           strcmp(text, "Null") == 0 || strcmp(text, "NULL") == 0;
}

static il_status
read_scalar(struct doc_reader *r, const yaml_event_t *event, struct doc_node **ret)
{
    const char      *text = (const char *)event->data.scalar.value;
    struct doc_node *node = new_node(r, DOC_TEXT, line_of(event));

    if (node == NULL)
        return IL_NOMEM;
    if (event->data.scalar.anchor != NULL)
        return fail(r, node->line, "anchors (&name) are not supported");
    if (event->data.scalar.tag != NULL)
        return fail(r, node->line, "tags (!name) are not supported");
    if (strlen(text) != event->data.scalar.length)
        return fail(r, node->line, "text must not contain a NUL character");
    node->plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    if (!node->plain || !is_null(text)) {
        node->text = il__arena_strdup(r->mem, text);
        if (node->text == NULL)
            return IL_NOMEM;
    }
    *ret = node;
    return IL_OK;
}

static il_status read_node(struct doc_reader *r, const yaml_event_t *event, unsigned depth,
                           struct doc_node **ret);

static il_status
read_list(struct doc_reader *r, struct doc_node *list, unsigned depth)
{
    struct doc_node **end = &list->first;

    for (;; list->n++, end = &(*end)->next) {
        AUTO_EVENT yaml_event_t event = { 0 };
        il_status               st    = next_event(r, &event);
        if (st != IL_OK || event.type == YAML_SEQUENCE_END_EVENT)
            return st;
        st = read_node(r, &event, depth, end);
        if (st != IL_OK)
            return st;
    }
}

static il_status
read_key(struct doc_reader *r, const struct doc_node *map, const yaml_event_t *event,
         struct doc_node **ret)
{
    if (event->type == YAML_ALIAS_EVENT)
        return fail(r, line_of(event), "aliases (*name) are not supported");
    if (event->type != YAML_SCALAR_EVENT)
        return fail(r, line_of(event), "expected a key");
    il_status st = read_scalar(r, event, ret);
    if (st != IL_OK)
        return st;
    const char *key = (*ret)->text;
    if (key == NULL)
        return fail(r, line_of(event), "expected a key");
    if (strcmp(key, "<<") == 0)
        return fail(r, line_of(event), "merge keys (<<) are not supported");
    if (map->n == DOC_KEYS_MAX)
        return fail(r, line_of(event), "the mapping has too many keys");
    for (const struct doc_node *m = map->first; m != NULL; m = m->next) {
        if (strcmp(m->key, key) != 0)
            continue;
        (void)snprintf(r->fault->text, sizeof r->fault->text,
                       "'%.60s' is set twice (first on line %u)", key, m->key_line);
        r->fault->line = line_of(event);
        return IL_INVAL;
    }
    return IL_OK;
}

static il_status
read_map(struct doc_reader *r, struct doc_node *map, unsigned depth)
{
    struct doc_node **end = &map->first;

    for (;; map->n++) {
        AUTO_EVENT yaml_event_t name  = { 0 };
        AUTO_EVENT yaml_event_t value = { 0 };
        struct doc_node        *key   = NULL;
        struct doc_node        *node  = NULL;

        il_status st = next_event(r, &name);
        if (st != IL_OK || name.type == YAML_MAPPING_END_EVENT)
            return st;
        st = read_key(r, map, &name, &key);
        if (st == IL_OK)
            st = next_event(r, &value);
        if (st == IL_OK)
            st = read_node(r, &value, depth, &node);
        if (st != IL_OK)
            return st;
        node->key      = key->text;
        node->key_line = key->line;
        *end           = node;
        end            = &node->next;
    }
}

static il_status
read_node(struct doc_reader *r, const yaml_event_t *event, unsigned depth, struct doc_node **ret)
{
    bool list = event->type == YAML_SEQUENCE_START_EVENT;
    bool map  = event->type == YAML_MAPPING_START_EVENT;

    if (++r->n_nodes > DOC_NODES_MAX)
        return fail(r, line_of(event), "the file has too many values");
    if (event->type == YAML_SCALAR_EVENT)
        return read_scalar(r, event, ret);
    if (!list && !map)
        return fail(r, line_of(event), "aliases (*name) are not supported");
    if (depth == DOC_DEPTH_MAX)
        return fail(r, line_of(event), "lists and mappings are nested too deeply");
    /* The members of both events have the same offsets in their structs, but do not rely on it. */
    if ((list ? event->data.sequence_start.anchor : event->data.mapping_start.anchor) != NULL)
        return fail(r, line_of(event), "anchors (&name) are not supported");
    if ((list ? event->data.sequence_start.tag : event->data.mapping_start.tag) != NULL)
        return fail(r, line_of(event), "tags (!name) are not supported");
    struct doc_node *node = new_node(r, list ? DOC_LIST : DOC_MAP, line_of(event));
    if (node == NULL)
        return IL_NOMEM;
    node->plain  = map && event->data.mapping_start.style == YAML_FLOW_MAPPING_STYLE;
    il_status st = list ? read_list(r, node, depth + 1) : read_map(r, node, depth + 1);
    if (st == IL_OK)
        *ret = node;
    return st;
}

/* One document, with nothing after it. */
static il_status
read_stream(struct doc_reader *r, struct doc_node **ret)
{
    unsigned n_documents = 0;

    *ret = NULL;
    for (;;) {
        AUTO_EVENT yaml_event_t event = { 0 };
        il_status               st    = next_event(r, &event);
        if (st != IL_OK)
            return st;
        if (event.type == YAML_STREAM_END_EVENT)
            return *ret != NULL ? IL_OK : fail(r, 1, "the file is empty");
        if (event.type == YAML_DOCUMENT_START_EVENT && ++n_documents > 1)
            return fail(r, line_of(&event), "expected a single document");
        if (event.type == YAML_STREAM_START_EVENT || event.type == YAML_DOCUMENT_START_EVENT ||
            event.type == YAML_DOCUMENT_END_EVENT)
            continue;
        st = read_node(r, &event, 0, ret);
        if (st != IL_OK)
            return st;
    }
}

il_status
il__doc_read(void **mem, const char *text, size_t n_bytes, struct doc_node **ret,
             struct doc_fault *fault)
{
    struct doc_reader r    = { .text = text, .mem = mem, .fault = fault };
    struct doc_node  *root = NULL;

    if (yaml_parser_initialize(&r.parser) == 0)
        return IL_NOMEM;
    yaml_parser_set_input_string(&r.parser, (const unsigned char *)text, n_bytes);
    yaml_parser_set_encoding(&r.parser, YAML_UTF8_ENCODING);
    il_status st = read_stream(&r, &root);
    yaml_parser_delete(&r.parser);
    if (st == IL_OK)
        *ret = root;
    return st;
}
