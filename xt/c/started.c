/* started: when a proxy has received a request, by tables of fields. It is 1700000000 s since 1970. */
#include "../../src/http/started.h"

#include "fields.h"
#include "tap.h"

#define WALL INT64_C(1700000000000000000)

static int64_t result(const char *fields)
{
    static sr_request r;
    const char *at = request_of(&r, fields);
    if (!at)
        return -1;
    return sr_started_before(&r, at, WALL);
}

typedef struct row {
    const char *fields;
    int64_t want;
} row;

#define START(value) "X-Request-Start: " value "\r\n"
#define QUEUE(value) "X-Queue-Start: " value "\r\n"
#define MS INT64_C(1000000)

static const row rows[] = {
    {"", 0},
    {"X-Other-Start: 1699999999\r\n", 0},
    /* as nginx, Heroku, Apache and others write it */
    {START("t=1699999999.750"), 250 * MS},
    {START("t=1699999999"), 1000 * MS},
    {START("1699999999.75"), 250 * MS},
    {START("1699999999750"), 250 * MS},
    {START("t=1699999999750"), 250 * MS},
    {START("1699999999750.5"), 249 * MS + 500000},
    {START("t=1699999999750000"), 250 * MS},
    {START("1699999999750000.25"), 250 * MS - 250},
    {START("1699999999750000000"), 250 * MS},
    {START("1699999999750000000.999"), 250 * MS},
    {START("t=1699999999.999999999"), 1},
    {START("t=1699999999.9999999999999999999999"), 1},
    {"x-request-START: 1699999999\r\n", 1000 * MS},
    /* the other name */
    {QUEUE("t=1699999999750000"), 250 * MS},
    {START("1699999999") QUEUE("1699999998"), 1000 * MS},
    {QUEUE("1699999998") START("1699999999"), 1000 * MS},
    {START("junk") QUEUE("1699999998"), 2000 * MS},
    {START("1700000001") QUEUE("1699999998"), 2000 * MS},
    /* several: the last one is the peer's */
    {START("1699999990") START("1699999999"), 1000 * MS},
    {START("t=1699999990, t=1699999999"), 1000 * MS},
    {START("1699999990") START("junk"), 0},
    {START("1699999990,"), 0},
    /* limits */
    {START("1700000000"), 0},
    {START("1700000000.001"), 0},
    {START("1700000060"), 0},
    {START("1699996400"), 3600 * 1000 * MS},
    {START("1699996399.999"), 0},
    {START("0"), 0},
    {START("1"), 0},
    {START("99999999999"), 0},
    {START("9223372036854775807"), 0},
    {START("9999999999999999999"), 0},
    {START("18446744073709551616"), 0},
    {START("99999999999999999999999999999999"), 0},
    /* junk */
    {START(""), 0},
    {START("t="), 0},
    {START("t=t=1699999999"), 0},
    {START("T=1699999999"), 0},
    {START("-1699999999"), 0},
    {START("+1699999999"), 0},
    {START("1699999999."), 0},
    {START(".75"), 0},
    {START("1699999999.7.5"), 0},
    {START("1699999999,75"), 0},
    {START("1699999999 s"), 0},
    {START("1699999999s"), 0},
    {START("0x6553f0ff"), 0},
    {START("1.699999999e9"), 0},
    {START("nan"), 0},
    {START("2023-11-14T22:13:19Z"), 0},
};

int main(void)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int64_t got = result(rows[i].fields);
        int shown = (int)strcspn(rows[i].fields, "\r");
        if (!ok(got == rows[i].want, "row %zu: %.*s", i, shown, rows[i].fields))
            printf("# got %lld, want %lld\n", (long long)got, (long long)rows[i].want);
    }
    return done_testing();
}
