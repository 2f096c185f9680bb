/*
 * value.h: stores single values in struct members. All functions check the row's limits; errors
 * name the row. Private to this folder.
 */
#ifndef IL_WIRE_VALUE_H
#define IL_WIRE_VALUE_H

#include "wire/parse.h"

il_status il__value_number(struct wire_parser *p, const struct wire_field *f, int64_t number,
                           void *into) MUST_USE;
il_status il__value_text(struct wire_parser *p, const struct wire_field *f, const char *text,
                         size_t n_bytes, void *into) MUST_USE;
/* The data is not copied. */
il_status il__value_bytes(struct wire_parser *p, const struct wire_field *f, const char *data,
                          size_t n_bytes, void *into) MUST_USE;
il_status il__value_choice(struct wire_parser *p, const struct wire_field *f, const char *text,
                           void *into) MUST_USE;
/* One name, or several separated by commas, into *set. */
il_status il__value_add(struct wire_parser *p, const struct wire_field *f, const char *text,
                        uint32_t *set) MUST_USE;
il_status il__value_time(struct wire_parser *p, const struct wire_field *f, const char *text,
                         void *into) MUST_USE;
/* A number as JSON writes it. */
il_status il__value_decimal(struct wire_parser *p, const struct wire_field *f, const char *text,
                            void *into) MUST_USE;
void      il__value_bit(void *into, size_t offset, uint32_t bit, bool value);
/* null. */
void il__value_nothing(const struct wire_parser *p, const struct wire_field *f, void *into);

/* IL_INVAL: "field 'NAME': …". */
il_status il__value_refuse(const struct wire_parser *p, const struct wire_field *f, const char *fmt,
                           ...) PRINTF_LIKE(3, 4);
il_status il__value_no_memory(const struct wire_parser *p);

#endif
