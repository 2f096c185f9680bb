/* roff.h: output of man pages: escaping, and the subset of Markdown used in docs/man. */
#ifndef IL_CLI_ROFF_H
#define IL_CLI_ROFF_H

#include "base/base.h"

/* Print text with everything escaped that roff would interpret. */
void il__cli_roff_text(const char *text, size_t n_bytes);
/* Print a text, which may have several lines, in which `code` and **text** are bold and *text* is
 * italic, and end the line. */
void il__cli_roff_inline(const char *text, size_t n_bytes);

/* Print Markdown as man macros. Supported: `# HEADING`, paragraphs, `* item`, text indented by
 * four spaces (printed as is), and what il__cli_roff_inline() supports. */
void il__cli_roff_prose(const char *text, size_t n_bytes);

#endif
