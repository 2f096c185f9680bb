/*
 * grid.c: aligned tables on a terminal.
 */
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/out.h"

#define CELL_BYTES_MAX 4096
#define TEXT_BYTES_MAX ((size_t)1 << 30)
#define ELASTIC_WIDTH_MIN 8 /* minimum width of a truncated cell */
#define GAP 2

/* Characters, not bytes; wide ones count as one, which costs alignment and nothing else. */
static size_t
width(const char *text)
{
    size_t n = 0;

    for (; *text != '\0'; text++) {
        if (((unsigned char)*text & 0xC0U) != 0x80)
            n++;
    }
    return n;
}

void
il__cli_grid_init(struct cli_grid *g, const char *const *headers, size_t n_columns)
{
    CHECK(n_columns > 0 && n_columns <= CLI_GRID_COLUMNS_MAX);
    *g = (struct cli_grid){ .n_columns = n_columns, .elastic = n_columns };
    for (size_t i = 0; i < n_columns; i++) {
        g->right[i] = headers[i][0] == '>';
        il__cli_grid_add(g, "%s", headers[i] + (g->right[i] ? 1 : 0));
    }
}

void
il__cli_grid_add(struct cli_grid *g, const char *fmt, ...)
{
    AUTO_BUF struct il__buf raw  = { 0 };
    AUTO_BUF struct il__buf cell = { 0 };
    va_list                 ap;

    il__buf_init(&raw, CELL_BYTES_MAX);
    il__buf_init(&cell, 4 * CELL_BYTES_MAX);
    va_start(ap, fmt);
    il__buf_vaddf(&raw, fmt, ap);
    va_end(ap);
    il__cli_escape(&cell, il__buf_str(&raw));

    if (!il__grow(&g->cells, g->n_cells, &g->capacity, sizeof *g->cells)) {
        g->failed = true;
        return;
    }
    g->cells[g->n_cells] = il__buf_take(&cell);
    if (g->cells[g->n_cells] == NULL)
        g->failed = true;
    else
        g->n_cells++;
}

/* Columns of the terminal on stdout; 0 if it is not a terminal, or unknown. */
static size_t
terminal_width(void)
{
    struct winsize size = { 0 };

    return isatty(STDOUT_FILENO) != 0 && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col
                                                                                      : 0;
}

/* Narrow the elastic column so that a row fits the terminal, if possible. */
static void
squeeze(const struct cli_grid *g, size_t *widths)
{
    size_t room  = terminal_width();
    size_t total = GAP * (g->n_columns - 1);

    if (room == 0 || g->elastic >= g->n_columns)
        return;
    for (size_t i = 0; i < g->n_columns; i++)
        total += widths[i];
    if (total <= room)
        return;
    size_t *elastic = &widths[g->elastic];
    size_t  least   = MIN(*elastic, ELASTIC_WIDTH_MIN);
    *elastic        = *elastic - least > total - room ? *elastic - (total - room) : least;
}

/* Add a cell, truncated to its column with an ellipsis. */
static void
add_cell(struct il__buf *b, const char *text, size_t column_width)
{
    size_t n = 0;

    if (width(text) <= column_width) {
        il__buf_adds(b, text);
        return;
    }
    for (size_t n_chars = 0; text[n] != '\0'; n++) {
        if (((unsigned char)text[n] & 0xC0U) != 0x80 && n_chars++ == column_width - 1)
            break;
    }
    il__buf_addf(b, "%.*s…", (int)n, text);
}

static void
add_row(struct il__buf *b, const struct cli_grid *g, char *const *row, const size_t *widths)
{
    for (size_t i = 0; i < g->n_columns; i++) {
        int  pad = (int)(widths[i] - MIN(widths[i], width(row[i])));
        int  gap = i + 1 < g->n_columns ? GAP : 0;
        bool end = gap == 0; /* no white space at the end of a line */
        il__buf_addf(b, "%*s", g->right[i] ? pad : 0, "");
        add_cell(b, row[i], widths[i]);
        il__buf_addf(b, "%*s", gap + (g->right[i] || end ? 0 : pad), "");
    }
}

void
il__cli_grid_text(const struct cli_grid *g, bool styled, struct il__buf *b)
{
    size_t widths[CLI_GRID_COLUMNS_MAX] = { 0 };

    b->failed = b->failed || g->failed;
    if (b->failed)
        return;
    CHECK(g->n_cells % g->n_columns == 0);
    for (size_t i = 0; i < g->n_cells; i++)
        widths[i % g->n_columns] = MAX(widths[i % g->n_columns], width(g->cells[i]));
    squeeze(g, widths);
    for (size_t i = 0; i < g->n_cells; i += g->n_columns) {
        bool bold = styled && i == 0;
        il__buf_adds(b, bold ? il__cli_style(stdout, CLI_BOLD) : "");
        add_row(b, g, g->cells + i, widths);
        il__buf_adds(b, bold ? il__cli_style(stdout, CLI_PLAIN) : "");
        il__buf_addc(b, '\n');
    }
}

int
il__cli_grid_print(struct cli_grid *g)
{
    AUTO_BUF struct il__buf b = { 0 };

    il__buf_init(&b, TEXT_BYTES_MAX);
    il__cli_grid_text(g, true, &b);
    if (b.failed)
        return il__cli_fail_memory();
    (void)fputs(il__buf_str(&b), stdout); /* stdout remembers its errors */
    return 0;
}

void
il__cli_grid_release(struct cli_grid *g)
{
    for (size_t i = 0; i < g->n_cells; i++)
        il__free(g->cells[i]);
    il__free(g->cells);
    *g = (struct cli_grid){ 0 };
}
