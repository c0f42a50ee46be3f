/* lanerules: which lane a request belongs to, however its client spells the path. */
#include "edge/lanerules.h"
#include "http1/head.h"

#include "guard.h"
#include "tap.h"

static sr_lanerules rules;

static const char *of(const char *line, const char *fields, bool trusted)
{
    static const sr_request_limits limits = {
        .line = 65536, .head = 100000, .fields = 20, .underscores = true};
    static sr_request r;
    static char head[100000];
    size_t len = (size_t)snprintf(head, sizeof head, "%s HTTP/1.1\r\nHost: a\r\n%s\r\n", line, fields);
    sr_request_init(&r);
    if (sr_request_feed(&r, &limits, head, len) != SR_PARSE_DONE) {
        printf("# %s: %s\n", line, r.why ? r.why : "");
        return "bad";
    }
    int i = sr_lanerules_find(&rules, &r, head, trusted);
    return i < 0 ? "none" : rules.at[i].text.at;
}

static void is_of(const char *line, const char *want)
{
    const char *got = of(line, "", false);
    if (!ok(strcmp(got, want) == 0, "%s: %s", line, want))
        printf("# got %s\n", got);
}

static void paths(void)
{
    static const char *const cases[][2] = {
        {"GET /", "none"},
        {"GET /rep", "none"},
        {"GET /repost", "none"},
        {"GET /xreport", "none"},
        {"GET /x/report", "none"},
        {"GET /?/report", "none"},
        {"GET /x?a=//report", "none"},
        {"GET /x#", "bad"},
        {"OPTIONS *", "none"},
        {"GET /report", "/report"},
        {"GET /report?x", "/report"},
        {"GET /report/1", "/report"},
        {"GET /reports", "/report"}, /* a prefix, as a location of nginx */
        {"GET /report.json", "/report"},
        {"GET /report;x=1", "/report"},
        {"GET http://b/report", "/report"},
        {"GET http://b", "none"},
        {"GET /Report", "/report"},
        {"GET /%72eport", "/report"},
        {"GET /%52%45port", "/report"},
        {"GET %2Freport", "bad"},
        {"GET //report", "/report"},
        {"GET ///report", "/report"},
        {"GET /%2freport", "/report"},
        {"GET /./report", "/report"},
        {"GET /.//./report", "/report"},
        {"GET /%2e/report", "/report"},
        {"GET /x/../report", "/report"},
        {"GET /x/%2e%2E/report", "/report"},
        {"GET /x/y/../../report/1", "/report"},
        {"GET /../report", "/report"},
        {"GET /../../../report", "/report"},
        {"GET /x//../report", "/report"},  /* if one goes up by one, and if the empty one counts */
        {"GET /x/../x/report", "/report"}, /* nobody knows what an application makes of it: it waits */
        {"GET /report/..", "/report"},     /* an application that takes it as it is runs a report */
        {"GET /report/../shop", "/report"},
        {"GET //report/../shop", "/report"},
        {"GET /shop/", "none"},
        {"GET /shop/..report", "none"},
        {"GET /.../x", "none"},
        {"GET /..", "none"},
        {"GET //", "none"},
        /* where readings lead to several: that with the fewest places */
        {"GET /report/fast/1", "/report/fast"},
        {"GET /report/%66ast", "/report/fast"},
        {"GET /report/fast//1", "/report/fast"}, /* all of them lead there */
        {"GET /report/fast/../1", "/report"},
        {"GET /report/./fast/1", "/report"},
        {"GET /report//fast", "/report"},
        {"GET /images-and-more/1", "/images-and-more"},
        {"GET /images-and-more//1", "/images-and-more"},
        {"GET /report//images-and-more", "/report"},
        {"GET /images-and-more//report", "/report"},
        {"GET /images-and-more/../report/../images-and-more", "/report"},
        {"POST /images-and-more//report", "POST /report"},
        /* the longest prefix; that with a method first */
        {"GET /report/big/1", "/report/big"},
        {"GET /report//big", "/report/big"},
        {"GET /report/x/../big", "/report/big"},
        {"GET /report/./big", "/report/big"},
        {"POST /report", "POST /report"},
        {"post /report", "POST /report"},
        {"POST /report/big", "/report/big"},
        {"POST /import", "POST /import"},
        {"POST /%69mport/x", "POST /import"},
        {"PUT /import", "none"},
        {"GET /import", "none"},
        {"GET /slow", "GET /slow"},
        {"HEAD /slow", "GET /slow"}, /* which frameworks run as GET */
        {"POST /slow", "none"},
        {"GET /a%20b/c", "/a b"},
        {"GET /%c3%a9t%c3%a9", "/\303\251t\303\251"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        is_of(cases[i][0], cases[i][1]);
}

/* A path that is longer than what is looked at */
static void long_paths(void)
{
    static char line[20000];
    memset(line, 'a', sizeof line - 1);
    memcpy(line, "GET /", 5);
    ok(strcmp(of(line, "", false), "none") == 0, "a long path belongs to no lane");
    memcpy(line, "GET /report/", 12);
    ok(strcmp(of(line, "", false), "/report") == 0, "a long one below the prefix does");
    memcpy(line, "GET /aaaaaaa", 12);
    memcpy(line + sizeof line - 20, "/../../../x/report/", 19);
    ok(strcmp(of(line, "", false), "none") != 0, "nor does a long one get around it by dot segments");
    for (size_t i = 5; i < sizeof line - 20; i++)
        line[i] = '/';
    ok(strcmp(of(line, "", false), "none") != 0, "or by slashes");
    memcpy(line, "GET /report/", 12);
    for (size_t i = 12; i < sizeof line - 1; i++)
        line[i] = i % 2 ? '/' : '.';
    ok(strcmp(of(line, "", false), "/\303\251t\303\251") == 0, "it is in that with the fewest places of all");
}

static void fields(void)
{
    static const struct {
        const char *fields, *want;
        bool trusted;
    } cases[] = {
        {"X-Class: batch\r\n", "X-Class: batch", true},
        {"x-cLASS:   batch \r\n", "X-Class: batch", true},
        {"X-Class: batch\r\n", "none", false},
        {"X-Class: Batch\r\n", "none", true},
        {"X-Class: batches\r\n", "none", true},
        {"X-Class:\r\n", "none", true},
        {"X_Class: batch\r\n", "none", true},
        {"X-Class: a\r\nX-Class: batch\r\n", "X-Class: batch", true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        ok(strcmp(of("GET /", cases[i].fields, cases[i].trusted), cases[i].want) == 0, "field %zu: %s", i,
           cases[i].want);
    ok(strcmp(of("GET /report/big", "X-Class: batch\r\n", true), "X-Class: batch") == 0,
       "a field comes before a prefix");
}

static void words(void)
{
    static const char *const bad[] = {"",          "2",         "2,3",       "2,3,4",       "0,1,1,/a",
                                      "-1,1,1,/a", "1,-1,1,/a", "1,1,-1,/a", "1,1,x,/a",    "1,1,1,",
                                      "1,1,1,a",   "1,1,1,A: ", ",1,1,/a",   "1,1,1e10,/a", "x,1,1,/a"};
    sr_lanerules all = {.n = 0};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        ok(sr_lanerules_add(&all, bad[i]) != NULL, "refused: \"%s\"", bad[i]);
    is_int(all.n, 0, "nothing was added");
    for (int i = 0; i < SR_LANES_MAX; i++)
        ok(!sr_lanerules_add(&all, "1,2,0.5,/a"), "lane %d", i + 1);
    ok(sr_lanerules_add(&all, "1,2,0.5,/a") != NULL, "one too many");
    ok(all.at[0].limit == 1 && all.at[0].queue == 2 && all.at[0].timeout_ns == 500000000, "its numbers");
}

int main(void)
{
    static const char *const all[] = {
        "2,9,1,/report",        "2,9,1,/report/big",     "1,9,1,POST /report", "1,9,1,POST /import",
        "1,9,1,X-Class: batch", "1,9,1,GET /slow",       "1,9,1,/a b",         "1,9,1,/\303\251t\303\251",
        "4,9,1,/report/fast",   "4,9,1,/images-and-more"};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (sr_lanerules_add(&rules, all[i]))
            return 1;
    paths();
    long_paths();
    fields();
    words();
    return done_testing();
}
