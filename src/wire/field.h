/*
 * field.h: access to struct members by table row. Private to this folder.
 */
#ifndef IL_WIRE_FIELD_H
#define IL_WIRE_FIELD_H

#include "wire/wire.h"

#define WIRE_NUMBER_MAX ((INT64_C(1) << 53) - 1) /* every JSON reader represents these exactly */

/* The number at f->offset: INT32, UINT32, INT64, UINT64, CHOICE, TIME, WAIT or DECIMAL. */
int64_t il__wire_number(const struct wire_field *f, const void *from);
void    il__wire_set_number(const struct wire_field *f, void *into, int64_t number);

/* A pointer at an offset; a uint32_t; a size_t. */
static inline const void *
il__wire_pointer(const void *from, size_t offset)
{
    const void *p;

    memcpy(&p, (const char *)from + offset, sizeof p);
    return p;
}

static inline uint32_t
il__wire_word(const void *from, size_t offset)
{
    uint32_t word;

    memcpy(&word, (const char *)from + offset, sizeof word);
    return word;
}

static inline size_t
il__wire_size(const void *from, size_t offset)
{
    size_t size;

    memcpy(&size, (const char *)from + offset, sizeof size);
    return size;
}

/* Is the member set, that is, not NULL, 0 or its "not given" value? */
bool il__wire_is_set(const struct wire_field *f, const void *from);

/* One member as `"name":value,`, or nothing. */
void il__wire_print_field(struct il__buf *b, const struct wire_field *f, const void *from,
                          unsigned flags);

#endif
