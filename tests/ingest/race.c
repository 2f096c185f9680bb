/*
 * race.c: race pages: result tables, lap scripts, driver ids, and what is wrong with them.
 */
#include "ingest/page.h"

#define HEADS                                                                                 \
    "<th>Pos</th><th>Driver</th><th>Qual</th><th>Laps/Time</th><th>Behind</th><th>Fastest "   \
    "Lap</th><th>Avg Lap</th><th>Avg Top 5</th><th>Avg Top 10</th><th>Avg Top 15</th><th>Top" \
    " 3 Consecutive</th><th>Std. Deviation</th><th>Consistency</th>"
#define TABLE "<table class='table race_result'><thead><tr>" HEADS "</tr></thead><tbody>"
#define END "</tbody></table>"
/* A row with a link, and one without. */
#define LINKED(pos, id, name, laps)                                                            \
    "<tr><td>" pos "<td><span class=driver_name>" name "</span><a class=driver_laps href='#' " \
    "data-driver-id='" id "'>View Laps</a><td>1<td>" laps "<td></tr>"
#define UNLINKED(pos, car, name, laps)                                                    \
    "<tr><td>" pos "<td><span class=car_num>" car "</span> <span class=driver_name>" name \
    "</span><td>1<td>" laps "<td></tr>"
#define SCRIPT(text) "<script>" text "</script>"

U_TEST(whole)
{
    const struct liverc_race *r = t_race(
        "<table class='table race_result'><thead><tr><th colspan=14><div class=race_num>13</div>"
        "<div class=race_info><span class=class_header>Buggy A3-Main</span><br/>"
        "<span class=class_sub_header>Round: Main Events</span><br/><span class=class_sub_header>"
        "Length: 30:00 Timed</span></div></th></tr><tr>" HEADS "</tr></thead>"
        "<tfoot><tr><th>Pos</th><th>Driver</th><th>Behind</th></tr></tfoot><tbody>"
        "<tr><td>1</td><td><span class=car_num>2</span> <span class=driver_name>FELIX KOEGLER"
        "</span><br/><a href='#' data-driver-id='346997' class=driver_laps><span></span> View Laps"
        "</a></td><td>2</td><td>47/30:31.382</td><td></td><td>37.234<sup>10</sup></td>"
        "<td><div class=hidden>38.983</div>38.983</td><td>38.1</td><td></td><td><div class=hidden>"
        "</div></td><td><div class=hidden>112.036</div>1:52.036</td><td>1.39</td><td>92.82%</td>"
        "</tr><tr><td>2<td><span class=driver_name>ANN LEE</span><td>3<td>46/30:12.000<td>1 Lap"
        "<td>38.000<sup>2</sup><td><td><td><td><td><td>0.00<td>100%</tr>"
        "<tr><td>3<td>7 BOB MOSS<td><td>46/30:24.052<td>12.052</tr>"
        "<tr><td>4<td><span class=driver_name>EVE</span><td>1<td>44/30:20.1<td>2 Laps</tr>"
        "<tr><td>5<td><span class=driver_name>ZOE</span><td>1<td>0<td>0.000<td>0.000</tr>" END,
        "6304822");
    const struct liverc_result *s = &r->results[0];

    T_STREQ(r->id, "6304822");
    T_EQ(r->number, 13);
    T_STREQ(r->label, "Buggy A3-Main");
    T_STREQ(r->round, "Main Events");
    T_STREQ(r->length, "30:00 Timed");
    T_EQ(r->length_ms, 1800000);
    T_TRUE(!r->has_laps);
    T_EQU(r->n_results, 5);
    T_EQ(s->position, 1);
    T_STREQ(s->car_number, "2");
    T_STREQ(s->name, "FELIX KOEGLER");
    T_STREQ(s->driver_id, "346997");
    T_EQ(s->qualified, 2);
    T_EQ(s->n_laps_completed, 47);
    T_EQ(s->total_ms, 1831382);
    T_STREQ(s->total_raw, "47/30:31.382");
    T_EQ(s->behind_ms, LIVERC_NONE);
    T_EQ(s->fastest_ms, 37234);
    T_EQ(s->fastest_lap, 10);
    T_EQ(s->average_ms, 38983);
    T_EQ(s->average_top_5_ms, 38100);
    T_EQ(s->average_top_10_ms, LIVERC_NONE);
    T_EQ(s->average_top_15_ms, LIVERC_NONE);
    T_EQ(s->top_3_consecutive_ms, 112036);
    T_EQ(s->deviation_ms, 1390);
    T_EQ(s->consistency_milli, 92820);
    T_EQ(r->results[1].behind_laps, 1);
    T_EQ(r->results[1].deviation_ms, 0);
    T_EQ(r->results[1].consistency_milli, 100000);
    T_STREQ(r->results[2].name, "BOB MOSS");
    T_STREQ(r->results[2].car_number, "7");
    T_EQ(r->results[2].qualified, LIVERC_NONE);
    T_EQ(r->results[2].behind_ms, 12052);
    T_EQ(r->results[3].behind_laps, 2);
    T_EQ(r->results[4].n_laps_completed, 0);
    T_EQ(r->results[4].total_ms, LIVERC_NONE);
    T_EQ(r->results[4].behind_ms, 0);
    T_EQ(r->results[4].fastest_ms, LIVERC_NONE);
    T_EQU(t_page.n_warnings, 0);
}

