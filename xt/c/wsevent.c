/* wsevent: events as they are written and read. */
#include "../../src/websocket/wsevent.h"
#include "guard.h"
#include "tap.h"

static const char *const names[] = {"OPEN", "TEXT", "BINARY", "PING", "PONG", "CLOSE", "DISCONNECT"};

/* "NAME(content)" of each, and BAD at the end if it is */
static const char *events(const char *text, size_t len)
{
    static char out[4096];
    size_t n = 0;
    sr_bytes in = sr_bytes_of(guarded(text, len), len);
    sr_wsevent event;
    sr_wsevent_result r;
    out[0] = '\0';
    while ((r = sr_wsevent_next(&in, &event)) == SR_WSEVENT_NEXT)
        n += (size_t)snprintf(out + n, sizeof out - n, "%s(%.*s)", names[event.kind], (int)event.content.len,
                              event.content.at);
    snprintf(out + n, sizeof out - n, "%s", r == SR_WSEVENT_BAD ? "BAD" : "");
    return out;
}

static void is(const char *text, const char *want)
{
    const char *got = events(text, strlen(text));
    is_bytes(got, strlen(got), want, text);
}

static void written(void)
{
    sr_buffer out = {0};
    bool all = sr_wsevent_add(&out, SR_WSEVENT_OPEN, sr_bytes_of("", 0)) &&
               sr_wsevent_add(&out, SR_WSEVENT_TEXT, SR_BYTES("hello world")) &&
               sr_wsevent_add(&out, SR_WSEVENT_BINARY, sr_bytes_of(NULL, 0)) &&
               sr_wsevent_add(&out, SR_WSEVENT_PING, sr_bytes_of("", 0)) &&
               sr_wsevent_add(&out, SR_WSEVENT_CLOSE, SR_BYTES("\x03\xe8 bye"));
    ok(all, "all are written");
    is_bytes(sr_buffer_at(&out), sr_buffer_len(&out),
             "OPEN\r\nTEXT b\r\nhello world\r\nBINARY 0\r\n\r\nPING\r\nCLOSE 6\r\n\x03\xe8 bye\r\n",
             "as the document says");
    const char *back = events(sr_buffer_at(&out), sr_buffer_len(&out));
    is_bytes(back, strlen(back), "OPEN()TEXT(hello world)BINARY()PING()CLOSE(\x03\xe8 bye)", "and read");
    sr_buffer_free(&out);
}

int main(void)
{
    static const char *const rows[][2] = {
        {"", ""},
        {"OPEN\r\n", "OPEN()"},
        {"OPEN\r\nTEXT 5\r\nhello\r\n", "OPEN()TEXT(hello)"},
        {"TEXT 0\r\n\r\n", "TEXT()"},
        {"TEXT\r\n", "TEXT()"},
        {"TEXT 0000000B\r\nhello world\r\n", "TEXT(hello world)"},
        {"TEXT 2\r\n\r\n\r\nDISCONNECT\r\n", "TEXT(\r\n)DISCONNECT()"},
        {"PONG 1\r\nx\r\nPING\r\nCLOSE\r\n", "PONG(x)PING()CLOSE()"},
        {"OPEN", "BAD"},
        {"OPEN\n", "BAD"},
        {"open\r\n", "BAD"},
        {"TEXTS\r\n", "BAD"},
        {"\r\n", "BAD"},
        {"TEXT \r\n", "BAD"},
        {"TEXT  1\r\nx\r\n", "BAD"},
        {"TEXT 1 \r\nx\r\n", "BAD"},
        {"TEXT -1\r\nx\r\n", "BAD"},
        {"TEXT 0x1\r\nx\r\n", "BAD"},
        {"TEXT 1\r\nx", "BAD"},
        {"TEXT 1\r\nxy\r\n", "BAD"},
        {"TEXT 2\r\nx\r\n", "BAD"},
        {"TEXT ffffffff\r\nx\r\n", "BAD"},
        {"TEXT fffffffff\r\nx\r\n", "BAD"},
        {"TEXT ffffffffffffffffffff\r\nx\r\n", "BAD"},
        {"OPEN\r\nTEXT 1\r\nx\r\nNO\r\n", "OPEN()TEXT(x)BAD"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        is(rows[i][0], rows[i][1]);
    written();
    ok(sr_wsevent_type(SR_BYTES("application/websocket-events")), "the media type");
    ok(sr_wsevent_type(SR_BYTES("Application/WebSocket-Events ; charset=utf-8")),
       "with parameters, in any case");
    ok(!sr_wsevent_type(SR_BYTES("application/websocket-eventsx")), "another one");
    ok(!sr_wsevent_type(sr_bytes_of(NULL, 0)), "none");
    return done_testing();
}
