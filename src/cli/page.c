/*
 * page.c: pages of listings; the contract is in page.h.
 */
#include "cli/page.h"

#include "cli/print_item.h"

void
il__cli_note_next(const struct cli *cli, const char *next)
{
    if (next != NULL)
        il__cli_note(cli, "more items: --cursor '%s'", next);
}

void
il__cli_page_init(struct cli_page *p, struct cli *cli, int64_t limit, const char *const *headers,
                  size_t n_headers)
{
    *p = (struct cli_page){ .cli = cli, .limit = (uint32_t)limit };
    if (cli->json)
        p->items = json_array();
    else
        il__cli_grid_init(&p->grid, headers, n_headers);
    p->failed = cli->json && p->items == NULL;
}

void
il__cli_page_release(struct cli_page *p)
{
    json_decref(p->items);
    p->items = NULL;
    il__cli_grid_release(&p->grid);
}

bool
il__cli_page_wants(struct cli_page *p, const char *id)
{
    p->more = p->n == p->limit;
    if (p->more)
        return false;
    p->n++;
    (void)snprintf(p->last, sizeof p->last, "%s", id);
    return true;
}

void
il__cli_page_add(struct cli_page *p, json_t *item)
{
    if (item == NULL || p->items == NULL || json_array_append_new(p->items, item) != 0)
        p->failed = true;
}

int
il__cli_page_print(struct cli_page *p, const char *none)
{
    const char *next = p->more ? p->last : NULL;

    if (p->failed)
        return il__cli_fail_memory();
    if (p->cli->json)
        return il__cli_json_page(TAKE(p->items), next);
    if (p->n == 0) {
        il__cli_note(p->cli, "%s", none);
        return 0;
    }
    int status = il__cli_grid_print(&p->grid);
    il__cli_note_next(p->cli, next);
    return status;
}
