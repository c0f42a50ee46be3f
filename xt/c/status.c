/* status: phrases. */
#include "../../src/http/status.h"

#include "tap.h"

static void is_reason(int status, const char *want)
{
    char name[64];
    snprintf(name, sizeof name, "%d %s", status, want);
    sr_bytes got = sr_status_reason(status);
    is_bytes(got.at, got.len, want, name);
}

int main(void)
{
    is_reason(100, "Continue");
    is_reason(103, "Early Hints");
    is_reason(200, "OK");
    is_reason(204, "No Content");
    is_reason(226, "IM Used");
    is_reason(304, "Not Modified");
    is_reason(307, "Temporary Redirect");
    is_reason(308, "Permanent Redirect");
    is_reason(400, "Bad Request");
    is_reason(404, "Not Found");
    is_reason(408, "Request Timeout");
    is_reason(413, "Content Too Large");
    is_reason(414, "URI Too Long");
    is_reason(417, "Expectation Failed");
    is_reason(421, "Misdirected Request");
    is_reason(426, "Upgrade Required");
    is_reason(429, "Too Many Requests");
    is_reason(431, "Request Header Fields Too Large");
    is_reason(451, "Unavailable For Legal Reasons");
    is_reason(500, "Internal Server Error");
    is_reason(501, "Not Implemented");
    is_reason(503, "Service Unavailable");
    is_reason(504, "Gateway Timeout");
    is_reason(505, "HTTP Version Not Supported");
    is_reason(511, "Network Authentication Required");
    static const int none[] = {-1, 0, 99, 104, 199, 227, 306, 399, 420, 430, 452, 499, 509, 599, 600, 999};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        is_reason(none[i], "Unknown");
    for (int status = -1000; status < 2000; status++)
        if (!sr_status_reason(status).len)
            ok(false, "%d is empty", status);
    ok(sr_status_bodiless(101) && sr_status_bodiless(204) && sr_status_bodiless(304), "bodiless");
    ok(!sr_status_bodiless(200) && !sr_status_bodiless(205) && !sr_status_bodiless(404), "not bodiless");
    return done_testing();
}