U_TEST(newer_table_and_columns_in_another_order)
{
    const struct liverc_race *r = t_race(
        "<table><tr><th>Name</th></tr></table><span class=class_sub_header>Length: 1:00:00 Timed"
        "</span><table id='DataTables_Table_0'><thead><tr><th>Pos<th>Behind<th>Laps/Time<th>Driver"
        "<th>Fastest Lap <sup>(Lap #)</sup></tr></thead><tr><td>1<td>0.5<td>2/1:02.5<td><span "
        "class=driver_name>X</span><td>31.0<sup>1</sup></tr></table>",
        NULL);

    T_TRUE(r->id == NULL);
    T_EQ(r->length_ms, 3600000);
    T_EQ(r->number, LIVERC_NONE);
    T_EQ(r->results[0].behind_ms, 500);
    T_EQ(r->results[0].total_ms, 62500);
    T_EQ(r->results[0].fastest_ms, 31000);
}

U_TEST(refused)
{
    t_refused(LIVERC_RACE, "<p>Not found", "1", LIVERC_RACE_PAGE_FORMAT_ERROR, "no result table");
    t_refused(LIVERC_RACE, "<table><tr><th>Pos<th>Driver</table>", "1",
              LIVERC_RACE_PAGE_FORMAT_ERROR, "no result table");
    t_refused(LIVERC_RACE, "<table><tr><th>Pos<th>Behind<th>Driver</table>", "1",
              LIVERC_RACE_PAGE_FORMAT_ERROR, "'Laps/Time'");
    t_refused(LIVERC_RACE, "<a href='?p=view_race_result&id=2'></a>" TABLE END, "1",
              LIVERC_VALIDATION_ERROR, "expected the page of id 1, got that of 2");
    t_refused(LIVERC_RACE, TABLE UNLINKED("0", "1", "X", "0") END, "1", LIVERC_VALIDATION_ERROR,
              "row 1 of the results: invalid position 0");
    t_refused(LIVERC_RACE, TABLE UNLINKED("first", "1", "X", "0") END, "1",
              LIVERC_NORMALISATION_ERROR, "cannot read Pos: 'first'");
    t_refused(LIVERC_RACE, TABLE UNLINKED("1", "1", "&nbsp;", "0") END, "1",
              LIVERC_VALIDATION_ERROR, "missing driver name");
    t_refused(LIVERC_RACE, TABLE UNLINKED("1", "1", "X", "3/fast") END, "1",
              LIVERC_NORMALISATION_ERROR, "Laps/Time: '3/fast'");
    t_refused(LIVERC_RACE, TABLE UNLINKED("1", "1", "X", "-3/1.0") END, "1",
              LIVERC_NORMALISATION_ERROR, "Laps/Time: '-3/1.0'");
    t_refused(LIVERC_RACE, TABLE UNLINKED("1", "1", "X", "3/0:00.000") END, "1",
              LIVERC_VALIDATION_ERROR, "3 laps, but a total time of 0");
    t_refused(LIVERC_RACE, TABLE "<tr><td>1<td>X<td>1<td>1/1.0<td>far</tr>" END, "1",
              LIVERC_NORMALISATION_ERROR, "Behind: 'far'");
    t_refused(LIVERC_RACE, TABLE LINKED("1", "5", "X", "0") LINKED("2", "5", "Y", "0") END, "1",
              LIVERC_VALIDATION_ERROR, "rows 1 and 2 of the results have the same driver 5");
    t_refused(LIVERC_RACE, TABLE LINKED("1", "5x", "X", "0") END, "1", LIVERC_NORMALISATION_ERROR,
              "'5x' is not the id of a driver");
}

