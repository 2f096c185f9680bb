/*
 * yaml.h: a YAML document as a small tree, each node with its line number. Only what our files
 * need: one document of mappings, lists and scalars; no anchors, aliases, merge keys or tags. Keys
 * are texts, and unique.
 */
#ifndef IL_APPS_COMMON_YAML_H
#define IL_APPS_COMMON_YAML_H

#include "base/base.h"

#define DOC_DEPTH_MAX 16
#define DOC_NODES_MAX 20000
#define DOC_KEYS_MAX 1000 /* of one mapping */

enum doc_type {
    DOC_TEXT,
    DOC_LIST,
    DOC_MAP
};

struct doc_node {
    enum doc_type    type;
    bool             plain;          /* DOC_TEXT: without quotes; DOC_MAP: in braces, {…} */
    uint32_t         line, key_line; /* from 1 */
    const char      *key;            /* of a member of a mapping; else NULL */
    const char      *text;           /* DOC_TEXT; NULL = null */
    size_t           n;              /* members */
    struct doc_node *first, *next;
};

struct doc_fault {
    size_t line;
    char   text[200];
};

/* The tree lives in *mem (il__arena). IL_OK; IL_INVAL: *fault says where and why; IL_NOMEM. */
il_status il__doc_read(void **mem, const char *text, size_t n_bytes, struct doc_node **ret,
                       struct doc_fault *fault) MUST_USE;

/* A remark about a file: an error (what it describes is refused), or advice. */
struct doc_remark {
    const char *path;
    size_t      line;  /* 0 = the whole file */
    const char *field; /* "steps[2].depends_on"; "" = none */
    const char *text;
    bool        is_error;
};
/* One call at a time, but from any thread. Strings live until it returns. */
typedef void doc_remark_fn(void *cookie, const struct doc_remark *remark);

#endif
