/*
 * out.h: the output of commands. stdout is data, stderr is messages; colours only on a terminal.
 *
 * Foreign texts (keys, holders, file names, meta) may contain anything, so whatever is printed for
 * people goes through il__cli_escape(): a lease must not be able to send control sequences to
 * another user's terminal.
 */
#ifndef IL_CLI_OUT_H
#define IL_CLI_OUT_H

#include <jansson.h>
#include <stdio.h>

#include "base/buf.h"

enum cli_style {
    CLI_PLAIN,
    CLI_BOLD,
    CLI_DIM,
    CLI_RED,
    CLI_GREEN,
    CLI_YELLOW
};

/* The sequence that switches to a style, "" when `file` is not a terminal or NO_COLOR is set. */
const char *il__cli_style(FILE *file, enum cli_style style);

/* One line on stderr: "interlock: ...". Control characters in it are escaped. */
void il__cli_error(const char *fmt, ...) PRINTF_LIKE(1, 2);
/* The same for a usage error; returns its exit status. */
int il__cli_usage(const char *fmt, ...) PRINTF_LIKE(1, 2);
/* The same for an error of the library or the CLI; returns the matching exit status. */
int il__cli_fail(const il_error *err);
/* Report "out of memory"; returns the exit status. */
int il__cli_fail_memory(void);

/* Make sure that stdin, stdout and stderr are open: otherwise a store could be opened as
 * descriptor 1 and written to. */
void il__cli_out_init(void);
/* Flush stdout; an error there turns exit status 0 into CLI_EXIT_IO. */
int il__cli_out_finish(int status);

/* Add `text`, with control characters, those that reorder text, and invalid UTF-8 as \n, \t,
 * \xNN. */
void il__cli_escape(struct il__buf *b, const char *text);
/* Print it escaped on stdout. */
void il__cli_puts(const char *text);

/*
 * Print `value` on stdout, indented on a terminal, else as one line. Consumes it; NULL = out of
 * memory.
 */
int il__cli_json_print(json_t *value);
/* A JSON string for any text: invalid UTF-8 is escaped. NULL text gives null. */
json_t *il__cli_json_text(const char *text);

#define CLI_AGE_BYTES 24
/* A duration for people: 4ms, 1.2s, 45s, 3m12s, 2h05m, 3d4h. */
const char *il__cli_age(int64_t ms, char out[CLI_AGE_BYTES]);

/*
 * A table for people: columns as wide as their widest cell. Cells are escaped when they are added.
 * A column whose header starts with `>` is aligned to the right.
 */
#define CLI_GRID_COLUMNS_MAX 16
struct cli_grid {
    size_t n_columns;
    size_t n_cells;
    size_t capacity;
    char **cells;
    bool   right[CLI_GRID_COLUMNS_MAX];
    size_t elastic; /* truncated when the terminal is too narrow; n_columns = none */
    bool   failed;
};

void il__cli_grid_init(struct cli_grid *g, const char *const *headers, size_t n_columns);
void il__cli_grid_add(struct cli_grid *g, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* Add its lines to *b, as wide as the terminal on stdout allows; `styled`: with the headers in
 * bold if it has styles. Fails (b->failed) if the grid has. */
void il__cli_grid_text(const struct cli_grid *g, bool styled, struct il__buf *b);
/* Print it on stdout; returns the exit status. */
int  il__cli_grid_print(struct cli_grid *g);
void il__cli_grid_release(struct cli_grid *g);

#define AUTO_GRID AUTO(il__cli_grid_release)

#endif
