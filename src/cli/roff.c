/* roff.c: converts the subset of Markdown used in docs/man to man macros. */
#include "cli/roff.h"

#include <stdio.h>

void
il__cli_roff_text(const char *text, size_t n_bytes)
{
    for (size_t i = 0; i < n_bytes; i++) {
        switch (text[i]) {
        case '\\':
            (void)fputs("\\e", stdout);
            break;
        case '-':
            (void)fputs("\\-", stdout);
            break;
        case '.':
        case '\'':
            /* At the start of a line these two characters would begin a request. */
            (void)fputs(i == 0 ? "\\&" : "", stdout);
            (void)fputs(text[i] == '.' ? "." : "\\(aq", stdout);
            break;
        default:
            (void)putchar(text[i]);
            break;
        }
    }
}

void
il__cli_roff_inline(const char *line, size_t n_bytes)
{
    for (size_t i = 0; i < n_bytes;) {
        const char *close = line[i] == '`' || line[i] == '*'
                                ? memchr(line + i + 1, line[i], n_bytes - i - 1)
                                : NULL;
        if (close != NULL && close > line + i + 1) {
            size_t n = (size_t)(close - (line + i + 1));
            (void)fputs(line[i] == '`' ? "\\fB" : "\\fI", stdout);
            il__cli_roff_text(line + i + 1, n);
            (void)fputs("\\fR", stdout);
            i += n + 2;
            continue;
        }
        size_t n = 1;
        while (i + n < n_bytes && line[i + n] != '`' && line[i + n] != '*')
            n++;
        il__cli_roff_text(line + i, n);
        i += n;
    }
    (void)putchar('\n');
}

enum block {
    NONE,
    PARAGRAPH,
    ITEM,
    CODE
};

/* Leave the block before this line and enter the one it belongs to. */
static void
enter(enum block *now, enum block next)
{
    if (*now == CODE && next != CODE)
        (void)puts(".fi\n.RE");
    if (next == CODE && *now != CODE)
        (void)puts(".PP\n.RS 4\n.nf");
    if (next == PARAGRAPH && *now == NONE)
        (void)puts(".PP");
    if (next == ITEM)
        (void)puts(".IP \\(bu 2");
    *now = next;
}

static void
prose_line(enum block *now, const char *line, size_t n)
{
    if (n == 0) {
        if (*now != CODE)
            *now = NONE;
        else
            (void)putchar('\n');
    } else if (n > 2 && line[0] == '#') {
        enter(now, NONE);
        (void)fputs(".SH ", stdout);
        il__cli_roff_inline(line + 2, n - 2);
    } else if (n > 4 && strncmp(line, "    ", 4) == 0) {
        enter(now, CODE);
        il__cli_roff_text(line + 4, n - 4);
        (void)putchar('\n');
    } else if (n > 2 && strncmp(line, "* ", 2) == 0) {
        enter(now, ITEM);
        il__cli_roff_inline(line + 2, n - 2);
    } else {
        /* The second line of an item is indented by two and belongs to it. */
        size_t indent = strspn(line, " ");
        enter(now, *now == ITEM && indent > 0 ? PARAGRAPH : *now == CODE ? NONE : *now);
        if (*now == NONE)
            enter(now, PARAGRAPH);
        il__cli_roff_inline(line + MIN(indent, n), n - MIN(indent, n));
    }
}

void
il__cli_roff_prose(const char *text, size_t n_bytes)
{
    enum block now = NONE;

    for (size_t i = 0; i < n_bytes;) {
        const char *end = memchr(text + i, '\n', n_bytes - i);
        size_t      n   = end != NULL ? (size_t)(end - (text + i)) : n_bytes - i;
        prose_line(&now, text + i, n);
        i += n + 1;
    }
    enter(&now, NONE);
}
