/*
 * value.c: stores single values, from JSON or text, in struct members; and builds error messages.
 */
#include "wire/value.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/decimal.h"
#include "base/error.h"
#include "base/parse.h"
#include "base/suggest.h"
#include "wire/field.h"

il_status
il__value_refuse(const struct wire_parser *p, const struct wire_field *f, const char *fmt, ...)
{
    char    why[400];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(why, sizeof why, fmt, ap);
    va_end(ap);
    return il__error_set(p->reterr, IL_INVAL, "field '%s': %s", f->name, why);
}

il_status
il__value_no_memory(const struct wire_parser *p)
{
    return il__error_nomem(p->reterr);
}

static void
number_limits(const struct wire_field *f, int64_t *ret_min, int64_t *ret_max)
{
    *ret_min = f->min;
    *ret_max = f->max;
    if (f->min != 0 || f->max != 0)
        return;
    switch (f->kind) {
    case WIRE_INT32:
        *ret_min = INT32_MIN;
        *ret_max = INT32_MAX;
        break;
    case WIRE_UINT32:
        *ret_max = UINT32_MAX;
        break;
    case WIRE_INT64:
        *ret_min = -WIRE_NUMBER_MAX;
        *ret_max = WIRE_NUMBER_MAX;
        break;
    default:
        *ret_max = WIRE_NUMBER_MAX;
    }
}

il_status
il__value_number(struct wire_parser *p, const struct wire_field *f, int64_t number, void *into)
{
    int64_t min;
    int64_t max;

    number_limits(f, &min, &max);
    if (number < min)
        return il__value_refuse(p, f, "must be at least %" PRId64 ", not %" PRId64, min, number);
    if (number > max)
        return il__value_refuse(p, f, "must be at most %" PRId64 ", not %" PRId64, max, number);
    il__wire_set_number(f, into, number);
    if (f->kind == WIRE_UINT64 && f->bit != 0) {
        uint32_t word = il__wire_word(into, f->offset2) | f->bit;
        memcpy((char *)into + f->offset2, &word, sizeof word);
    }
    return IL_OK;
}

il_status
il__value_decimal(struct wire_parser *p, const struct wire_field *f, const char *text, void *into)
{
    bool    limited = f->min != 0 || f->max != 0;
    int64_t min     = limited ? f->min : -IL__DECIMAL_MAX;
    int64_t max     = limited ? f->max : IL__DECIMAL_MAX;
    int64_t number  = 0;
    bool    beyond  = false; /* of what fits */
    char    limit[IL__DECIMAL_TEXT_BYTES];

    switch (il__decimal_parse(text, f->digits, &number)) {
    case IL__DECIMAL_OK:
        break;
    case IL__DECIMAL_DIGITS:
        return il__value_refuse(p, f, "%.40s has more than %u digits after the point", text,
                                f->digits);
    case IL__DECIMAL_RANGE:
        beyond = true;
        break;
    case IL__DECIMAL_INVALID:
    default:
        return il__value_refuse(p, f, "'%.40s' is not a number", text);
    }
    if (number < min || (beyond && text[0] == '-'))
        return il__value_refuse(p, f, "must be at least %s, not %.40s",
                                il__decimal_text(min, f->digits, limit), text);
    if (number > max || beyond)
        return il__value_refuse(p, f, "must be at most %s, not %.40s",
                                il__decimal_text(max, f->digits, limit), text);
    il__wire_set_number(f, into, number);
    return IL_OK;
}

il_status
il__value_text(struct wire_parser *p, const struct wire_field *f, const char *text, size_t n_bytes,
               void *into)
{
    if (f->max > 0 && n_bytes > (size_t)f->max)
        return il__value_refuse(p, f, "must have at most %" PRId64 " bytes, not %zu", f->max,
                                n_bytes);
    if (n_bytes < (size_t)f->min)
        return n_bytes == 0
                   ? il__value_refuse(p, f, "must not be empty")
                   : il__value_refuse(p, f, "must have at least %" PRId64 " bytes, not %zu", f->min,
                                      n_bytes);
    if (p->copy) {
        char *copy = il__arena_alloc(p->mem, n_bytes + 1);
        if (copy == NULL)
            return il__value_no_memory(p);
        memcpy(copy, text, n_bytes);
        copy[n_bytes] = '\0';
        text          = copy;
    }
    memcpy((char *)into + f->offset, &text, sizeof text);
    return IL_OK;
}

il_status
il__value_bytes(struct wire_parser *p, const struct wire_field *f, const char *data, size_t n_bytes,
                void *into)
{
    if (f->max > 0 && n_bytes > (size_t)f->max)
        return il__value_refuse(p, f, "must have at most %" PRId64 " bytes, not %zu", f->max,
                                n_bytes);
    memcpy((char *)into + f->offset, &data, sizeof data);
    memcpy((char *)into + f->offset2, &n_bytes, sizeof n_bytes);
    return IL_OK;
}

