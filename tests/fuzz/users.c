/*
 * users.c: users from CSV. Any text gives users that can be stored, or faults with their lines.
 */
#include "apps/ingest/links.h"
#include "base/arena.h"
#include "fuzz/fuzz.h"

struct lines {
    size_t last, n;
};

static void
take_fault(void *cookie, size_t line, const char *text)
{
    struct lines *l = cookie;

    CHECK(line >= 1 && text[0] != '\0');
    l->last = MAX(l->last, line);
    l->n++;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    char               *text  = fuzz_text(data, n_bytes);
    void               *mem   = NULL;
    struct ingest_user *users = NULL;
    struct lines        l     = { 0 };
    size_t              n = 0, n_lines = 1;
    il_error            err = { .message = "" };

    for (size_t i = 0; i < n_bytes; i++)
        n_lines += data[i] == '\n';
    il_status st = il__ingest_users_parse(text, n_bytes, &mem, &users, &n, take_fault, &l, &err);
    CHECK(st == IL_OK || st == IL_INVAL);
    CHECK(l.last <= n_lines && (st == IL_INVAL || l.n == 0));
    for (size_t i = 0; i < n; i++) {
        struct ingest_user again;
        CHECK(users[i].name[0] != '\0' && strlen(users[i].name) <= LIVERC_TEXT_BYTES_MAX);
        CHECK(strlen(users[i].transponder) <= LIVERC_TEXT_BYTES_MAX);
        CHECK(il__ingest_user_take(&users[i], &mem, &again, &err) == IL_OK);
        CHECK(strcmp(again.name, users[i].name) == 0); /* what was normalised stays as it is */
        CHECK(strcmp(again.email, users[i].email) == 0);
    }
    il__arena_free(&mem);
    free(text);
    return 0;
}