U_TEST(consistency_out_of_range)
{
    const struct liverc_race *r = t_race(
        TABLE "<tr><td>1<td>X<td>1<td>1/1.0<td><td><td><td><td><td><td><td><td>100.01%</tr>" END,
        "1");

    T_EQ(r->results[0].consistency_milli, LIVERC_NONE);
    t_warned("consistency '100.01%' is ignored");
    r = t_race(TABLE "<tr><td>1<td>X<td>1<td>1/1.0<td><td><td><td><td><td><td><td><td>-4%</tr>" END,
               "1");
    T_EQ(r->results[0].consistency_milli, LIVERC_NONE);
    t_warned("'-4%'");
}

U_TEST(no_results)
{
    const struct liverc_race *r =
        t_race(TABLE "<tr><td colspan=13>No data available in table</td></tr>" END, "1");

    T_EQU(r->n_results, 0);
}

/* ---- laps ------------------------------------------------------------------------------------ */

#define LAP(n, pos, time)                                                                 \
    "{ 'lapNum' : '" n "', 'pos' : '" pos "', 'time' : '" time "', 'pace' : '9/1:00.0', " \
    "'segments' : [ ] },"

U_TEST(laps)
{
    const struct liverc_race *r =
        t_race(SCRIPT("var racerLaps = {}; positionDataDriver.label = 'O\\'HARA {';"
                      "racerLaps[5] = { 'driverName' : 'X', 'fastLap' : '37.2', 'laps' : [" LAP(
                          "0", "1", "0") LAP("1", "2", "38.17")
                          LAP("2", "1", "1:00.5") " ] };"
                                                  "console.log(racerLaps[5]); racerLaps[6] == {};"
                                                  "racerLaps[6] = { 'driverName' : 'Y', 'fastLap' "
                                                  ": '', 'laps' : [ ] };")
                   TABLE LINKED("1", "5", "X", "2/1:38.67") UNLINKED("2", "6", "Y", "0") END,
               "1");
    const struct liverc_lap *lap = r->results[0].laps;

    T_TRUE(r->has_laps);
    T_EQU(r->results[0].n_laps, 2);
    T_EQ(lap[0].number, 1);
    T_EQ(lap[0].position, 2);
    T_EQ(lap[0].time_ms, 38170);
    T_EQ(lap[0].elapsed_ms, 38170);
    T_STREQ(lap[0].time_raw, "38.17");
    T_STREQ(lap[0].pace, "9/1:00.0");
    T_EQ(lap[1].elapsed_ms, 98670);
    T_EQU(r->results[1].n_laps, 0);
    T_STREQ(r->results[1].driver_id, "6"); /* a non-starter: from the script, by name */
    T_EQU(t_page.n_warnings, 0);
}

