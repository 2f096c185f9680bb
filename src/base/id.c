/*
 * id.c: UUIDv7 (RFC 9562): 48 bits of wall-clock milliseconds, then random bits. Later ids sort
 * later, as far as the clock allows; that helps readers, and no code relies on it.
 */
#include <stdio.h>
#include <sys/random.h>

#include "base/clock.h"

il_status
il_uuid(char out[37])
{
    unsigned char b[16];

    if (out == NULL)
        return IL_INVAL;
    if (getrandom(b, sizeof b, 0) != (ssize_t)sizeof b)
        return IL_STORE;
    uint64_t ms = (uint64_t)il__clock_wall_ms();
    for (unsigned i = 0; i < 6; i++)
        b[i] = (unsigned char)(ms >> (40 - 8 * i));
    b[6] = (unsigned char)((b[6] & 0x0FU) | 0x70U); /* version 7 */
    b[8] = (unsigned char)((b[8] & 0x3FU) | 0x80U); /* variant */
    (void)snprintf(out, 37, "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
                   b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12],
                   b[13], b[14], b[15]);
    return IL_OK;
}
