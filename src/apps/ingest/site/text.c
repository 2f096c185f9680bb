/*
 * text.c: dates, times and HTML as the pages print them; see model.h.
 */
#include "apps/ingest/site/model.h"
#include "base/parse.h"

void
il__site_add_day(struct il__buf *b, unsigned day)
{
    static const char *const months[] = { "Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                          "Jul", "Aug", "Sep", "Oct", "Nov", "Dec" };
    struct il__date          date     = il__date_of(day);

    il__buf_addf(b, "%s %d, %d", months[date.month - 1], date.day, date.year);
}

void
il__site_add_iso_day(struct il__buf *b, unsigned day)
{
    char text[IL__DATE_TEXT_BYTES];

    il__buf_adds(b, il__date_text(day, text));
}

void
il__site_add_seconds(struct il__buf *b, uint32_t ms)
{
    il__buf_addf(b, "%u.%03u", ms / 1000, ms % 1000);
}

void
il__site_add_time(struct il__buf *b, uint32_t ms)
{
    unsigned s = ms / 1000;

    if (s >= 3600)
        il__buf_addf(b, "%u:%02u:%02u.%03u", s / 3600, s / 60 % 60, s % 60, ms % 1000);
    else if (s >= 60)
        il__buf_addf(b, "%u:%02u.%03u", s / 60, s % 60, ms % 1000);
    else
        il__site_add_seconds(b, ms);
}

void
il__site_add_html(struct il__buf *b, const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '&')
            il__buf_adds(b, "&amp;");
        else if (*text == '<')
            il__buf_adds(b, "&lt;");
        else if (*text == '>')
            il__buf_adds(b, "&gt;");
        else if (*text == '"')
            il__buf_adds(b, "&quot;");
        else
            il__buf_addc(b, *text);
    }
}

void
il__site_open_page(struct il__buf *b, const char *title)
{
    il__buf_adds(b, "<!doctype html>\n<html lang=\"en\">\n<head>\n\t<meta charset=\"utf-8\" />\n"
                    "\t<title>");
    il__site_add_html(b, title);
    il__buf_adds(
        b,
        " :: Demo Site</title>\n"
        "\t<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\" />\n"
        "\t<link rel=\"stylesheet\" href=\"/css/global.css?1153\" />\n"
        "\t<script src=\"//assets.example/jquery.min.js\"></script>\n"
        "\t<script type=\"text/javascript\">\n\t\tvar slots = [];\n"
        "\t\tslots.push({ 'name' : '<table class=\"race_result\">', 'size' : [[300, 100]] });\n"
        "\t</script>\n</head>\n<body>\n<pre class=\"hidden\" id=\"user_profile_data\">false</pre>\n"
        "<div id=\"wrapper\">\n<nav class=\"navbar navbar-default\" role=\"navigation\">\n"
        "\t<ul class=\"nav\" id=\"side-menu\">\n"
        "\t\t<li><a href=\"//live.liverc.com\"><i class=\"fa fa-road fa-fw\"></i> Switch "
        "Tracks</a></li>\n"
        "\t\t<li><a href=\"/results/\"><i class=\"fa fa-list-ol fa-fw\"></i> Race "
        "Results</a></li>\n"
        "\t\t<!--<li><a href=\"/events/\">Past Events</a></li>-->\n\t</ul>\n</nav>\n"
        "<div id=\"page-wrapper\">\n");
}

void
il__site_close_page(struct il__buf *b)
{
    il__buf_adds(b, "</div>\n</div>\n<div id=\"loading_overlay\"><p><img src=\"/loading.svg\" "
                    "width=\"75\" /></p></div>\n"
                    "<script src=\"/js/global.min.js?1153\"></script>\n"
                    "<script>\n\tvar showFlyInBox = false;\n</script>\n</body>\n</html>\n");
}
