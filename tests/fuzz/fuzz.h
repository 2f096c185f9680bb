/*
 * fuzz.h: shared by the fuzz targets. A target is one LLVMFuzzerTestOneInput(); it is linked with
 * libFuzzer (-Dfuzz=true: fuzz-NAME) and with replay.c, which plays the corpus as an ordinary test
 * (replay-NAME).
 */
#ifndef T_FUZZ_H
#define T_FUZZ_H

#include "base/base.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

/* The input as a string of its own, so that one byte too many is noticed; free() it. */
static inline char *
fuzz_text(const uint8_t *data, size_t n_bytes)
{
    char *text = malloc(n_bytes + 1);

    CHECK(text != NULL);
    if (n_bytes > 0)
        memcpy(text, data, n_bytes);
    text[n_bytes] = '\0';
    return text;
}

#endif
