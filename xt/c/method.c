/* method: the registered ones, and what only looks like them. */
#include "../../src/http/method.h"

#include "tap.h"

static void is_method(const char *text, sr_method want)
{
    is_int(sr_method_of(sr_bytes_of(text, strlen(text))), want, text);
}

int main(void)
{
    is_method("GET", SR_METHOD_GET);
    is_method("HEAD", SR_METHOD_HEAD);
    is_method("POST", SR_METHOD_POST);
    is_method("PUT", SR_METHOD_PUT);
    is_method("PATCH", SR_METHOD_PATCH);
    is_method("DELETE", SR_METHOD_DELETE);
    is_method("OPTIONS", SR_METHOD_OPTIONS);
    is_method("TRACE", SR_METHOD_TRACE);
    is_method("CONNECT", SR_METHOD_CONNECT);
    static const char *const others[] = {
        "",     "G",     "GE",      "GETS",   "GEt",    "get",     "HEAP",     "POS",  "POSTS",  "PUTT",
        "PUSH", "PATCG", "DELETED", "OPTION", "TRACER", "CONNECU", "PROPFIND", "XGET", "PU\xd4", "OPTIONX"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        is_method(others[i], SR_METHOD_OTHER);
    /* no more than its bytes is looked at */
    is_int(sr_method_of(sr_bytes_of("GETS", 3)), SR_METHOD_GET, "GET, and S behind it");
    return done_testing();
}