/* Everything that a script may look like and still be read. */
U_TEST(lap_spellings)
{
    static const char *const scripts[] = {
        "racerLaps[5]={driverName:'X',laps:[{lapNum:1,pos:1,time:38.17,segments:['1.5',2]}]}",
        "racerLaps[\"5\"] = {\"driverName\":\"X\",\"laps\":[{\"lapNum\":\"1\",\"pos\":\"1\","
        "\"time\":\"38.17\",\"segments\":[\"1.5\",\"2\",],},],};",
        "window.racerLaps['5'] = { 'note' : 'a } ] , { brace', /* } */ 'more' : { 'x' : [ 1, { } ] "
        "}, // it's }\n 'laps' : [ , { 'time' : '38.17', 'pos' : '1', 'lapNum' : '1', 'segments' : "
        "[ '1.5', '2' ] }, , ] , 'driverName' : 'X' }",
        "racerLaps [ 5 ] \n = \n { 'driverName' : 'old', 'laps' : [ { } ] }; racerLaps[5] = { "
        "'laps' : [ { 'lapNum' : '0' }, { 'lapNum' : '\\x31', 'pos' : '1', 'time' : '38\\u002e17', "
        "'segments' : [ '1.5', '2' ] } ] };",
        "x = 'unterminated\nracerLaps[5] = { laps : [ { lapNum : '1', pos : 1, time : '38.17',"
        " extra : fn(1, [2]), segments : [1.5, 2] } ] }",
        "racerLaps[5] = { laps : [ { } ], laps : [ { lapNum : 1, pos : 1, time : 38.17, segments : "
        "[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20], segments : [1.5, 2] } ] }",
        "// racerLaps[5] = { laps : [ { lapNum : 1, time : 9 } ] }\nracerLaps[5] = "
        "{'laps':[{'lapNum"
        "':'1','pos':'1','time':'38.17','segments':['1.5','2']}]}",
    };
    char html[4096];

    for (size_t i = 0; i < ARRAY_LEN(scripts); i++) {
        (void)snprintf(html, sizeof html, "<script>%s</script>%s", scripts[i],
                       TABLE LINKED("1", "5", "X", "1/38.17") END);
        const struct liverc_race *r = t_race(html, "1");
        if (t_page.n_warnings > 0)
            T_FAIL("script %zu: %s", i, t_page.warnings[0]);
        T_EQU(r->results[0].n_laps, 1);
        T_EQ(r->results[0].laps[0].time_ms, 38170);
        T_EQ(r->results[0].laps[0].position, 1);
        T_EQU(r->results[0].laps[0].n_segments, 2);
        T_STREQ(r->results[0].laps[0].segments[0], "1.5");
        T_STREQ(r->results[0].laps[0].segments[1], "2");
    }
}

/* Bad laps cost a driver the laps, not the result. */
U_TEST(bad_laps)
{
    static const struct {
        const char *laps, *why;
    } cases[] = {
        { LAP("1", "1", "38.1") LAP("3", "1", "38.1"),
          "at lap 3: lap numbers are not consecutive from 1" },
        { LAP("1", "1", "38.1") LAP("1", "1", "38.1"),
          "at lap 1: lap numbers are not consecutive from 1" },
        { LAP("1", "1", "38.1") LAP("0", "1", "38.1"), "lap numbers are not consecutive from 1" },
        { LAP("1", "1", "fast"), "invalid time" },
        { LAP("1", "1", "-1"), "invalid time" },
        { LAP("1", "1", "0.000"), "time is 0" },
        { LAP("1", "0", "38.1"), "position is not a positive number" },
        { LAP("x", "1", "38.1"), "no number" },
        { "{ 'pos' : '1' }", "no number" },
        { LAP("1", "1", "1") LAP("2", "1", "1") LAP("3", "1", "1"), "more laps than" },
        { LAP("1", "1", "38.1") "7", "a lap is not an object" },
        { LAP("1", "1", "38.1") "{ 'lapNum' '2' }", "expected an object" },
    };
    char html[4096];

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        (void)snprintf(html, sizeof html,
                       "<script>racerLaps[5] = { 'laps' : [ %s ] };"
                       "racerLaps[6] = { 'laps' : [ " LAP("1", "1", "39.5") " ] };</script>%s",
                       cases[i].laps,
                       TABLE LINKED("1", "5", "X", "2/1:16.2") LINKED("2", "6", "Y", "1/39.5") END);
        const struct liverc_race *r = t_race(html, "1");
        T_EQU(r->results[0].n_laps, 0);
        T_EQ(r->results[0].total_ms, 76200);
        T_EQU(r->results[1].n_laps, 1);
        t_warned(cases[i].why);
    }
}

