/*
 * grid.c: tables for people.
 */
#include "cli/out.h"

#define CELL_BYTES_MAX 4096

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
    *g = (struct cli_grid){ .n_columns = n_columns };
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

    if (g->n_cells == g->capacity) {
        size_t capacity = MAX(g->capacity * 2, 64);
        char **cells    = il__realloc(g->cells, capacity * sizeof *cells);
        if (cells == NULL) {
            g->failed = true;
            return;
        }
        g->cells    = cells;
        g->capacity = capacity;
    }
    g->cells[g->n_cells] = il__buf_take(&cell);
    if (g->cells[g->n_cells] == NULL)
        g->failed = true;
    else
        g->n_cells++;
}

static void
print_row(const struct cli_grid *g, char *const *row, const size_t *widths)
{
    for (size_t i = 0; i < g->n_columns; i++) {
        int  pad  = (int)(widths[i] - width(row[i]));
        bool last = i + 1 == g->n_columns;
        if (g->right[i])
            (void)printf("%*s%s%s", pad, "", row[i], last ? "" : "  ");
        else
            (void)printf("%s%*s", row[i], last ? 0 : pad + 2, "");
    }
}

int
il__cli_grid_print(struct cli_grid *g)
{
    size_t widths[CLI_GRID_COLUMNS_MAX] = { 0 };

    if (g->failed)
        return il__cli_fail_memory();
    CHECK(g->n_cells % g->n_columns == 0);
    for (size_t i = 0; i < g->n_cells; i++)
        widths[i % g->n_columns] = MAX(widths[i % g->n_columns], width(g->cells[i]));
    for (size_t i = 0; i < g->n_cells; i += g->n_columns) {
        const char *on  = i == 0 ? il__cli_style(stdout, CLI_BOLD) : "";
        const char *off = i == 0 ? il__cli_style(stdout, CLI_PLAIN) : "";
        (void)fputs(on, stdout); /* stdout remembers its errors */
        print_row(g, g->cells + i, widths);
        (void)printf("%s\n", off);
    }
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
