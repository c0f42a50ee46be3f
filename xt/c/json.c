/* json: members of objects and lists, and what is invalid (RFC 8259). */
#include "../../src/websocket/json.h"
#include "guard.h"
#include "tap.h"

/* "name=kind:text" of each member, or "BAD" */
static const char *members(const char *json, sr_json_kind kind)
{
    static char out[4096];
    static const char kinds[] = "sntfzlo";
    char scratch[4096];
    sr_json j;
    sr_json_value v;
    sr_bytes name = {0};
    size_t n = 0, len = strlen(json);
    sr_json_result r = SR_JSON_BAD;
    out[0] = '\0';
    if (!sr_json_begin(&j, sr_bytes_of(guarded(json, len), len), scratch, kind))
        return "none";
    while ((r = kind == SR_JSON_LIST ? sr_json_element(&j, &v) : sr_json_member(&j, &name, &v)) ==
           SR_JSON_NEXT)
        n += (size_t)snprintf(out + n, sizeof out - n, "%.*s=%c:%.*s ", (int)name.len, name.at ? name.at : "",
                              kinds[v.kind], (int)v.text.len, v.text.at);
    return r == SR_JSON_END ? out : "BAD";
}

static void is(const char *json, const char *want)
{
    const char *got = members(json, *json == '[' ? SR_JSON_LIST : SR_JSON_OBJECT);
    is_bytes(got, strlen(got), want, json);
}

int main(void)
{
    static const char *const good[][2] = {
        {"{}", ""},
        {" { } ", ""},
        {"{\"a\":\"b\"}", "a=s:b "},
        {"{\"a\" : 1 , \"b\":[1,{\"x\":\"\\n\"}],\"c\":{\"d\":null}}",
         "a=n:1 b=l:[1,{\"x\":\"\\n\"}] c=o:{\"d\":null} "},
        {"{\"t\":true,\"f\":false,\"n\":null}", "t=t:true f=f:false n=z:null "},
        {"{\"a\":-0.5e+10,\"b\":0,\"c\":1E-2}", "a=n:-0.5e+10 b=n:0 c=n:1E-2 "},
        {"{\"a\":\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"}", "a=s:\"\\/\b\f\n\r\t "},
        {"{\"\\u0061\":\"\\u00e9\\u20ac\\ud83d\\ude00\"}", "a=s:\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80 "},
        {"{\"a\":\"\xc3\xa9\",\"b\":\"\\u0041x\",\"c\":\"plain\"}", "a=s:\xc3\xa9 b=s:Ax c=s:plain "},
        {"[]", ""},
        {"[\"a\", 1, [], {}]", "=s:a =n:1 =l:[] =o:{} "},
    };
    static const char *const bad[] = {
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "{,}",
        "{\"a\":1 \"b\":2}",
        "{a:1}",
        "{'a':1}",
        "{\"a\":1}x",
        "{\"a\":1}{}",
        "{\"a\":01}",
        "{\"a\":1.}",
        "{\"a\":.5}",
        "{\"a\":1e}",
        "{\"a\":+1}",
        "{\"a\":-}",
        "{\"a\":nul}",
        "{\"a\":tru}",
        "{\"a\":\"\n\"}",
        "{\"a\":\"\\x\"}",
        "{\"a\":\"\\u12g4\"}",
        "{\"a\":\"\\ud800\"}",
        "{\"a\":\"\\ude00\"}",
        "{\"a\":\"\\ud800\\u0041\"}",
        "{\"a\":\"\\u\"}",
        "{\"a\":\"\\\"}",
        "{\"a\":\"",
        "{\"a\":\"\xff\"}",
        "{\"a\":\"\xed\xa0\x80\"}",
        "{\"a\":[1,]}",
        "{\"a\":[1 2]}",
        "{\"a\":[}",
        "{\"a\":{\"b\"}}",
        "{\"a\":{\"b\":\"\xff\"}}",
        "{\"a\":1",
        "{",
        "{\"a\":1]",
        "[1}",
        "{\"a\":[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]}",
        "[\"a\":1]",
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        is(good[i][0], good[i][1]);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        is(bad[i], "BAD");
    const char *none[] = {"", " ", "1", "\"a\"", "[]"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        is_bytes(members(none[i], SR_JSON_OBJECT), 4, "none", none[i]);
    return done_testing();
}
