/*
 * duration.c: durations. A printed duration parses to the same value, and parsed values are within
 * bounds.
 */
#include "base/parse.h"
#include "fuzz/fuzz.h"

static void
round_trip(int64_t ms)
{
    char    text[IL__DURATION_TEXT_BYTES];
    int64_t again = -2;

    CHECK(il_parse_duration(il__duration_text(ms, text), &again, NULL) == IL_OK);
    CHECK(again == ms);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    char    *text = fuzz_text(data, n_bytes);
    il_error err  = { .message = "" };
    int64_t  ms   = -2;

    il_status st = il_parse_duration(text, &ms, &err);
    if (st == IL_OK) {
        CHECK(ms == IL_FOREVER || ms >= 0);
        CHECK(strlen(text) > 0);
        round_trip(ms);
    } else {
        CHECK(st == IL_INVAL && ms == -2 && err.message[0] != '\0');
        CHECK(strchr(err.message, '\n') == NULL || strchr(text, '\n') != NULL);
    }
    uint64_t number = 0;
    if (n_bytes >= sizeof number) {
        memcpy(&number, data, sizeof number);
        round_trip((int64_t)(number % (UINT64_C(366) * 86400000 + 1)));
    }
    free(text);
    return 0;
}
