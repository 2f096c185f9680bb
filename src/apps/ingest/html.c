/*
 * html.c: a page as a tree of libxml2, and walking it. No function recurses: the depth of a page is
 * the site's choice.
 */
#include "apps/ingest/html.h"

#include "apps/ingest/liverc.h"
#include "base/error.h"
#include "base/parse.h"

/* ---- parsing --------------------------------------------------------------------------------- */

static const char too_deep[] = ""; /* ctxt->_private: parsing was stopped */

/* libxml2 has no limit on the depth of HTML, and each end tag may look at all open elements. */
static void
start_element(void *ctx, const xmlChar *name, const xmlChar **atts)
{
    htmlParserCtxtPtr ctxt = ctx;

    if (ctxt->nameNr > HTML_DEPTH_MAX) {
        ctxt->_private = (void *)(uintptr_t)too_deep;
        il__libxml2->xmlStopParser(ctxt);
        return;
    }
    il__libxml2->xmlSAX2StartElement(ctx, name, atts);
}

static il_status
build_tree(struct html *h, il_error *reterr)
{
    const int options = HTML_PARSE_RECOVER | HTML_PARSE_NOERROR | HTML_PARSE_NOWARNING |
                        HTML_PARSE_NONET | HTML_PARSE_COMPACT | HTML_PARSE_IGNORE_ENC;
    htmlParserCtxtPtr ctxt = il__libxml2->htmlNewParserCtxt();
    il_status         st   = IL_OK;

    if (ctxt == NULL)
        return il__error_set(reterr, IL_NOMEM, "page: out of memory");
    ctxt->sax->startElement = start_element;
    h->doc = il__libxml2->htmlCtxtReadMemory(ctxt, il__buf_str(&h->clean), (int)h->clean.n_bytes,
                                             NULL, "UTF-8", options);
    if (ctxt->errNo == XML_ERR_NO_MEMORY)
        st = il__error_set(reterr, IL_NOMEM, "page: out of memory");
    else if (ctxt->_private == too_deep)
        st = il__error_set(reterr, IL_INVAL, "elements are nested more than %d deep",
                           HTML_DEPTH_MAX);
    il__libxml2->htmlFreeParserCtxt(ctxt);
    return st;
}

/* A page in another encoding is taken for Latin-1, in which every byte means something. */
static void
from_latin1(const char *body, size_t n_bytes, struct il__buf *out)
{
    il__buf_init(out, 2 * n_bytes + 1);
    for (size_t i = 0; i < n_bytes; i++) {
        unsigned char c = (unsigned char)body[i];
        if (c < 0x80) {
            il__buf_addc(out, (char)c);
        } else {
            il__buf_addc(out, (char)(0xC0 | c >> 6));
            il__buf_addc(out, (char)(0x80 | (c & 0x3F)));
        }
    }
}

il_status
il__html_parse(struct html *h, const char *body, size_t n_bytes, il_error *reterr)
{
    CHECK(il__libxml2 != NULL);
    if (n_bytes > LIVERC_BODY_BYTES_MAX)
        return il__error_set(reterr, IL_INVAL, "the page exceeds %d bytes", LIVERC_BODY_BYTES_MAX);
    if (n_bytes > 0 && memchr(body, '\0', n_bytes) != NULL)
        return il__error_set(reterr, IL_INVAL, "not HTML: the page contains a NUL byte");
    if (!il__utf8_valid(body, n_bytes)) {
        from_latin1(body, n_bytes, &h->utf8);
        if (h->utf8.failed)
            return il__error_set(reterr, IL_NOMEM, "page: out of memory");
        body    = il__buf_str(&h->utf8);
        n_bytes = h->utf8.n_bytes;
    }
    il_status st = il__html_scan(h, body, n_bytes, reterr);
    if (st == IL_OK && h->clean.n_bytes > 0)
        st = build_tree(h, reterr);
    return st;
}

void
il__html_release(struct html *h)
{
    if (h->doc != NULL)
        il__libxml2->xmlFreeDoc(h->doc);
    il__buf_release(&h->clean);
    il__buf_release(&h->utf8);
    *h = (struct html){ 0 };
}

/* ---- walking --------------------------------------------------------------------------------- */

const xmlNode *
il__html_top(const struct html *h)
{
    return (const xmlNode *)(const void *)h->doc; /* a document begins like a node */
}

