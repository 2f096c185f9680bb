/*
 * cmocka.h: includes cmocka with the headers it requires.
 */
#ifndef T_CMOCKA_H
#define T_CMOCKA_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#endif
