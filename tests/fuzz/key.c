/*
 * key.c: names. The check accepts exactly what a second, naive implementation of the rules accepts.
 */
#include "core/key.h"

#include "base/parse.h"
#include "fuzz/fuzz.h"

/* The next character of UTF-8 (RFC 3629), -1 when it is none; *p moves on. */
static int64_t
next_char(const unsigned char **p)
{
    static const uint32_t least[] = { 0, 0x80, 0x800, 0x10000 };
    uint32_t              c       = *(*p)++;
    unsigned              n = c < 0x80 ? 0 : c >= 0xF0 ? 3 : c >= 0xE0 ? 2 : c >= 0xC0 ? 1 : 9;

    if (n == 9 || c > 0xF7)
        return -1;
    if (n > 0)
        c &= 0x3FU >> n;
    for (unsigned i = 0; i < n; i++) {
        if ((**p & 0xC0) != 0x80)
            return -1;
        c = c << 6 | (*(*p)++ & 0x3FU);
    }
    if (c < least[n] || c > 0x10FFFF || (c >= 0xD800 && c <= 0xDFFF))
        return -1;
    return c;
}

static bool
acceptable(const char *text, size_t n_max)
{
    const unsigned char *p = (const unsigned char *)text;

    if (text[0] == '\0' || strlen(text) > n_max)
        return false;
    while (*p != '\0') {
        int64_t c = next_char(&p);
        if (c < 0x20 || (c >= 0x7F && c <= 0x9F))
            return false;
    }
    return true;
}

static void
check_one(il_status (*check)(const char *, il_error *), const char *text, size_t n_max)
{
    il_error err = { .message = "" };

    il_status st = check(text, &err);
    CHECK((st == IL_OK) == acceptable(text, n_max));
    CHECK(st == IL_OK || (st == IL_INVAL && err.status == IL_INVAL && err.message[0] != '\0'));
    CHECK(strchr(err.message, '\n') == NULL);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    char *text = fuzz_text(data, n_bytes);

    check_one(il_check_key, text, IL_KEY_BYTES_MAX);
    check_one(il_check_holder, text, IL_HOLDER_BYTES_MAX);
    check_one(il_check_tenant, text, IL_TENANT_BYTES_MAX);
    size_t n_class = il__key_class_bytes(text);
    CHECK(n_class <= strlen(text) && memchr(text, ':', n_class) == NULL);
    CHECK(text[n_class] == '\0' || text[n_class] == ':');
    size_t n_root = il__holder_root_bytes(text);
    CHECK(n_root <= strlen(text) && memchr(text, '/', n_root) == NULL);
    CHECK(il__holder_same_root(text, text) && !il__holder_is_ancestor(text, text));
    /* Both halves of the input as two holders. */
    char *inner = fuzz_text(data + n_bytes / 2, n_bytes - n_bytes / 2);
    if (il__holder_is_ancestor(text, inner))
        CHECK(il__holder_same_root(text, inner) && !il__holder_is_ancestor(inner, text) &&
              strlen(text) < strlen(inner));
    CHECK(il__holder_same_root(text, inner) == il__holder_same_root(inner, text));
    free(inner);
    free(text);
    return 0;
}
