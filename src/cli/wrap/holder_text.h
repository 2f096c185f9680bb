/* holder_text.h: says who holds a key. */
#ifndef IL_CLI_WRAP_HOLDER_TEXT_H
#define IL_CLI_WRAP_HOLDER_TEXT_H

#include "base/buf.h"

/* "KEY is held by pid 4711 on vm (sleep 3) for 311ms, holder H, fence F; see: interlock why KEY";
 * `error` is that of the refused acquire. */
void wrap_holder_text(il *store, const char *key, const il_error *error, char *out, size_t n_bytes);

#endif
