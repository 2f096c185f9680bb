/*
 * roff.h: man pages: escaping, and the little Markdown of docs/man.
 */
#ifndef IL_CLI_ROFF_H
#define IL_CLI_ROFF_H

#include "base/base.h"

/* Print text with everything that roff would obey made harmless. */
void il__cli_roff_text(const char *text, size_t n_bytes);
/* Print one line in which `code` is bold and *word* is italic. */
void il__cli_roff_inline(const char *line, size_t n_bytes);

/*
 * Print Markdown as man macros. What is understood: `# HEADING`, paragraphs, `* item`, text
 * indented by four spaces (shown as it is), and what il__cli_roff_inline() understands.
 */
void il__cli_roff_prose(const char *text, size_t n_bytes);

#endif
