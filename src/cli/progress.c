/* progress.c: the line on the terminal that shows how far a long command is. See cli.h. */
#include <inttypes.h>
#include <stdatomic.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/cli.h"

#define TEXT_BYTES_MAX 1024
#define COLUMNS_UNKNOWN 80
#define INTERVAL_NS (100 * IL__NS_PER_MS) /* a terminal need not print every item of many */

/* Any thread may show progress. Two that find the interval over print two lines, one over the
 * other, each in a single write: harmless. */
static atomic_int_fast64_t shown_ns; /* when the line was printed last; 0: none is on the screen */

static size_t
columns(void)
{
    struct winsize size = { 0 };

    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col
                                                                           : COLUMNS_UNKNOWN;
}

/* The longest part of the text that has at most n_bytes and ends with a whole character. */
static size_t
cut(const char *text, size_t n_bytes)
{
    size_t n = strlen(text);

    if (n <= n_bytes)
        return n;
    n = n_bytes;
    while (n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80)
        n--;
    return n;
}

void
il__cli_progress(const struct cli *cli, uint64_t done, uint64_t total, const char *text)
{
    AUTO_BUF struct il__buf line   = { 0 };
    int64_t                 now_ns = il__clock_boot_ns();
    int64_t                 was_ns = atomic_load(&shown_ns);

    if (cli->quiet || isatty(STDERR_FILENO) == 0 ||
        (total > 0 && done < total && was_ns != 0 && now_ns - was_ns < INTERVAL_NS))
        return;
    il__buf_init(&line, TEXT_BYTES_MAX);
    if (total > 0)
        il__buf_addf(&line, "%" PRIu64 "/%" PRIu64 " ", done, total);
    il__cli_escape(&line, text);
    const char *shown = il__buf_str(&line);
    atomic_store(&shown_ns, now_ns);
    /* A lost progress line does no harm. */
    (void)fprintf(stderr, "\r\033[K%.*s", (int)cut(shown, columns() - 1), shown);
}

void
il__cli_progress_end(void)
{
    if (atomic_exchange(&shown_ns, 0) != 0)
        (void)fputs("\r\033[K", stderr); /* the same */
}
