/*
 * table.h: macros for the tables of wire.h. For .c files that define tables: define STRUCT, the
 * struct that a table describes, before its rows.
 */
#ifndef IL_WIRE_TABLE_H
#define IL_WIRE_TABLE_H

#include "wire/wire.h"

#define AT(member) offsetof(STRUCT, member)

/* A row of any kind that needs no more than this; `type` without its WIRE_. */
#define F(field, member, type, flag, text)                                                      \
    {                                                                                           \
        .name = field, .kind = WIRE_##type, .flags = (flag), .offset = AT(member), .help = text \
    }
#define BOUNDED(field, member, type, flag, least, most, text)                                      \
    {                                                                                              \
        .name = field, .kind = WIRE_##type, .flags = (flag), .offset = AT(member), .min = (least), \
        .max = (most), .help = text                                                                \
    }
#define TEXT(field, flag, member, least, most, text)                                             \
    {                                                                                            \
        .name = field, .kind = WIRE_TEXT, .flags = (flag), .offset = AT(member), .min = (least), \
        .max = (most), .help = text                                                              \
    }
#define META(field, flag, member, most, text)                                                   \
    {                                                                                           \
        .name = field, .kind = WIRE_META, .flags = (flag), .offset = AT(member), .max = (most), \
        .help = text                                                                            \
    }
#define NUMBER(type, field, flag, member, least, most, text)                                       \
    {                                                                                              \
        .name = field, .kind = WIRE_##type, .flags = (flag), .offset = AT(member), .min = (least), \
        .max = (most), .help = text                                                                \
    }
#define BOOL(field, flag, member, mask, text)                                                   \
    {                                                                                           \
        .name = field, .kind = WIRE_BOOL, .flags = (flag), .offset = AT(member), .bit = (mask), \
        .help = text                                                                            \
    }
#define CHOICE(field, flag, member, names, least, text)                                            \
    {                                                                                              \
        .name = field, .kind = WIRE_CHOICE, .flags = (flag), .offset = AT(member), .min = (least), \
        .choices = (names), .help = text                                                           \
    }
#define BYTES(field, flag, member, size, most, text)                              \
    {                                                                             \
        .name = field, .kind = WIRE_BYTES, .flags = (flag), .offset = AT(member), \
        .offset2 = AT(size), .max = (most), .help = text                          \
    }
#define SIZE(field, member, size, text)                                                           \
    {                                                                                             \
        .name = field, .kind = WIRE_SIZE, .offset = AT(member), .offset2 = AT(size), .help = text \
    }
#define TIME(field, flag, member, text)                                                       \
    {                                                                                         \
        .name = field, .kind = WIRE_TIME, .flags = (flag), .offset = AT(member), .help = text \
    }
#define OBJECTS(field, flag, member, number, table, text)                           \
    {                                                                               \
        .name = field, .kind = WIRE_OBJECTS, .flags = (flag), .offset = AT(member), \
        .offset2 = AT(number), .object = &(table), .help = text                     \
    }
#define ONE(field, member, table, text)                                                            \
    {                                                                                              \
        .name = field, .kind = WIRE_OBJECT, .offset = AT(member), .object = &(table), .help = text \
    }

/* A table. Local ones: static OBJECT(…); */
#define OBJECT(id, label, rows, flag, text)                      \
    const struct wire_object id = { .name     = label,           \
                                    .fields   = (rows),          \
                                    .n_fields = ARRAY_LEN(rows), \
                                    .help     = text,            \
                                    .bytes    = sizeof(STRUCT),  \
                                    .flags    = (flag) }

#endif
