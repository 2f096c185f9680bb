/*
 * array.c: one-dimensional arrays in PostgreSQL's binary format, as parameters and results.
 */
#include <arpa/inet.h>

#include "store/postgres/postgres_internal.h"

/* ---- parameters ------------------------------------------------------------------------------ */

static void
add_int32(struct il__buf *b, int32_t v)
{
    uint32_t be = htonl((uint32_t)v);

    il__buf_add(b, &be, sizeof be);
}

void
il__pg_array_begin(struct il__buf *b, Oid type, size_t n, bool nulls)
{
    add_int32(b, 1); /* dimensions */
    add_int32(b, nulls);
    add_int32(b, (int32_t)type);
    add_int32(b, (int32_t)n);
    add_int32(b, 1); /* the first index */
}

void
il__pg_array_add(struct il__buf *b, const void *data, size_t n_bytes)
{
    add_int32(b, (int32_t)n_bytes);
    il__buf_add(b, data, n_bytes);
}

void
il__pg_array_add_null(struct il__buf *b)
{
    add_int32(b, -1);
}

void
il__pg_array_add_text(struct il__buf *b, const char *text)
{
    il__pg_array_add(b, text, strlen(text));
}

void
il__pg_array_add_int4(struct il__buf *b, int32_t v)
{
    add_int32(b, sizeof v);
    add_int32(b, v);
}

void
il__pg_array_add_int8(struct il__buf *b, uint64_t v)
{
    uint32_t be[2] = { htonl((uint32_t)(v >> 32)), htonl((uint32_t)v) };

    il__pg_array_add(b, be, sizeof be);
}

void
il__pg_array_add_tid(struct il__buf *b, uint64_t place)
{
    uint32_t block  = htonl((uint32_t)(place >> 16));
    uint16_t offset = htons((uint16_t)place);

    add_int32(b, sizeof block + sizeof offset);
    il__buf_add(b, &block, sizeof block);
    il__buf_add(b, &offset, sizeof offset);
}

/* ---- results --------------------------------------------------------------------------------- */

static uint32_t
uint32_at(const char *at)
{
    uint32_t be;

    memcpy(&be, at, sizeof be);
    return ntohl(be);
}

bool
il__pg_array_open(const PGresult *r, int column, struct pg_int8s *ret)
{
    enum {
        HEAD_BYTES = 20,
        ITEM_BYTES = 12
    };
    struct remote_blob all = il__pg_bytes(r, 0, column);

    *ret = (struct pg_int8s){ 0 };
    if (all.data == NULL)
        return true;
    if (all.n_bytes < HEAD_BYTES || uint32_at(all.data) != 1)
        return false;
    ret->n  = uint32_at((const char *)all.data + 12);
    ret->at = (const char *)all.data + HEAD_BYTES;
    return all.n_bytes == HEAD_BYTES + ret->n * ITEM_BYTES; /* and so none is NULL */
}

int64_t
il__pg_array_next(struct pg_int8s *a)
{
    uint64_t high = uint32_at(a->at + 4);
    uint64_t low  = uint32_at(a->at + 8);

    a->at += 12;
    return (int64_t)(high << 32 | low);
}
