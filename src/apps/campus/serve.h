/*
 * serve.h: the campus in the server: app.c opens and closes it, routes.c has the handlers,
 * routes_tables.c the JSON of their bodies and answers.
 */
#ifndef IL_APPS_CAMPUS_SERVE_H
#define IL_APPS_CAMPUS_SERVE_H

#include "apps/campus/campus.h"
#include "apps/campus/operations.h"
#include "http/app.h"
#include "http/handler.h"

#define CAMPUS_CONNS_MAX 16

extern const struct http_app campus_http_app;

enum {
    CAMPUS_METRIC_RACES,
    CAMPUS_METRIC_NULLS,
};

struct campus_app {
    struct http_server *server;
    /* from the start on: */
    struct tables_place *place;
    il_guard            *db;
};

extern const struct http_route campus_routes[CAMPUS_OP_COUNT];

#endif
