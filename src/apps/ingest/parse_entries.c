/*
 * parse_entries.c: the entry list of an event: per class a table of car number, driver and
 * transponder.
 */
#include <stdio.h>
#include <strings.h>

#include "apps/ingest/page_reader.h"
#include "base/hash.h"
#include "base/map.h"

struct list {
    struct reader            *r;
    struct liverc_entry_list *out;
    struct il__map            seen;       /* entries by class, name and car number */
    const char               *class_name; /* of the rows that follow; "" = none yet */
    int32_t                   n_declared; /* as its header says, or LIVERC_NONE */
    size_t                    n_read;     /* of this class */
};

/* Before another class begins, and at the end. */
static void
end_class(struct list *l)
{
    if (l->n_read > 0)
        l->out->n_classes++;
    if (l->n_declared != LIVERC_NONE && (size_t)l->n_declared != l->n_read)
        il__reader_warn(l->r, "class '%.80s' lists %zu entries, but declares %d", l->class_name,
                        l->n_read, l->n_declared);
    l->n_declared = LIVERC_NONE;
    l->n_read     = 0;
}

/* "Entries: 14" at the end of a text; *ret_before is the length of the text before it. */
static bool
declared(const char *text, size_t *ret_before, int32_t *ret)
{
    const char *at = strcasestr(text, "Entries:");

    if (at == NULL)
        return false;
    const char *digits = at + strlen("Entries:");
    digits += strspn(digits, " ");
    size_t n = (size_t)(at - text);
    while (n > 0 && (text[n - 1] == ' ' || text[n - 1] == '(' || text[n - 1] == '-'))
        n--;
    *ret_before = n;
    return il__liverc_count(digits, ret);
}

/* An older header: one th with the class and the number of entries. */
static void
read_old_header(struct list *l, const char *text)
{
    size_t  n_before;
    int32_t n;

    if (!declared(text, &n_before, &n) || n_before == 0)
        return;
    char name[LIVERC_TEXT_BYTES_MAX + 1];
    (void)snprintf(name, sizeof name, "%.*s", (int)n_before, text);
    end_class(l);
    l->class_name = il__reader_keep(l->r, name);
    l->n_declared = n;
}

static uint64_t
entry_hash(const struct liverc_entry *e)
{
    return il__hash_mix(il__hash_bytes(e->class_name, strlen(e->class_name)),
                        il__hash_mix(il__hash_bytes(e->upper_name, strlen(e->upper_name)),
                                     il__hash_bytes(e->car_number, strlen(e->car_number))));
}

/* Remember an entry; false if it is a duplicate. */
static bool
is_new(struct list *l, const struct liverc_entry *e)
{
    uint64_t hash = entry_hash(e);
    size_t   i    = il__map_start(&l->seen, hash);

    for (const struct liverc_entry *o; (o = il__map_next(&l->seen, hash, &i)) != NULL; i++) {
        if (strcmp(o->class_name, e->class_name) == 0 &&
            strcmp(o->upper_name, e->upper_name) == 0 && strcmp(o->car_number, e->car_number) == 0)
            return false;
    }
    struct liverc_entry *copy = il__reader_alloc(l->r, sizeof *copy);
    if (copy == NULL || !il__map_reserve(&l->seen)) {
        l->r->no_memory = true;
        return true;
    }
    *copy = *e;
    il__map_add(&l->seen, hash, copy);
    return true;
}

static il_status
read_entry(struct list *l, const struct html_row *row)
{
    struct reader      *r = l->r;
    struct liverc_entry e = { .class_name = l->class_name };

    e.car_number = il__reader_text(r, row->cells[0], ".hidden");
    /* FIRST LAST after a hidden span, or LAST, FIRST<br>FIRST LAST */
    e.name                  = il__reader_first_line(r, row->cells[1], ".hidden");
    const char *transponder = row->n > 2 ? il__reader_text(r, row->cells[2], ".hidden") : "";
    e.transponder           = transponder[0] != '\0' ? transponder : NULL;
    l->n_read++;
    if (e.name[0] == '\0')
        return il__reader_fail(r, LIVERC_VALIDATION_ERROR,
                               "class '%.80s': row %zu: missing driver name", l->class_name,
                               l->n_read);
    e.upper_name = il__reader_upper(r, e.name);
    if (l->out->n_entries == LIVERC_ENTRIES_MAX)
        return il__reader_fail(r, r->format, "the entry list has more than %d entries",
                               LIVERC_ENTRIES_MAX);
    if (!is_new(l, &e)) {
        il__reader_warn(r, "class '%.80s': %.80s with car number '%.20s' is listed twice",
                        l->class_name, e.name, e.car_number);
        return IL_OK;
    }
    struct liverc_entry *kept =
        il__reader_append(r, &l->out->entries, &l->out->n_entries, sizeof *kept);
    if (kept != NULL)
        *kept = e;
    return IL_OK;
}

static il_status
read_row(struct list *l, const xmlNode *tr)
{
    struct html_row row;

    il__html_row(tr, &row);
    if (row.is_head) {
        for (size_t i = 0; i < row.n; i++) {
            if (il__html_find(row.cells[i], NULL, "class_header") == NULL)
                read_old_header(l, il__reader_peek(l->r, row.cells[i], NULL));
        }
        return IL_OK;
    }
    /* One cell is a remark such as "No entries"; a table before the first class is not ours. */
    if (row.n < 2 || l->class_name[0] == '\0')
        return IL_OK;
    return read_entry(l, &row);
}

/* In document order, so that a header may stand in its table or above it. */
static il_status
read_list(struct list *l)
{
    const xmlNode *top = il__html_top(&l->r->html);
    il_status      st  = IL_OK;
    size_t         n_before;

    for (const xmlNode *n = il__html_next(top, top); n != NULL && st == IL_OK;
         n                = il__html_next(top, n)) {
        if (il__html_has_class(n, "class_header")) {
            end_class(l);
            l->class_name = il__reader_text(l->r, n, ".class_sub_header");
        } else if (il__html_has_class(n, "class_sub_header")) {
            int32_t value;
            if (declared(il__reader_peek(l->r, n, NULL), &n_before, &value))
                l->n_declared = value;
        } else if (il__html_is(n, "tr") && !il__html_inside(n, top, "tfoot")) {
            st = read_row(l, n);
        }
    }
    if (st == IL_OK)
        end_class(l);
    if (st == IL_OK && l->out->n_entries == 0 && !l->r->no_memory)
        return il__reader_fail(l->r, LIVERC_VALIDATION_ERROR,
                               "no class on the entry list has entries");
    return st;
}

il_status
il__liverc_entries(struct liverc_page *p, const struct liverc_source *s,
                   const struct liverc_entry_list **ret, il_error *reterr)
{
    static const char *const  pages[] = { "view_event", "view_entry_list", NULL };
    AUTO_READER struct reader r;
    struct list               l  = { .r = &r, .class_name = "", .n_declared = LIVERC_NONE };
    const char               *id = NULL;

    il_status st = il__reader_open(&r, p, s, LIVERC_EVENT_PAGE_FORMAT_ERROR, reterr);
    if (st == IL_OK)
        st = il__reader_id(&r, pages, &id);
    if (st == IL_OK)
        l.out = il__reader_alloc(&r, sizeof *l.out);
    if (l.out != NULL) {
        il__hash_init();
        st = read_list(&l);
    }
    il__map_release(&l.seen);
    if (st == IL_OK)
        st = il__reader_finish(&r);
    if (st == IL_OK)
        *ret = l.out;
    return st;
}
