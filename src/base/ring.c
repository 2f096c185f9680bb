/*
 * ring.c: the message ring; the contract is in ring.h.
 *
 * A writer draws a number (the board's word SAID) and owns that number's cell: it marks the cell as
 * being written, writes, and marks it as written. A reader accepts a cell that is marked as written
 * with the expected number both before and after it has copied it, and whose checksum is right. Two
 * writers whose numbers are a whole round apart may meet in one cell; then the checksum or the
 * number is wrong, and readers see a gap.
 */
#include "base/ring.h"

#include "base/hash.h"

#define CELLS 32
#define CELL_WORDS 512
#define TEXT_WORDS (CELL_WORDS - 2)
#define STUCK_NS 1000000000 /* a cell not written by now never will be */

/* What a cell's mark contains besides the number. */
enum {
    IS_WRITTEN = 1,
    IS_GAP     = 2
};

/* Accessed by several processes at once, so word by word. */
struct il__ring_cell {
    _Atomic uint64_t mark;  /* number, IS_* and length, see mark_of() */
    _Atomic uint64_t check; /* of number and text */
    _Atomic uint64_t text[TEXT_WORDS];
};

_Static_assert(sizeof(struct il__ring_cell) == CELL_WORDS * 8, "a cell is a page");
_Static_assert(CELLS * sizeof(struct il__ring_cell) == IL__BOARD_RING_BYTES, "the ring fits");
_Static_assert(TEXT_WORDS * 8 > IL__RING_TEXT_BYTES_MAX, "a text fits");

static uint64_t
mark_of(uint32_t number, unsigned flags, size_t n_bytes)
{
    return (uint64_t)number << 32 | (uint64_t)n_bytes << 8 | flags;
}

bool
il__ring_open(struct il__board *b)
{
    struct il__ring_cell *none = NULL;

    if (b->mapped || atomic_load(&b->ring) != NULL)
        return atomic_load(&b->ring) != NULL;
    struct il__ring_cell *made = il__calloc(CELLS, sizeof *made);
    if (made != NULL && !atomic_compare_exchange_strong(&b->ring, &none, made))
        il__free(made); /* another thread was first */
    return atomic_load(&b->ring) != NULL;
}

static bool
is_plain(const char *text, size_t n)
{
    if (n == 0 || n > IL__RING_TEXT_BYTES_MAX)
        return false;
    for (size_t i = 0; i < n; i++) {
        if ((unsigned char)text[i] < ' ' || text[i] == 0x7f)
            return false;
    }
    return true;
}

bool
il__ring_fits(const char *text)
{
    return is_plain(text, strnlen(text, IL__RING_TEXT_BYTES_MAX + 1));
}

void
il__ring_say(struct il__board *b, const char *text)
{
    struct il__ring_cell *ring  = atomic_load(&b->ring);
    size_t                n     = text != NULL ? strnlen(text, IL__RING_TEXT_BYTES_MAX + 1) : 0;
    unsigned              flags = text == NULL ? IS_GAP : 0;

    if (ring == NULL || (text != NULL && !il__ring_fits(text)))
        return;
    uint32_t              number = atomic_fetch_add(&b->words[IL__BOARD_SAID], 1);
    struct il__ring_cell *cell   = &ring[number % CELLS];
    atomic_store(&cell->mark, mark_of(number, flags, n));
    for (size_t i = 0; i < n; i += 8) {
        uint64_t word = 0;
        memcpy(&word, text + i, MIN(n - i, 8));
        atomic_store_explicit(&cell->text[i / 8], word, memory_order_relaxed);
    }
    atomic_store(&cell->check, il__hash_stable(text != NULL ? text : "", n, number));
    atomic_store(&cell->mark, mark_of(number, flags | IS_WRITTEN, n));
    il__board_changed(b);
}

void
il__ring_reader_init(struct il__ring_reader *r, const struct il__board *b)
{
    *r = (struct il__ring_reader){ .next = il__board_read(b, IL__BOARD_SAID) };
}

/* Copy a cell; false: the content does not match its mark. */
static bool
copy(const struct il__ring_cell *cell, uint32_t number, uint64_t mark, char *text)
{
    size_t n = (size_t)(uint32_t)mark >> 8;

    if (n > IL__RING_TEXT_BYTES_MAX)
        return false;
    for (size_t i = 0; i < n; i += 8) {
        uint64_t word = atomic_load_explicit(&cell->text[i / 8], memory_order_relaxed);
        memcpy(text + i, &word, MIN(n - i, 8));
    }
    text[n] = '\0';
    return atomic_load(&cell->check) == il__hash_stable(text, n, number) &&
           atomic_load(&cell->mark) == mark && ((mark & IS_GAP) != 0 || is_plain(text, n));
}

enum il__ring_read
il__ring_read(struct il__ring_reader *r, const struct il__board *b, int64_t now_ns,
              char text[IL__RING_TEXT_BYTES_MAX + 1])
{
    const struct il__ring_cell *ring = atomic_load(&b->ring);
    uint32_t                    said = il__board_read(b, IL__BOARD_SAID);

    if (ring == NULL || said == r->next)
        return IL__RING_NONE;
    if (said - r->next > CELLS) { /* overwritten; or the file is damaged */
        *r = (struct il__ring_reader){ .next = said };
        return IL__RING_GAP;
    }
    const struct il__ring_cell *cell = &ring[r->next % CELLS];
    uint64_t                    mark = atomic_load(&cell->mark);
    bool written = (uint32_t)(mark >> 32) == r->next && (mark & IS_WRITTEN) != 0;
    if (!written && (r->stuck_ns == 0 || now_ns - r->stuck_ns < STUCK_NS)) {
        if (r->stuck_ns == 0)
            r->stuck_ns = now_ns;
        return IL__RING_NONE;
    }
    uint32_t number = r->next;
    *r              = (struct il__ring_reader){ .next = number + 1 };
    if (!written || !copy(cell, number, mark, text) || (mark & IS_GAP) != 0)
        return IL__RING_GAP;
    return IL__RING_TEXT;
}
