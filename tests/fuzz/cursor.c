/*
 * cursor.c: the cursors of listings: parse(print(x)) = x, and print(parse(text)) parses to the same
 * again.
 */
#include "core/cursor.h"
#include "core/op.h"
#include "fuzz/fuzz.h"

static void
round_trip(const char *key, uint64_t number)
{
    il_op       op      = { .type = IL_OP_LIST };
    const char *again   = NULL;
    uint64_t    n_again = 0;
    const char *cursor  = il__op_cursor(&op, key, number);

    CHECK(cursor != NULL);
    CHECK(il__cursor_parse(cursor, &again, &n_again));
    CHECK(n_again == number && strcmp(again, key) == 0);
    il_op_release(&op);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    char       *text   = fuzz_text(data, n_bytes);
    const char *key    = NULL;
    uint64_t    number = 0;

    if (il__cursor_parse(text, &key, &number)) {
        CHECK(il_check_key(key, NULL) == IL_OK && number <= INT64_MAX);
        CHECK(key > text && key <= text + n_bytes);
        round_trip(key, number);
    }
    if (n_bytes > sizeof number) {
        memcpy(&number, data, sizeof number);
        char *name = fuzz_text(data + sizeof number, n_bytes - sizeof number);
        if (il_check_key(name, NULL) == IL_OK)
            round_trip(name, number & INT64_MAX);
        free(name);
    }
    free(text);
    return 0;
}
