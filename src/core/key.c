/*
 * key.c: checks names of keys, holders and tenants. No I/O, no state.
 */
#include "core/key.h"

#include "base/error.h"
#include "base/parse.h"

size_t
il__key_class_bytes(const char *key)
{
    return strcspn(key, ":");
}

size_t
il__holder_root_bytes(const char *holder)
{
    return strcspn(holder, "/");
}

bool
il__holder_same_root(const char *a, const char *b)
{
    size_t n = il__holder_root_bytes(a);

    return n == il__holder_root_bytes(b) && memcmp(a, b, n) == 0;
}

bool
il__holder_is_ancestor(const char *outer, const char *inner)
{
    size_t n = strlen(outer);

    return strncmp(outer, inner, n) == 0 && inner[n] == '/';
}

/* Are all eight bytes within 0x20..0x7E? Subtracting borrows into the top bit of smaller bytes,
 * adding carries into that of 0x7F. */
static bool
eight_are_plain(const char *s)
{
    const uint64_t ones = UINT64_C(0x0101010101010101);
    uint64_t       w;

    memcpy(&w, s, sizeof w);
    return ((w | (w - 0x20 * ones) | (w + ones)) & (0x80 * ones)) == 0;
}

size_t
il__plain_name_bytes(const char *text, size_t n_max)
{
    size_t n = text != NULL ? strlen(text) : 0;

    if (n > n_max)
        return 0;
    if (n < 8) {
        for (size_t i = 0; i < n; i++) {
            unsigned char ch = (unsigned char)text[i];
            if (ch < 0x20 || ch >= 0x7F)
                return 0;
        }
        return n;
    }
    for (size_t i = 0; i + 8 <= n; i += 8) {
        if (!eight_are_plain(text + i))
            return 0;
    }
    return eight_are_plain(text + n - 8) ? n : 0; /* the last eight, which may overlap */
}

il_status
il__check_text(const char *what, const char *text, size_t n_min, size_t n_max, bool multiline,
               il_error *reterr)
{
    if (text == NULL)
        return il__error_set(reterr, IL_INVAL, "no %s given", what);
    size_t n = strnlen(text, n_max + 1);
    if (n < n_min)
        return il__error_set(reterr, IL_INVAL, "the %s is empty", what);
    if (n > n_max)
        return il__error_set(reterr, IL_INVAL, "the %s is longer than %zu bytes", what, n_max);
    if (!il__utf8_valid(text, n))
        return il__error_set(reterr, IL_INVAL, "the %s is not valid UTF-8", what);
    if (!multiline && il__utf8_has_control(text, n))
        return il__error_set(reterr, IL_INVAL, "the %s contains a control character", what);
    return IL_OK;
}

il_status
il__check_optional(const char *what, const char *text, size_t n_max, bool multiline,
                   il_error *reterr)
{
    return text == NULL ? IL_OK : il__check_text(what, text, 0, n_max, multiline, reterr);
}

il_status
il_check_key(const char *key, il_error *reterr)
{
    return il__check_text("key", key, 1, IL_KEY_BYTES_MAX, false, reterr);
}

il_status
il_check_holder(const char *holder, il_error *reterr)
{
    return il__check_text("holder", holder, 1, IL_HOLDER_BYTES_MAX, false, reterr);
}

il_status
il_check_tenant(const char *tenant, il_error *reterr)
{
    return il__check_text("tenant", tenant, 1, IL_TENANT_BYTES_MAX, false, reterr);
}
