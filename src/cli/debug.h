/*
 * debug.h: what `interlock debug` prints for the build and for the documentation.
 */
#ifndef IL_CLI_DEBUG_H
#define IL_CLI_DEBUG_H

#include "base/buf.h"
#include "cli/defs.h"

/*
 * The man page of a command, or of interlock itself (NULL). prose_path may be NULL. Returns the
 * exit status.
 */
int il__cli_man(const struct cli_command *command, const char *prose_path);
/* interlock-options(7): the options of every command, and the configuration. */
int il__cli_man_options(const char *prose_path);
/* A Markdown table by its name (docs.c); the words name the command whose options, or the family
 * whose commands, are wanted. Returns the exit status. */
int il__cli_docs(const char *table, const char *const *words, size_t n_words);

#endif
