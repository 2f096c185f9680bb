/*
 * cookie.c: headers that the admin page's files and sessions read: Cookie, Accept. A session that
 * is accepted is spelled exactly as we print it.
 */
#include "fuzz/fuzz.h"
#include "http/ui.h"

static void
check_session(const char *value, size_t n_bytes)
{
    struct http_ui_cookie c, again;

    if (!http_ui_cookie_parse(value, n_bytes, &c))
        return;
    again = c;
    http_ui_cookie_text(&again);
    CHECK(strcmp(again.text, c.text) == 0);
    CHECK(strlen(c.text) + 1 + strlen(c.signature) == n_bytes);
    CHECK(memcmp(value, c.text, strlen(c.text)) == 0);
}

static void
check_cookies(const char *header, const char *name)
{
    const char *value   = NULL;
    size_t      n_bytes = 0;
    size_t      n       = http_ui_cookie_find(header, name, &value, &n_bytes);

    if (n == 0)
        return;
    CHECK(value >= header + strlen(name) + 1);
    CHECK(value + n_bytes <= header + strlen(header));
    CHECK(memchr(value, ';', n_bytes) == NULL);
    check_session(value, n_bytes);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    char *text = fuzz_text(data, n_bytes);

    check_session(text, strlen(text));
    check_cookies(text, "interlock");
    check_cookies(text, "__Host-interlock");
    int weight = http_ui_weight(text, "gzip");
    CHECK(weight >= -1);
    CHECK(weight <= 1000);
    free(text);
    return 0;
}
