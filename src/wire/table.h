/*
 * table.h: macros for table rows. STRUCT is the struct that a table describes. Private to this
 * folder.
 */
#ifndef IL_WIRE_TABLE_H
#define IL_WIRE_TABLE_H

#include "wire/wire.h"

#define AT(member) offsetof(STRUCT, member)

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

/* The names of enums, in their order. */
extern const char *const il__wire_modes[],
    *const il__wire_run_states[], *const il__wire_policies[], *const il__wire_job_states[],
                                                                  *const     il__wire_strategies[],
                                                                      *const il__wire_missed[];

#endif
