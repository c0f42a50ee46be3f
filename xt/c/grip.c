/* grip: the fields by which an application leaves a connection with the server. */
#include "../../src/http/grip.h"

#include "guard.h"
#include "tap.h"

#include <stdio.h>
#include <stdlib.h>

static const char *reads(const char *lines, sr_grip *g)
{
    return sr_grip_read(sr_bytes_of(guarded(lines, strlen(lines)), strlen(lines)), g);
}

/* "mode timeout keep-alive content |user name=prev-id! ...": with "!" it skips what its user publishes */
static void says(const char *lines, const char *want)
{
    static const char *const modes[] = {"none", "stream", "response"};
    char got[1024];
    sr_grip g;
    const char *why = reads(lines, &g);
    int n = 0;
    if (why) {
        snprintf(got, sizeof got, "%s", why);
    } else {
        sr_buffer content = {0};
        sr_grip_content(&g, &content);
        n = snprintf(got, sizeof got, "%s %u %u %.*s|", modes[g.hold], g.timeout, g.keep_alive,
                     (int)sr_buffer_len(&content), sr_buffer_len(&content) ? sr_buffer_at(&content) : "");
        sr_buffer_free(&content);
        n += snprintf(got + n, sizeof got - (size_t)n, "%.*s", (int)g.user.len, g.user.len ? g.user.at : "");
        sr_bytes at = g.lines, value = {NULL, 0};
        sr_grip_channel c;
        unsigned channels = 0;
        for (; sr_grip_next(&at, &value, &c); channels++)
            n += snprintf(got + n, sizeof got - (size_t)n, " %.*s%s%.*s%s", (int)c.name.len, c.name.at,
                          c.prev_id.len ? "=" : "", (int)c.prev_id.len, c.prev_id.len ? c.prev_id.at : "",
                          c.skips_self ? "!" : "");
        if (channels != g.channels)
            snprintf(got, sizeof got, "%u channels, not %u", channels, g.channels);
    }
    if (!ok(strcmp(got, want) == 0, "%.60s", want))
        printf("# got %s\n", got);
}

static void long_lines(void)
{
    char lines[70000] = "Grip-Hold: stream\r\nGrip-Channel: ";
    size_t n = strlen(lines);
    memset(lines + n, 'a', 255);
    memcpy(lines + n + 255, "\r\n", 3);
    sr_grip g;
    ok(!reads(lines, &g), "a channel with a name of 255 bytes");
    memset(lines + n, 'a', 256);
    memcpy(lines + n + 256, "\r\n", 3);
    ok(reads(lines, &g) != NULL, "of 256 bytes");
    memset(lines + n, 'a', 65536);
    memcpy(lines + n + 65536, "\r\n", 3);
    ok(reads(lines, &g) != NULL, "of 64 KiB");
    n = (size_t)sprintf(lines, "Grip-Set-Meta: user=");
    memset(lines + n, 'a', 255);
    memcpy(lines + n + 255, "\r\n", 3);
    ok(!reads(lines, &g) && g.user.len == 255, "a user of 255 bytes");
    memset(lines + n, 'a', 256);
    memcpy(lines + n + 256, "\r\n", 3);
    ok(reads(lines, &g) != NULL, "of 256 bytes");
    strcpy(lines, "Grip-Hold: stream\r\nGrip-Channel: a");
    for (int i = 1; i < 128; i++)
        strcat(lines, ",a");
    strcat(lines, "\r\n");
    ok(!reads(lines, &g) && g.channels == 128, "128 channels");
    strcat(lines, "Grip-Channel: b\r\n");
    ok(reads(lines, &g) != NULL, "129 channels");
}

