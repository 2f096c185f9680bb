/*
 * parse.h: parsing by tables, for the files of this folder.
 */
#ifndef IL_WIRE_PARSE_H
#define IL_WIRE_PARSE_H

#include "wire/wire.h"

struct wire_parser {
    void    **mem;    /* arena for what must be made */
    bool      copy;   /* texts and bytes are copied to it, instead of borrowed */
    bool      answer; /* the object that is parsed is an answer (WIRE_ANSWER) */
    il_error *reterr;
};

/* As il__wire_parse(). */
il_status il__wire_parse_into(struct wire_parser *p, const struct wire_object *o,
                              const struct wire_object *also, const json_t *json, void *into) MUST_USE;

/* The field of that name, by its number; *ret_base64: it is given as base64. n_fields: there is none. */
size_t il__wire_find(const struct wire_object *o, const char *name, bool *ret_base64);
/* Was it set before, from the path? */
bool il__wire_was_given(const struct wire_field *f, const void *into);
/* IL_INVAL: there is no such field; which one was meant? */
il_status il__wire_refuse_unknown(il_error *reterr, const struct wire_object *o,
                                  const struct wire_object *also, const char *name);

#endif