/* The next node of any type that is not below `at`. */
static const xmlNode *
after(const xmlNode *top, const xmlNode *at)
{
    while (at != top && at->next == NULL)
        at = at->parent;
    return at != top ? at->next : NULL;
}

static const xmlNode *
next(const xmlNode *top, const xmlNode *at)
{
    /* The children of other types than these are not elements or text of the page. */
    bool has_children = at == top || at->type == XML_ELEMENT_NODE;

    return has_children && at->children != NULL ? at->children : after(top, at);
}

const xmlNode *
il__html_next(const xmlNode *top, const xmlNode *at)
{
    if (top == NULL)
        return NULL;
    do
        at = next(top, at);
    while (at != NULL && at->type != XML_ELEMENT_NODE);
    return at;
}

const xmlNode *
il__html_find(const xmlNode *top, const char *name, const char *class_name)
{
    for (const xmlNode *n = il__html_next(top, top); n != NULL; n = il__html_next(top, n)) {
        if ((name == NULL || il__html_is(n, name)) && il__html_has_class(n, class_name))
            return n;
    }
    return NULL;
}

bool
il__html_is(const xmlNode *n, const char *name)
{
    return strcmp((const char *)n->name, name) == 0; /* libxml2 has them in lower case */
}

const char *
il__html_attribute(const xmlNode *n, const char *name)
{
    for (const xmlAttr *a = n->properties; a != NULL; a = a->next) {
        if (strcmp((const char *)a->name, name) != 0)
            continue;
        return a->children != NULL && a->children->content != NULL
                   ? (const char *)a->children->content
                   : "";
    }
    return NULL;
}

/* Is `word`, n_bytes long, one of the words of a list? */
static bool
in_list(const char *list, const char *word, size_t n_bytes)
{
    static const char spaces[] = " \t\r\n\f";

    for (list += strspn(list, spaces); *list != '\0'; list += strspn(list, spaces)) {
        size_t n = strcspn(list, spaces);
        if (n == n_bytes && memcmp(list, word, n) == 0)
            return true;
        list += n;
    }
    return false;
}

bool
il__html_has_class(const xmlNode *n, const char *class_name)
{
    const char *classes = il__html_attribute(n, "class");

    return classes != NULL && in_list(classes, class_name, strlen(class_name));
}

bool
il__html_inside(const xmlNode *n, const xmlNode *top, const char *name)
{
    for (n = n->parent; n != NULL && n != top; n = n->parent) {
        if (n->type == XML_ELEMENT_NODE && il__html_is(n, name))
            return true;
    }
    return false;
}

void
il__html_row(const xmlNode *tr, struct html_row *ret)
{
    *ret = (struct html_row){ .is_head = true };
    for (const xmlNode *c = tr->children; c != NULL && ret->n < HTML_CELLS_MAX; c = c->next) {
        if (c->type != XML_ELEMENT_NODE)
            continue;
        bool is_td = il__html_is(c, "td");
        if (!is_td && !il__html_is(c, "th"))
            continue;
        ret->cells[ret->n++] = c;
        ret->is_head &= !is_td;
    }
}

/* ---- text ------------------------------------------------------------------------------------ */

static bool
is_left_out(const xmlNode *n, const char *without)
{
    const char *name = (const char *)n->name;

    if (without == NULL)
        return false;
    if (in_list(without, name, strlen(name)))
        return true;
    for (const char *dot = strchr(without, '.'); dot != NULL; dot = strchr(dot + 1, '.')) {
        char   class_name[32];
        size_t n_bytes = strcspn(dot + 1, " ");
        CHECK(n_bytes < sizeof class_name);
        memcpy(class_name, dot + 1, n_bytes);
        class_name[n_bytes] = '\0';
        if (il__html_has_class(n, class_name))
            return true;
    }
    return false;
}

void
il__html_text(const xmlNode *n, const char *without, struct il__buf *out)
{
    const xmlNode *at = next(n, n);

    while (at != NULL && !out->failed) {
        bool skip = false;
        if (at->type == XML_TEXT_NODE || at->type == XML_CDATA_SECTION_NODE) {
            if (at->content != NULL)
                il__buf_adds(out, (const char *)at->content);
        } else if (at->type == XML_ELEMENT_NODE) {
            skip = is_left_out(at, without);
            if (il__html_is(at, "br"))
                il__buf_addc(out, '\n');
        }
        at = skip ? after(n, at) : next(n, at);
    }
}