U_TEST(script_cut_off)
{
    const struct liverc_race *r = t_race(TABLE LINKED("1", "5", "X", "2/1:16.2") END
                                         "<script>racerLaps[5] = { 'laps' : [ " LAP("1", "1", "3"),
                                         "1");

    T_EQU(r->results[0].n_laps, 0);
    t_warned("truncated");
}

U_TEST(laps_of_nobody)
{
    const struct liverc_race *r =
        t_race(SCRIPT("racerLaps[9] = { 'laps' : [ " LAP("1", "1", "3") " ] }")
                   TABLE LINKED("1", "5", "X", "2/1:16.2") END,
               "1");

    T_EQU(r->results[0].n_laps, 0);
    t_warned("driver 9: no such driver in the results");
}

/* ---- driver ids ------------------------------------------------------------------------------ */

U_TEST(synthetic_id)
{
    const struct liverc_race *r = t_race(TABLE UNLINKED("1", "3", "Riley Lander", "0") END, "1");

    T_STREQ(r->results[0].driver_id, "synthetic-44bc992c73330dc6");
}

U_TEST(namesakes)
{
    char                      id[LIVERC_DRIVER_ID_BYTES];
    const struct liverc_race *r = t_race(TABLE UNLINKED("1", "3", "Riley Lander", "0")
                                             UNLINKED("2", "8", "RILEY LANDER", "0") END,
                                         "1");

    il__liverc_synthetic_id("canberraoffroad", "RILEY LANDER", "3", id);
    T_STREQ(r->results[0].driver_id, id);
    il__liverc_synthetic_id("canberraoffroad", "RILEY LANDER", "8", id);
    T_STREQ(r->results[1].driver_id, id);
    /* one has a link: the script's other driver of that name is the other one */
    r = t_race(
        SCRIPT("racerLaps[5] = { driverName : 'Riley Lander' }; racerLaps[6] = { driverName :"
               " 'riley  LANDER' };") TABLE LINKED("1", "5", "Riley Lander", "0")
            UNLINKED("2", "8", "RILEY LANDER", "0") END,
        "1");
    T_STREQ(r->results[1].driver_id, "6");
    /* two without a link: the script cannot tell them apart */
    r = t_race(
        SCRIPT("racerLaps[5] = { driverName : 'RILEY LANDER' }; racerLaps[6] = { driverName :"
               " 'RILEY LANDER' };") TABLE UNLINKED("1", "3", "RILEY LANDER", "0")
            UNLINKED("2", "8", "RILEY LANDER", "0") END,
        "1");
    T_STREQ(r->results[1].driver_id, id);
}

/* ---- digests --------------------------------------------------------------------------------- */

static const char *
digest_of(const char *html, char out[LIVERC_DIGEST_BYTES])
{
    memcpy(out, t_race(html, "1")->digest, LIVERC_DIGEST_BYTES);
    return out;
}

#define DIGESTED(lap, name)                                          \
    SCRIPT("racerLaps[5] = { 'laps' : [ " LAP("1", "1", lap) " ] }") \
    TABLE LINKED("1", "5", name, "1/38.17") END

U_TEST(digest)
{
    char a[LIVERC_DIGEST_BYTES], b[LIVERC_DIGEST_BYTES];

    T_STREQ(digest_of(DIGESTED("38.17", "Ann Lee"), a),
            digest_of("<!-- other -->\n<p>ad" DIGESTED("38.17", " Ann&nbsp;\nLee"), b));
    T_TRUE(strcmp(a, digest_of(DIGESTED("38.18", "Ann Lee"), b)) != 0);
    T_TRUE(strcmp(a, digest_of(DIGESTED("38.17", "Ann Les"), b)) != 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        U_ROW(whole),          U_ROW(newer_table_and_columns_in_another_order),
        U_ROW(refused),        U_ROW(consistency_out_of_range),
        U_ROW(no_results),     U_ROW(laps),
        U_ROW(lap_spellings),  U_ROW(bad_laps),
        U_ROW(script_cut_off), U_ROW(laps_of_nobody),
        U_ROW(synthetic_id),   U_ROW(namesakes),
        U_ROW(digest),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);

    il__liverc_page_release(&t_page);
    return failed;
}
