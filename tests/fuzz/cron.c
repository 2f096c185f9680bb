/*
 * cron.c: schedules. An accepted one ticks on whole minutes, in increasing order; a refused one has
 * a reason.
 */
#include "core/cron.h"

#include "core/limits.h"
#include "fuzz/fuzz.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    char           *text = fuzz_text(data, n_bytes);
    il_error        err  = { .message = "" };
    struct il__cron c    = { .minutes = 0 };

    il_status st = il__cron_parse(text, &c, &err);
    if (st == IL_OK) {
        int64_t t = INT64_C(1800000000000);
        CHECK(c.minutes != 0 && c.hours != 0 && c.months != 0);
        CHECK((c.days & 1) == 0 && (c.months & ~0x1FFEU) == 0 && (c.weekdays & ~0x7FU) == 0);
        for (unsigned i = 0; i < 20; i++) {
            int64_t next = il__cron_next(&c, t);
            CHECK(next > t && next % 60000 == 0 && next != IL__NEVER);
            CHECK(il__cron_next(&c, next - 1) == next);
            t = next;
        }
    } else {
        CHECK(st == IL_INVAL && err.message[0] != '\0' && c.minutes == 0);
    }
    free(text);
    return 0;
}
