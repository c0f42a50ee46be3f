#include "status.h"

#define REASON(text)                                                                                         \
    {                                                                                                        \
        (text), sizeof(text) - 1                                                                             \
    }

static const sr_bytes informational[] = {REASON("Continue"), REASON("Switching Protocols"),
                                         REASON("Processing"), REASON("Early Hints")};
static const sr_bytes success[] = {
    REASON("OK"),
    REASON("Created"),
    REASON("Accepted"),
    REASON("Non-Authoritative Information"),
    REASON("No Content"),
    REASON("Reset Content"),
    REASON("Partial Content"),
    REASON("Multi-Status"),
    REASON("Already Reported"),
    [26] = REASON("IM Used"),
};
static const sr_bytes redirection[] = {
    REASON("Multiple Choices"),
    REASON("Moved Permanently"),
    REASON("Found"),
    REASON("See Other"),
    REASON("Not Modified"),
    REASON("Use Proxy"),
    [7] = REASON("Temporary Redirect"),
    REASON("Permanent Redirect"),
};
static const sr_bytes client_error[] = {
    REASON("Bad Request"),
    REASON("Unauthorized"),
    REASON("Payment Required"),
    REASON("Forbidden"),
    REASON("Not Found"),
    REASON("Method Not Allowed"),
    REASON("Not Acceptable"),
    REASON("Proxy Authentication Required"),
    REASON("Request Timeout"),
    REASON("Conflict"),
    REASON("Gone"),
    REASON("Length Required"),
    REASON("Precondition Failed"),
    REASON("Content Too Large"),
    REASON("URI Too Long"),
    REASON("Unsupported Media Type"),
    REASON("Range Not Satisfiable"),
    REASON("Expectation Failed"),
    REASON("I'm a teapot"), /* RFC 2324; the registry has it as unused, but applications send it */
    [21] = REASON("Misdirected Request"),
    REASON("Unprocessable Content"),
    REASON("Locked"),
    REASON("Failed Dependency"),
    REASON("Too Early"),
    REASON("Upgrade Required"),
    [28] = REASON("Precondition Required"),
    REASON("Too Many Requests"),
    [31] = REASON("Request Header Fields Too Large"),
    [51] = REASON("Unavailable For Legal Reasons"),
};
static const sr_bytes server_error[] = {
    REASON("Internal Server Error"),
    REASON("Not Implemented"),
    REASON("Bad Gateway"),
    REASON("Service Unavailable"),
    REASON("Gateway Timeout"),
    REASON("HTTP Version Not Supported"),
    REASON("Variant Also Negotiates"),
    REASON("Insufficient Storage"),
    REASON("Loop Detected"),
    [10] = REASON("Not Extended"),
    REASON("Network Authentication Required"),
};

#define CLASS(reasons)                                                                                       \
    {                                                                                                        \
        (reasons), sizeof(reasons) / sizeof *(reasons)                                                       \
    }
static const struct {
    const sr_bytes *reasons;
    unsigned count;
} classes[] = {CLASS(informational), CLASS(success), CLASS(redirection), CLASS(client_error),
               CLASS(server_error)};

sr_bytes sr_status_reason(int status)
{
    unsigned class = (unsigned)(status / 100 - 1), code = (unsigned)(status % 100);
    if (class < sizeof classes / sizeof *classes && code < classes[class].count &&
        classes[class].reasons[code].len)
        return classes[class].reasons[code];
    return SR_BYTES("Unknown");
}
