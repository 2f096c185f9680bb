/*
 * roff.c: converts the subset of Markdown used in docs/man to man macros: headings, paragraphs,
 * items of one level, indented code; in a text `code`, **bold** and *italic*, also across lines.
 */
#include "cli/roff.h"

#include <stdio.h>

#include "base/buf.h"

/* Print the text; at_start: it begins a line. */
static void
print_text(const char *text, size_t n_bytes, bool at_start)
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
            (void)fputs(at_start ? "\\&" : "", stdout);
            (void)fputs(text[i] == '.' ? "." : "\\(aq", stdout);
            break;
        default:
            (void)putchar(text[i]);
            break;
        }
        at_start = text[i] == '\n';
    }
}

void
il__cli_roff_text(const char *text, size_t n_bytes)
{
    print_text(text, n_bytes, true);
}

/* The marks of an emphasised text, and the font for what is between them. */
static const struct roff_mark {
    const char *mark;
    const char *font;
} marks[] = { { "`", "\\fB" }, { "**", "\\fB" }, { "*", "\\fI" } };

/* The mark that opens at the text and is closed in it: *ret_inner is what stands between. */
static const struct roff_mark *
find_mark(const char *text, size_t n_bytes, size_t *ret_inner)
{
    for (size_t m = 0; m < ARRAY_LEN(marks); m++) {
        size_t n = strlen(marks[m].mark);
        if (n_bytes <= 2 * n || memcmp(text, marks[m].mark, n) != 0)
            continue;
        const char *close = memmem(text + n, n_bytes - n, marks[m].mark, n);
        if (close != NULL && close > text + n) {
            *ret_inner = (size_t)(close - (text + n));
            return &marks[m];
        }
    }
    return NULL;
}

void
il__cli_roff_inline(const char *text, size_t n_bytes)
{
    bool at_start = true;

    for (size_t i = 0; i < n_bytes;) {
        size_t                  n_inner = 0;
        const struct roff_mark *mark    = find_mark(text + i, n_bytes - i, &n_inner);
        size_t                  n       = 1;
        if (mark != NULL) {
            size_t n_mark = strlen(mark->mark);
            (void)fputs(mark->font, stdout);
            print_text(text + i + n_mark, n_inner, false);
            (void)fputs("\\fR", stdout);
            n = n_inner + 2 * n_mark;
        } else {
            while (i + n < n_bytes && text[i + n] != '`' && text[i + n] != '*')
                n++;
            print_text(text + i, n, at_start);
        }
        at_start = false;
        i += n;
    }
    (void)putchar('\n');
}

enum block {
    HEADING, /* also the start of a page's section, where a paragraph needs no macro */
    PARAGRAPH,
    ITEM,
    CODE
};

/* Which block a line that is not empty begins or, if it is of the same kind, continues. */
static enum block
block_of(const char *line, size_t n_bytes)
{
    if (n_bytes > 2 && line[0] == '#')
        return HEADING;
    if (n_bytes > 4 && strncmp(line, "    ", 4) == 0)
        return CODE;
    return n_bytes > 2 && strncmp(line, "* ", 2) == 0 ? ITEM : PARAGRAPH;
}

static size_t
line_length(const char *text, const char *end)
{
    const char *newline = memchr(text, '\n', (size_t)(end - text));

    return (size_t)((newline != NULL ? newline : end) - text);
}

/* Print the lines of a paragraph or an item, from `text` on, as one text; returns their end. */
static const char *
print_lines(const char *text, const char *end)
{
    AUTO_BUF struct il__buf b = { 0 };

    il__buf_init(&b, 1 << 16);
    while (text < end) {
        size_t     n      = line_length(text, end);
        size_t     indent = MIN(strspn(text, " "), n);
        enum block block  = block_of(text, n);
        if (n == 0 || (b.n_bytes > 0 && block != PARAGRAPH && block != CODE))
            break;
        if (b.n_bytes > 0)
            il__buf_addc(&b, '\n');
        il__buf_add(&b, text + indent, n - indent);
        text += MIN(n + 1, (size_t)(end - text));
    }
    il__cli_roff_inline(il__buf_str(&b), b.n_bytes);
    return text;
}

/* Print indented lines, and the empty lines between them, as they are; returns their end. */
static const char *
print_code(const char *text, const char *end)
{
    size_t n_empty = 0;

    (void)puts(".RS 4\n.nf");
    while (text < end) {
        size_t n = line_length(text, end);
        if (n > 0 && block_of(text, n) != CODE)
            break;
        for (; n > 0 && n_empty > 0; n_empty--)
            (void)putchar('\n');
        if (n > 0) {
            il__cli_roff_text(text + 4, n - 4);
            (void)putchar('\n');
        } else {
            n_empty++;
        }
        text += MIN(n + 1, (size_t)(end - text));
    }
    (void)puts(".fi\n.RE");
    return text;
}

void
il__cli_roff_prose(const char *text, size_t n_bytes)
{
    const char *end    = text + n_bytes;
    enum block  before = HEADING;

    while (text < end) {
        size_t n = line_length(text, end);
        if (n == 0) {
            text++;
            continue;
        }
        enum block block = block_of(text, n);
        if (block == HEADING) {
            (void)fputs(".SH ", stdout);
            il__cli_roff_inline(text + 2, n - 2);
            text += MIN(n + 1, (size_t)(end - text));
        } else {
            if (block == ITEM)
                (void)puts(".IP \\(bu 2");
            else if (before != HEADING)
                (void)puts(".PP");
            text = block == CODE ? print_code(text, end)
                                 : print_lines(text + (block == ITEM ? 2 : 0), end);
        }
        before = block;
    }
}
