/*
 * http_bare.h: the floor of the HTTP rows: libmicrohttpd alone, driven from outside as ours is, which reads a body and answers with a constant.
 */
#ifndef BENCH_HTTP_BARE_H
#define BENCH_HTTP_BARE_H

/* `interlock-bench --bare`: serves on a free port of loopback, prints it, and ends with its parent. */
int http_bare_main(void);

#endif
