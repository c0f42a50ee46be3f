/* wscontrol: control messages as GRIP has them, and what is wrong with others. */
#include "../../src/websocket/wscontrol.h"
#include "guard.h"
#include "tap.h"

static char scratch[4096];
static sr_wscontrol c;

static const char *read_it(const char *json)
{
    const char *why;
    size_t len = strlen(json);
    return sr_wscontrol_read(&c, sr_bytes_of(guarded(json, len), len), scratch, &why) ? NULL : why;
}

static bool has(sr_bytes got, const char *want)
{
    return sr_bytes_equal(got, sr_bytes_of(want, strlen(want)));
}

static void valid(void)
{
    ok(!read_it("{\"type\":\"subscribe\",\"channel\":\"a\\u00e9\",\"prev-id\":\"7\",\"filters\":[\"skip-"
                "self\",\"b\\\\c\"]}"),
       "subscribe");
    ok(c.kind == SR_WSCONTROL_SUBSCRIBE && has(c.channel, "a\xc3\xa9") && has(c.prev_id, "7"),
       "channel and prev-id");
    ok(c.n_filters == 2 && has(c.filters[0], "skip-self") && has(c.filters[1], "b\\c"), "filters");
    ok(!read_it("{\"channel\":\"b\",\"type\":\"unsubscribe\"}") && c.kind == SR_WSCONTROL_UNSUBSCRIBE &&
           has(c.channel, "b"),
       "unsubscribe, whatever the order is");
    ok(!read_it("{\"type\":\"detach\"}") && c.kind == SR_WSCONTROL_DETACH, "detach");
    ok(!read_it("{\"type\":\"keep-alive\",\"content\":\"{}\",\"timeout\":30}") && has(c.content, "{}") &&
           c.timeout == 30 && c.message == SR_WSFRAME_TEXT && !c.interval,
       "keep-alive");
    ok(!read_it("{\"type\":\"keep-alive\",\"content-bin\":\"AAEC\",\"message-type\":\"ping\",\"mode\":"
                "\"interval\"}") &&
           c.content.len == 3 && memcmp(c.content.at, "\0\1\2", 3) == 0 && c.message == SR_WSFRAME_PING &&
           c.interval && c.timeout == SR_WSCONTROL_TIMEOUT,
       "with bytes, as ping, each so often");
    ok(!read_it("{\"type\":\"keep-alive\",\"content-bin\":\"\\u0041AE\\u0043\"}") && c.content.len == 3 &&
           memcmp(c.content.at, "\0\1\2", 3) == 0,
       "with an escape in it");
    ok(!read_it("{\"type\":\"keep-alive\"}") && !c.content.at, "the end of it");
    ok(!read_it("{\"type\":\"keep-alive\",\"content\":\"\"}") && c.content.at && !c.content.len,
       "empty content is content");
    ok(!read_it("{\"type\":\"set-meta\",\"name\":\"user\",\"value\":\"alice\"}") && has(c.name, "user") &&
           has(c.content, "alice"),
       "set-meta");
    ok(!read_it("{\"type\":\"session\",\"id\":\"x\",\"later\":{\"a\":[1]}}") && c.kind == SR_WSCONTROL_OTHER,
       "one without a meaning here, and a member that is not known");
    ok(!read_it("{\"type\":\"keep-alive\",\"content\":\"x\",\"timeout\":99999999999}") &&
           c.timeout == 24 * 3600,
       "a timeout is a day at most");
}

int main(void)
{
    static const char *const bad[][2] = {
        {"", "is no object of JSON"},
        {"[]", "is no object of JSON"},
        {"{\"type\":\"detach\"", "is no object of JSON"},
        {"{}", "has no type"},
        {"{\"type\":\"fly\"}", "has a type that is not known"},
        {"{\"type\":1}", "has a type that is not known"},
        {"{\"type\":\"subscribe\"}", "has no channel"},
        {"{\"type\":\"subscribe\",\"channel\":\"\"}", "has an invalid channel"},
        {"{\"type\":\"subscribe\",\"channel\":7}", "has an invalid channel"},
        {"{\"type\":\"subscribe\",\"channel\":\"a\",\"filters\":\"b\"}",
         "has invalid filters, or more than 8"},
        {"{\"type\":\"subscribe\",\"channel\":\"a\",\"filters\":[1]}", "has invalid filters, or more than 8"},
        {"{\"type\":\"subscribe\",\"channel\":\"a\",\"filters\":[\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\","
         "\"\"]}",
         "has invalid filters, or more than 8"},
        {"{\"type\":\"keep-alive\",\"timeout\":0}", "has an invalid timeout"},
        {"{\"type\":\"keep-alive\",\"timeout\":1.5}", "has an invalid timeout"},
        {"{\"type\":\"keep-alive\",\"timeout\":\"1\"}", "has an invalid timeout"},
        {"{\"type\":\"keep-alive\",\"content\":1}", "has a content that is no string"},
        {"{\"type\":\"keep-alive\",\"content-bin\":\"?\"}", "has a content-bin that is not base64"},
        {"{\"type\":\"keep-alive\",\"message-type\":\"x\"}", "has a message-type that is not known"},
        {"{\"type\":\"set-meta\",\"value\":\"x\"}", "has no name"},
    };
    valid();
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const char *why = read_it(bad[i][0]);
        is_bytes(why ? why : "", why ? strlen(why) : 0, bad[i][1], bad[i][0]);
    }
    char big[600];
    snprintf(big, sizeof big, "{\"type\":\"subscribe\",\"channel\":\"%0256d\"}", 0);
    ok(read_it(big) && strstr(read_it(big), "channel"), "a channel of 256 bytes");
    snprintf(big, sizeof big, "{\"type\":\"keep-alive\",\"message-type\":\"ping\",\"content\":\"%0126d\"}",
             0);
    ok(read_it(big) && strstr(read_it(big), "125"), "a ping of 126 bytes");
    return done_testing();
}
