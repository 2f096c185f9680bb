/*
 * key.c: names of keys, holders and tenants. No I/O, no state.
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
        return il__error_set(reterr, IL_INVAL, "the %s has a control character in it", what);
    return IL_OK;
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
