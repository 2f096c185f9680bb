/*
 * out.c: messages, colours, escaping, JSON. Tables are in grid.c.
 */
#include "cli/out.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <inttypes.h>
#include <stdarg.h>
#include <unistd.h>

#include "base/parse.h"
#include "cli/cli.h"

#define LINE_BYTES_MAX 8192

const char *
il__cli_style(FILE *file, enum cli_style style)
{
    static const char *const codes[] = {
        [CLI_PLAIN] = "\033[0m", [CLI_BOLD] = "\033[1m",   [CLI_DIM] = "\033[2m",
        [CLI_RED] = "\033[31m",  [CLI_GREEN] = "\033[32m", [CLI_YELLOW] = "\033[33m",
    };
    const char *no_color = getenv("NO_COLOR");
    const char *term     = getenv("TERM");

    if (isatty(fileno(file)) == 0 || (no_color != NULL && no_color[0] != '\0') || term == NULL ||
        strcmp(term, "dumb") == 0)
        return "";
    return codes[style];
}

/* Length of the UTF-8 character at s, which has n bytes left; 0 if invalid. */
static size_t
utf8_bytes(const char *s, size_t n)
{
    for (size_t len = 1; len <= MIN(n, 4); len++) {
        if (il__utf8_valid(s, len))
            return len;
    }
    return 0;
}

/* Does this UTF-8 character reorder the text around it? U+061C, U+200E, U+200F, U+202A..U+202E,
 * U+2066..U+2069: with these, one key can look like another. */
static bool
is_bidi(const char *s, size_t n)
{
    const unsigned char *u = (const unsigned char *)s;

    if (n == 2)
        return u[0] == 0xD8 && u[1] == 0x9C;
    return n == 3 && u[0] == 0xE2 &&
           ((u[1] == 0x80 && (u[2] == 0x8E || u[2] == 0x8F || (u[2] >= 0xAA && u[2] <= 0xAE))) ||
            (u[1] == 0x81 && u[2] >= 0xA6 && u[2] <= 0xA9));
}

static void
escape_bytes(struct il__buf *b, const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        il__buf_addf(b, "\\x%02x", (unsigned)(unsigned char)s[i]);
}

void
il__cli_escape(struct il__buf *b, const char *text)
{
    size_t n = strlen(text);

    for (size_t i = 0; i < n;) {
        size_t len = utf8_bytes(text + i, n - i);
        if (len > 0 && is_bidi(text + i, len)) {
            escape_bytes(b, text + i, len);
            i += len;
        } else if (len > 0 && !il__utf8_has_control(text + i, len)) {
            il__buf_add(b, text + i, len);
            i += len;
        } else if (text[i] == '\n' || text[i] == '\t') {
            il__buf_adds(b, text[i] == '\n' ? "\\n" : "\\t");
            i++;
        } else {
            escape_bytes(b, text + i, 1);
            i++;
        }
    }
}

void
il__cli_puts(const char *text)
{
    AUTO_BUF struct il__buf b = { 0 };

    il__buf_init(&b, 16 * strlen(text) + 1);
    il__cli_escape(&b, text);
    /* stdout remembers its errors; il__cli_out_finish() checks once. */
    (void)fputs(il__buf_str(&b), stdout);
}

static void message(enum cli_style style, const char *fmt, va_list ap) PRINTF_LIKE(2, 0);

static void
message(enum cli_style style, const char *fmt, va_list ap)
{
    AUTO_BUF struct il__buf raw  = { 0 };
    AUTO_BUF struct il__buf line = { 0 };

    il__buf_init(&raw, LINE_BYTES_MAX);
    il__buf_init(&line, 4 * LINE_BYTES_MAX);
    il__buf_vaddf(&raw, fmt, ap);
    il__cli_escape(&line, il__buf_str(&raw));
    /* Flush earlier output first, in case both go to one terminal; stdout remembers its errors.
     * If stderr is closed, the message is lost. */
    (void)fflush(stdout);
    il__cli_progress_end();
    (void)fprintf(stderr, "%sinterlock:%s %s\n", il__cli_style(stderr, style),
                  il__cli_style(stderr, CLI_PLAIN), il__buf_str(&line));
}

