/*
 * ui_cookie.c: the text of session cookies. Signing and checking them is up to ui_session.c.
 */
#include <stdio.h>

#include "base/parse.h"
#include "http/ui.h"

#define UUID_BYTES (DATA_ID_BYTES - 1)
#define MS_DIGITS_MAX 15

void
http_ui_cookie_text(struct http_ui_cookie *c)
{
    int n = snprintf(c->text, sizeof c->text, "%s.%lld", c->key_id, (long long)c->ends_ms);

    CHECK(n > 0);
    CHECK((size_t)n < sizeof c->text);
}

bool
http_ui_cookie_parse(const char *value, size_t n_bytes, struct http_ui_cookie *ret)
{
    char     digits[MS_DIGITS_MAX + 1] = { 0 };
    uint64_t ends_ms;

    *ret = (struct http_ui_cookie){ .ends_ms = 0 };
    if (n_bytes <= UUID_BYTES + 1 + DATA_SIGNATURE_BYTES)
        return false;
    size_t      n_text    = n_bytes - DATA_SIGNATURE_BYTES;
    size_t      n_digits  = n_text - UUID_BYTES - 1;
    const char *signature = value + n_text + 1;
    if (n_digits > MS_DIGITS_MAX || value[UUID_BYTES] != '.' || value[n_text] != '.')
        return false;
    memcpy(digits, value + UUID_BYTES + 1, n_digits);
    memcpy(ret->key_id, value, UUID_BYTES);
    memcpy(ret->text, value, n_text);
    memcpy(ret->signature, signature, DATA_SIGNATURE_BYTES - 1);
    if (!il__is_uuid(ret->key_id) || digits[0] == '0' ||
        !il__parse_u64(digits, INT64_MAX, &ends_ms) ||
        strspn(ret->signature, "0123456789abcdef") != DATA_SIGNATURE_BYTES - 1)
        return false;
    ret->ends_ms = (int64_t)ends_ms;
    return true;
}

size_t
http_ui_cookie_find(const char *header, const char *name, const char **ret_value, size_t *ret_bytes)
{
    size_t n_name = strlen(name);
    size_t n      = 0;

    while (*header != '\0') {
        header += strspn(header, " \t;");
        size_t n_pair = strcspn(header, ";");
        if (n_pair > n_name && memcmp(header, name, n_name) == 0 && header[n_name] == '=') {
            size_t n_value = n_pair - n_name - 1;
            while (n_value > 0 && strchr(" \t", header[n_name + n_value]) != NULL)
                n_value--;
            if (n++ == 0) {
                *ret_value = header + n_name + 1;
                *ret_bytes = n_value;
            }
        }
        header += n_pair;
    }
    return n;
}