void
il__value_bit(void *into, size_t offset, uint32_t bit, bool value)
{
    uint32_t word = il__wire_word(into, offset);

    word = value ? word | bit : word & ~bit;
    memcpy((char *)into + offset, &word, sizeof word);
}

static const char *
next_choice(const void *cookie, size_t i)
{
    const struct wire_field *f = cookie;

    return f->choices[i];
}

static il_status
refuse_choice(struct wire_parser *p, const struct wire_field *f, const char *text)
{
    const char *meant     = il__suggest(text, next_choice, f);
    char        list[256] = "";
    size_t      n         = 0;

    for (size_t i = 0; f->choices[i] != NULL && n < sizeof list; i++) {
        int more = snprintf(list + n, sizeof list - n, "%s%s", i > 0 ? ", " : "", f->choices[i]);
        n += more > 0 ? (size_t)more : 0;
    }
    return il__value_refuse(p, f, "'%.40s' is not one of %s%s%s%s", text, list,
                            meant != NULL ? " (did you mean '" : "", meant != NULL ? meant : "",
                            meant != NULL ? "'?)" : "");
}

static bool
find_choice(const struct wire_field *f, const char *text, int64_t *ret)
{
    for (int64_t i = f->min; f->choices[i - f->min] != NULL; i++) {
        if (strcmp(f->choices[i - f->min], text) == 0) {
            *ret = i;
            return true;
        }
    }
    *ret = f->choose != NULL ? f->choose(text) : f->min - 1;
    return *ret >= f->min;
}

il_status
il__value_choice(struct wire_parser *p, const struct wire_field *f, const char *text, void *into)
{
    int64_t value;

    if (!find_choice(f, text, &value))
        return refuse_choice(p, f, text);
    il__wire_set_number(f, into, value);
    return IL_OK;
}

/* One name, or several separated by commas, into *set. */
il_status
il__value_add(struct wire_parser *p, const struct wire_field *f, const char *text, uint32_t *set)
{
    for (;;) {
        size_t  n = strcspn(text, ",");
        char    name[64];
        int64_t value;
        if (n >= sizeof name)
            return refuse_choice(p, f, text);
        memcpy(name, text, n);
        name[n] = '\0';
        if (!find_choice(f, name, &value))
            return refuse_choice(p, f, name);
        *set |= UINT32_C(1) << value;
        if (text[n] == '\0')
            return IL_OK;
        text += n + 1;
    }
}

il_status
il__value_time(struct wire_parser *p, const struct wire_field *f, const char *text, void *into)
{
    int64_t wall_ms;

    if (!il__time_parse(text, &wall_ms))
        return il__value_refuse(p, f, "'%.40s' is not a time such as 2026-11-15T03:37:00.250Z",
                                text);
    /* An answer may contain any time; in an input 0 would mean "none". */
    if (!p->answer && wall_ms < 1)
        return il__value_refuse(p, f, "'%.40s' must be after 1970-01-01", text);
    if (f->max != 0 && (wall_ms < f->min || wall_ms > f->max))
        return il__value_refuse(p, f, "'%.40s' is too far in the future", text);
    il__wire_set_number(f, into, wall_ms);
    return IL_OK;
}

/* null: reset the member. */
void
il__value_nothing(const struct wire_parser *p, const struct wire_field *f, void *into)
{
    bool minus = (f->flags & WIRE_MINUS) != 0;

    switch (f->kind) {
    case WIRE_TEXT:
    case WIRE_META: {
        /* In an answer only members may be NULL that print "" as "" and omit NULL. */
        unsigned    both = WIRE_HIDE | WIRE_NOT_NULL;
        const char *text = p->answer && (f->flags & both) != both ? "" : NULL;
        memcpy((char *)into + f->offset, &text, sizeof text);
        break;
    }
    case WIRE_BYTES:
        memset((char *)into + f->offset, 0, sizeof(void *));
        memset((char *)into + f->offset2, 0, sizeof(size_t));
        break;
    case WIRE_BOOL:
        il__value_bit(into, f->offset, f->bit, false);
        break;
    case WIRE_OBJECT:
        if (f->bit != 0)
            il__value_bit(into, f->offset2, f->bit, false);
        break;
    case WIRE_OBJECTS:
    case WIRE_TEXTS:
        memset((char *)into + f->offset2, 0, sizeof(size_t));
        break;
    case WIRE_SIZE:
    case WIRE_ELAPSED:
        break;
    case WIRE_CHOICE:
    case WIRE_SET:
        il__wire_set_number(f, into, 0);
        break;
    case WIRE_TIME:
        il__wire_set_number(f, into, minus ? INT64_MAX : 0);
        break;
    case WIRE_DECIMAL:
        il__wire_set_number(f, into, minus ? INT64_MIN : 0);
        break;
    default:
        il__wire_set_number(f, into, minus ? -1 : 0);
        if (f->bit != 0)
            il__value_bit(into, f->offset2, f->bit, false);
    }
}
