/* libyaml.h: the functions of libyaml: linked into the command, loaded by the library. */
#ifndef IL_CONFIG_LIBYAML_H
#define IL_CONFIG_LIBYAML_H

#include <yaml.h>

#include "config/config.h"

struct il__yaml {
#define X(name) __typeof__(name) *name;
#include "config/libyaml.def"
#undef X
};

#endif
