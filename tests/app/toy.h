/* toy.h: an app for tests only, which uses every part of struct http_app. */
#ifndef IL_TESTS_APP_TOY_H
#define IL_TESTS_APP_TOY_H

#include "http/app.h"

extern const struct http_app toy_http_app;

#endif