void
il__cli_error(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    message(CLI_RED, fmt, ap);
    va_end(ap);
}

void
il__cli_note(const struct cli *cli, const char *fmt, ...)
{
    va_list ap;

    if (cli->quiet)
        return;
    va_start(ap, fmt);
    message(CLI_DIM, fmt, ap);
    va_end(ap);
}

int
il__cli_usage(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    message(CLI_RED, fmt, ap);
    va_end(ap);
    return il_status_exit(IL_INVAL);
}

int
il__cli_fail(const il_error *err)
{
    il__cli_error("%s", err->message[0] != '\0' ? err->message : il_status_text(err->status));
    return il_status_exit(err->status);
}

int
il__cli_fail_memory(void)
{
    il__cli_error("%s", il_status_text(IL_NOMEM));
    return il_status_exit(IL_NOMEM);
}

/* A closed descriptor is replaced by /dev/null opened in the wrong direction: reading stdin and
 * writing stdout then fail as they would have before, instead of hitting a file of ours. */
void
il__cli_out_init(void)
{
    for (int fd = 0; fd <= 2; fd++) {
        if (fcntl(fd, F_GETFD) >= 0)
            continue;
        int null = open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY);
        CHECK(null == fd || null < 0);
    }
}

/* stdio keeps only a flag of an earlier failed write; a pipe still knows whether it has a
 * reader. */
static int
out_errno(void)
{
    struct pollfd fd = { STDOUT_FILENO, POLLOUT, 0 };

    if (errno != 0)
        return errno;
    return poll(&fd, 1, 0) > 0 && (fd.revents & POLLERR) != 0 ? EPIPE : EIO;
}

int
il__cli_out_finish(int status)
{
    errno = 0;
    if (fflush(stdout) == 0 && ferror(stdout) == 0)
        return status;
    il__cli_error("cannot write to standard output: %s", strerror(out_errno()));
    return status != 0 ? status : CLI_EXIT_IO;
}

int
il__cli_json_print(json_t *value)
{
    size_t flags = JSON_ENCODE_ANY | JSON_REAL_PRECISION(10) |
                   (isatty(STDOUT_FILENO) != 0 ? JSON_INDENT(2) : JSON_COMPACT);

    if (value == NULL)
        return il__cli_fail_memory();
    char *text = json_dumps(value, flags);
    json_decref(value);
    if (text == NULL)
        return il__cli_fail_memory();
    (void)puts(text); /* stdout remembers its errors */
    free(text);
    return 0;
}

json_t *
il__cli_json_text(const char *text)
{
    if (text == NULL)
        return json_null();
    if (il__utf8_valid(text, strlen(text)))
        return json_string(text);

    AUTO_BUF struct il__buf b = { 0 };
    il__buf_init(&b, 16 * strlen(text) + 1);
    il__cli_escape(&b, text);
    return json_string(il__buf_str(&b));
}

const char *
il__cli_age(int64_t ms, char out[CLI_AGE_BYTES])
{
    int64_t s = ms / 1000;

    if (ms == IL_FOREVER)
        (void)snprintf(out, CLI_AGE_BYTES, "forever");
    else if (ms < 1000)
        (void)snprintf(out, CLI_AGE_BYTES, "%" PRId64 "ms", MAX(ms, 0));
    else if (s < 10)
        (void)snprintf(out, CLI_AGE_BYTES, "%" PRId64 ".%" PRId64 "s", s, ms % 1000 / 100);
    else if (s < 60)
        (void)snprintf(out, CLI_AGE_BYTES, "%" PRId64 "s", s);
    else if (s < 3600)
        (void)snprintf(out, CLI_AGE_BYTES, "%" PRId64 "m%02" PRId64 "s", s / 60, s % 60);
    else if (s < 86400)
        (void)snprintf(out, CLI_AGE_BYTES, "%" PRId64 "h%02" PRId64 "m", s / 3600, s % 3600 / 60);
    else
        (void)snprintf(out, CLI_AGE_BYTES, "%" PRId64 "d%" PRId64 "h", s / 86400, s % 86400 / 3600);
    return out;
}
