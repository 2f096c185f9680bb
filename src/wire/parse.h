/*
 * parse.h: table-driven parsing. Private to this folder.
 */
#ifndef IL_WIRE_PARSE_H
#define IL_WIRE_PARSE_H

#include "wire/wire.h"

struct wire_parser {
    void    **mem;    /* arena for allocated values */
    bool      copy;   /* copy texts and bytes into it instead of borrowing them */
    bool      answer; /* the parsed object is an answer (WIRE_ANSWER) */
    il_error *reterr;
};

/* As il__wire_parse(). */
il_status il__wire_parse_into(struct wire_parser *p, const struct wire_object *o,
                              const struct wire_object *also, const json_t *json, void *into)
    MUST_USE;

/* The index of the field with that name; *ret_base64: it is given as base64. n_fields: unknown. */
size_t il__wire_find(const struct wire_object *o, const char *name, bool *ret_base64);
/* Was it set before, from the path? */
bool il__wire_was_given(const struct wire_field *f, const void *into);
/* IL_INVAL: no such field; suggests a similar name. */
il_status il__wire_refuse_unknown(il_error *reterr, const struct wire_object *o,
                                  const struct wire_object *also, const char *name);

#endif