int main(void)
{
    says("", "none 55 0 |");
    says("Grip-Hold: stream\r\nGrip-Channel: a\r\n", "stream 55 0 | a");
    says("grip-hold:  STREAM \r\ngrip-channel: a, b ,\r\nGRIP-CHANNEL: c; prev-id=4; , d;prev-id = x\r\n",
         "stream 55 0 | a b c=4 d=x");
    says("Grip-Hold: response\r\nGrip-Channel: a\r\nGrip-Timeout: 7\r\n", "response 7 0 | a");
    says("Grip-Hold: stream\r\nGrip-Channel: a\r\nGrip-Keep-Alive: :\\n\\n; format=cstring; timeout=20\r\n",
         "stream 55 20 :\n\n| a");
    says("Grip-Hold: stream\r\nGrip-Channel: a\r\nGrip-Keep-Alive: aGkK; format=base64\r\n",
         "stream 55 55 hi\n| a");
    says("Grip-Hold: stream\r\nGrip-Channel: a\r\nGrip-Keep-Alive: \\n; format=raw\r\n",
         "stream 55 55 \\n| a");
    says("Grip-Hold: stream\r\nGrip-Channel: a\r\nGrip-Keep-Alive:\r\n", "stream 55 55 | a");
    says("Grip-Status: 4\r\nGrip-Channel: a\r\n", "none 55 0 | a");
    says("Grip-Hold: stream\r\nGrip-Channel: a; prev-id=\"7\"; filter=\"skip-self\"\r\n"
         "Grip-Keep-Alive: \\x3a\\x0A; format=cstring; mode=idle\r\n",
         "stream 55 55 :\n| a=7!");

    says("Grip-Hold: stream\r\nGrip-Channel: a; filter=skip-self, b; prev-id=1; filter=skip-self, c\r\n"
         "Grip-Set-Meta: age=7, user=alice\r\n",
         "stream 55 0 |alice a! b=1! c");
    says("Grip-Set-Meta: user=\"a b\"\r\nGrip-Set-Meta: user2=x\r\n", "none 55 0 |a b");
    says("Grip-Set-Meta: user=\"\"\r\nGrip-Set-Meta: , ,\r\nGrip-Set-Meta:\r\n", "none 55 0 |");

    says("Grip-Set-Meta: user=\"alice, other=b\r\n",
         "a value in Grip-Set-Meta begins with a quote and ends without one");
    says("Grip-Set-Meta: user=\"\r\n", "a value in Grip-Set-Meta begins with a quote and ends without one");
    says("Grip-Hold: forever\r\n", "Grip-Hold is neither stream nor response");
    says("Grip-Hold: stream\r\n", "Grip-Hold comes without Grip-Channel");
    says("Grip-Hold: stream\r\nGrip-Channel: ,\r\n", "Grip-Hold comes without Grip-Channel");
    says("Grip-Channel: ;prev-id=3\r\n", "Grip-Channel names no channel");
    says("Grip-Channel: a; filter=build-id\r\n",
         "Grip-Channel has a parameter other than prev-id and filter=skip-self");
    says("Grip-Hold: stream\r\nGrip-Channel: a\r\nGrip-Status: 404\r\n",
         "Grip-Status is not supported: set the status of the response");
    says("Grip-Keep-Alive: x; mode=often\r\n", "the mode in Grip-Keep-Alive is neither idle nor interval");
    says("Grip-Keep-Alive: \\x3; format=cstring\r\n",
         "the content in Grip-Keep-Alive is not of its format, or is longer than 4096 bytes");
    says("Grip-Timeout: 0\r\n", "Grip-Timeout is not a number of seconds from 1 to 86400");
    says("Grip-Timeout: -1\r\n", "Grip-Timeout is not a number of seconds from 1 to 86400");
    says("Grip-Timeout: 86401\r\n", "Grip-Timeout is not a number of seconds from 1 to 86400");
    says("Grip-Timeout:\r\n", "Grip-Timeout is not a number of seconds from 1 to 86400");
    says("Grip-Keep-Alive: x; timeout=a\r\n",
         "the timeout in Grip-Keep-Alive is not a number of seconds from 1 to 86400");
    says("Grip-Keep-Alive: x; format=hex\r\n",
         "the format in Grip-Keep-Alive is neither raw, cstring nor base64");
    says("Grip-Keep-Alive: *; format=base64\r\n",
         "the content in Grip-Keep-Alive is not of its format, or is longer than 4096 bytes");
    says("Grip-Keep-Alive: \\x; format=cstring\r\n",
         "the content in Grip-Keep-Alive is not of its format, or is longer than 4096 bytes");
    says("Grip-Keep-Alive: \\; format=cstring\r\n",
         "the content in Grip-Keep-Alive is not of its format, or is longer than 4096 bytes");
    long_lines();
    ok(sr_grip_is(SR_BYTES("Grip-Hold")) && sr_grip_is(SR_BYTES("grip-x")) &&
           !sr_grip_is(SR_BYTES("Grip-")) && !sr_grip_is(SR_BYTES("Grippe")),
       "which fields these are");
    return done_testing();
}
