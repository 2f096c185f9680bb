/*
 * main.c: the entry. Everything else is in a library of objects, so that tests and fuzzers link it
 * too.
 */
#include "cli/cli.h"

int
main(int argc UNUSED, char **argv)
{
    return il__cli_main(argv);
}
