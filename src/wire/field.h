/*
 * field.h: the members of a struct that a table names, for the files of this folder.
 */
#ifndef IL_WIRE_FIELD_H
#define IL_WIRE_FIELD_H

#include "wire/wire.h"

#define WIRE_NUMBER_MAX ((INT64_C(1) << 53) - 1) /* what every reader of JSON holds exactly */

/* Any of the numbers at f->offset: INT32, UINT32, INT64, UINT64, CHOICE, TIME, WAIT. */
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

/* Is the member set: anything but NULL, 0, or as nothing of it was given? */
bool il__wire_is_set(const struct wire_field *f, const void *from);

/* One member as `"name":value,`, or nothing. */
void il__wire_print_field(struct il__buf *b, const struct wire_field *f, const void *from,
                          unsigned flags);

#endif
