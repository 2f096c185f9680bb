/*
 * config.c: configuration files. Any content gives entries with a name and a line, or an error with
 * its location.
 */
#include "cli/config.h"

#include <stdio.h>

#include "fuzz/fuzz.h"

struct seen {
    size_t n;
    size_t n_lines;
};

static il_status
on_entry(void *cookie, const struct il__config_entry *entry, il_error *reterr)
{
    struct seen *seen = cookie;
    int64_t      number;

    CHECK(entry->name != NULL && strlen(entry->name) <= 256);
    CHECK(entry->line >= 1 && entry->line <= seen->n_lines + 1);
    CHECK(!entry->list || entry->text != NULL);
    seen->n++;
    const struct cli_key *key = il__cli_key_find(entry->name, strlen(entry->name));
    if (key == NULL || entry->text == NULL)
        return IL_OK;
    return il__cli_spec_parse(&key->spec, entry->text, &number, reterr);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    char       *text = fuzz_text(data, n_bytes);
    struct seen seen = { .n_lines = 1 };
    il_error    err  = { .message = "" };

    if (n_bytes > IL__CONFIG_BYTES_MAX) {
        free(text);
        return 0;
    }
    /* What YAML takes for the end of a line: also CR, NEL, LS and PS. One per byte is more than
     * enough. */
    seen.n_lines += n_bytes;
    il_status st = il__config_parse(&il__cli_yaml, "f.yml", text, n_bytes, on_entry, &seen, &err);
    if (st != IL_OK) {
        CHECK(st == IL_INVAL && strncmp(err.message, "f.yml:", 6) == 0);
        CHECK(err.message[6] >= '0' && err.message[6] <= '9');
    }
    free(text);
    return 0;
}
