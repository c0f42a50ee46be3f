/* traced: request ids and traceparent, by tables of fields. */
#include "../../src/http/traced.h"

#include "fields.h"
#include "tap.h"

/* "id parent", with - for what is not there */
static const char *result(const char *fields)
{
    static char out[512];
    static sr_request r;
    const char *at = request_of(&r, fields);
    if (!at)
        return r.why;
    sr_bytes id = sr_traced_id(&r, at), parent = sr_traced_parent(&r, at);
    snprintf(out, sizeof out, "%.*s %.*s", id.at ? (int)id.len : 1, id.at ? id.at : "-",
             parent.at ? (int)parent.len : 1, parent.at ? parent.at : "-");
    return out;
}

typedef struct row {
    const char *fields, *want;
} row;

#define ID(value) "X-Request-Id: " value "\r\n"
#define PARENT(value) "traceparent: " value "\r\n"
#define TRACE "4bf92f3577b34da6a3ce929d0e0e4736"
#define SPAN "00f067aa0ba902b7"
#define TEN "0123456789"
#define FIFTY TEN TEN TEN TEN TEN

static const row rows[] = {
    {"", "- -"},
    {ID("a"), "a -"},
    {ID("AZaz09-_.~+/=:@"), "AZaz09-_.~+/=:@ -"},
    {"x-reQUest-ID: 7b0cd9c8-c3f1-4b2e-9b0e-1f3f3c1c8a11\r\n", "7b0cd9c8-c3f1-4b2e-9b0e-1f3f3c1c8a11 -"},
    {ID(FIFTY FIFTY FIFTY FIFTY), FIFTY FIFTY FIFTY FIFTY " -"},
    {ID(FIFTY FIFTY FIFTY FIFTY "0"), "- -"},
    {ID(""), "- -"},
    {ID("a b"), "- -"},
    {ID("a,b"), "- -"},
    {ID("a\"b"), "- -"},
    {ID("a\\b"), "- -"},
    {ID("a;b"), "- -"},
    {ID("a%0ab"), "- -"},
    {ID("<b>"), "- -"},
    {ID("${x}"), "- -"},
    {ID("a\tb"), "- -"},
    {ID("gr\xc3\xbc\xc3\x9f"), "- -"},
    {ID("a") ID("a"), "- -"},
    {ID("a") ID(""), "- -"},
    {"Request-Id: a\r\n", "- -"},
    /* https://www.w3.org/TR/trace-context/ */
    {PARENT("00-" TRACE "-" SPAN "-01"), "- 00-" TRACE "-" SPAN "-01"},
    {"TraceParent: 00-" TRACE "-" SPAN "-00\r\n", "- 00-" TRACE "-" SPAN "-00"},
    {PARENT("00-" TRACE "-" SPAN "-ff"), "- 00-" TRACE "-" SPAN "-ff"},
    {PARENT("00-" TRACE "-" SPAN "-01-"), "- -"},
    {PARENT("00-" TRACE "-" SPAN "-01-what"), "- -"},
    {PARENT("00-" TRACE "-" SPAN "-1"), "- -"},
    {PARENT("00-" TRACE "-" SPAN "-0G"), "- -"},
    {PARENT("00-" TRACE "-" SPAN "-0A"), "- -"},
    {PARENT("00-" TRACE "-" SPAN), "- -"},
    {PARENT("00-" TRACE "-" SPAN "_01"), "- -"},
    {PARENT("00-" TRACE "_" SPAN "-01"), "- -"},
    {PARENT("00_" TRACE "-" SPAN "-01"), "- -"},
    {PARENT("0-" TRACE "-" SPAN "-01"), "- -"},
    {PARENT("00-4BF92F3577B34DA6A3CE929D0E0E4736-" SPAN "-01"), "- -"},
    {PARENT("00-" TRACE "-00F067AA0BA902B7-01"), "- -"},
    {PARENT("00-00000000000000000000000000000000-" SPAN "-01"), "- -"},
    {PARENT("00-" TRACE "-0000000000000000-01"), "- -"},
    {PARENT("00-4bf92f3577b34da6a3ce929d0e0e473-" SPAN "-01"), "- -"},
    {PARENT("ff-" TRACE "-" SPAN "-01"), "- -"},
    {PARENT("cc-" TRACE "-" SPAN "-01"), "- cc-" TRACE "-" SPAN "-01"},
    {PARENT("01-" TRACE "-" SPAN "-01-more"), "- 01-" TRACE "-" SPAN "-01-more"},
    {PARENT("01-" TRACE "-" SPAN "-01.more"), "- -"},
    {PARENT("01-" TRACE "-" SPAN "-01-\"more"), "- -"},
    {PARENT("01-" TRACE "-" SPAN "-01-mo re"), "- -"},
    {PARENT("01-" TRACE "-" SPAN "-01-" FIFTY FIFTY), "- -"},
    {PARENT("00-" TRACE "-" SPAN "-01") PARENT("00-" TRACE "-" SPAN "-01"), "- -"},
    {PARENT("00-" TRACE "-" SPAN "-01, 00-" TRACE "-" SPAN "-01"), "- -"},
    {PARENT("junk"), "- -"},
    {PARENT(""), "- -"},
    {ID("a") PARENT("00-" TRACE "-" SPAN "-01"), "a 00-" TRACE "-" SPAN "-01"},
};

int main(void)
{
    char made[SR_REQUEST_ID_MADE];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *got = result(rows[i].fields);
        if (!ok(strcmp(got, rows[i].want) == 0, "row %zu: %s", i, rows[i].want))
            printf("# got %s\n", got);
    }
    sr_bytes id = sr_traced_make(made, UINT64_C(0xfedcba9876543210), 42);
    is_bytes(id.at, id.len, "fedcba9876543210000000000000002a", "an id that is made");
    id = sr_traced_make(made, 0, UINT64_MAX);
    is_bytes(id.at, id.len, "0000000000000000ffffffffffffffff", "of the last number");
    return done_testing();
}
