/* static: ranges, conditions, codings, paths, prefixes and types: what a request for a file means */
#include "http/coding.h"
#include "http/condition.h"
#include "http/range.h"
#include "http1/head.h"
#include "static/mount.h"
#include "static/path.h"

#include "guard.h"
#include "tap.h"

#include <stdint.h>

/* --- ranges --- */

static void range(const char *value, uint64_t size, sr_range_result want, const char *parts)
{
    sr_ranges r;
    char text[512] = "", *to = text;
    size_t len = strlen(value);
    sr_range_result result = sr_range_parse(&r, sr_bytes_of(guarded(value, len), len), size);
    for (size_t i = 0; i < r.n; i++)
        to += sprintf(to, "%s%llu+%llu", i ? " " : "", (unsigned long long)r.at[i].first,
                      (unsigned long long)r.at[i].length);
    ok(result == want && strcmp(text, parts) == 0, "%.60s of %llu: %s", value, (unsigned long long)size,
       parts);
    if (result != want || strcmp(text, parts) != 0)
        printf("# result %d, parts %s\n", result, text);
}

static void ranges(void)
{
    range("bytes=0-0", 1, SR_RANGE_PARTS, "0+1");
    range("bytes=0-", INT64_MAX, SR_RANGE_PARTS, "0+9223372036854775807");
    range("bytes=9223372036854775806-", INT64_MAX, SR_RANGE_PARTS, "9223372036854775806+1");
    range("bytes=0-9223372036854775807", INT64_MAX, SR_RANGE_PARTS, "0+9223372036854775807");
    range("bytes=0-18446744073709551616", 10, SR_RANGE_PARTS, "0+10");
    range("bytes=18446744073709551616-", 10, SR_RANGE_OUTSIDE, "");
    range("bytes=-18446744073709551616", 10, SR_RANGE_PARTS, "0+10");
    range("bytes=0-0,-1", 2, SR_RANGE_PARTS, "0+1 1+1");
    range("bytes=-1,0-0", 2, SR_RANGE_PARTS, "1+1 0+1");
    range("bytes=0-1,1-1", 2, SR_RANGE_IGNORED, "");
    range("bytes=0-,0-", INT64_MAX, SR_RANGE_IGNORED, "");
    range("bytes=2-,3-", 2, SR_RANGE_OUTSIDE, "");
    range("bytes=0-,5-3", 9, SR_RANGE_IGNORED, "");
    range("bytes=0-0", 0, SR_RANGE_IGNORED, "");
    range("bytes=-0", 0, SR_RANGE_IGNORED, "");
    range("", 9, SR_RANGE_IGNORED, "");
    range("=", 9, SR_RANGE_IGNORED, "");
    range("bytes=", 9, SR_RANGE_IGNORED, "");
    range("bytes=,", 9, SR_RANGE_IGNORED, "");
    range("bytes=\"0-1\"", 9, SR_RANGE_IGNORED, "");
    range("bytes=0-0,1-1,2-2,3-3,4-4,5-5,6-6,7-7,8-8,9-9,10-10,11-11,12-12,13-13,14-14,15-15", 99,
          SR_RANGE_PARTS, "0+1 1+1 2+1 3+1 4+1 5+1 6+1 7+1 8+1 9+1 10+1 11+1 12+1 13+1 14+1 15+1");
    range("bytes=0-0,1-1,2-2,3-3,4-4,5-5,6-6,7-7,8-8,9-9,10-10,11-11,12-12,13-13,14-14,15-15,16-16", 99,
          SR_RANGE_IGNORED, "");
}

/* --- requests --- */

static sr_request request;
static char text[8192];

static const char *asks(const char *fields)
{
    sr_request_limits limits = {.line = 1000, .head = 8000, .fields = 50};
    int len = snprintf(text, sizeof text, "GET / HTTP/1.1\r\nHost: a\r\n%s\r\n", fields);
    const char *at = guarded(text, (size_t)len);
    sr_request_init(&request);
    if (sr_request_feed(&request, &limits, at, (size_t)len) != SR_PARSE_DONE)
        printf("# not a request: %s\n", fields);
    return at;
}

static void condition(const char *fields, sr_condition want, bool part)
{
    sr_validators v = {SR_BYTES("\"tag\""), 784111777, 784111780}; /* Sun, 06 Nov 1994 08:49:37 GMT */
    const char *base = asks(fields);
    sr_condition got = sr_condition_of(&request, base, &v);
    ok(got == want && sr_condition_if_range(&request, base, &v) == part, "%.*s", (int)strcspn(fields, "\r"),
       fields);
    if (got != want)
        printf("# got %d\n", got);
}

static void conditions(void)
{
    condition("", SR_CONDITION_NONE, true);
    condition("If-None-Match: \"tag\"\r\n", SR_CONDITION_NOT_MODIFIED, true);
    condition("If-None-Match: \"ta\", \"g\"\r\n", SR_CONDITION_NONE, true);
    condition("If-None-Match: \"tag\r\n", SR_CONDITION_NONE, true);
    condition("If-None-Match: W/\r\n", SR_CONDITION_NONE, true);
    condition("If-None-Match: w/\"tag\"\r\n", SR_CONDITION_NONE, true);
    condition("If-None-Match:\r\n", SR_CONDITION_NONE, true);
    condition("If-None-Match: ,,\"tag\",\r\n", SR_CONDITION_NOT_MODIFIED, true);
    condition("If-Match:\r\n", SR_CONDITION_FAILED, true);
    condition("If-Match: \"a\"\r\nIf-Match: \"tag\"\r\n", SR_CONDITION_NONE, true);
    condition("If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\n", SR_CONDITION_NOT_MODIFIED, true);
    condition("If-Modified-Since: Sun, 06 Nov 1994 08:49:36 GMT\r\n", SR_CONDITION_NONE, true);
    condition("If-Modified-Since: Sunday, 06-Nov-94 08:49:37 GMT\r\n", SR_CONDITION_NOT_MODIFIED, true);
    condition("If-Modified-Since: Sun Nov  6 08:49:37 1994\r\n", SR_CONDITION_NOT_MODIFIED, true);
    condition("If-Unmodified-Since: Sun, 06 Nov 1994 08:49:36 GMT\r\n", SR_CONDITION_FAILED, true);
    condition("If-Unmodified-Since: 784111776\r\n", SR_CONDITION_NONE, true);
    condition("If-Range: \"tag\"\r\n", SR_CONDITION_NONE, true);
    condition("If-Range: W/\"tag\"\r\n", SR_CONDITION_NONE, false);
    condition("If-Range:\r\n", SR_CONDITION_NONE, false);
    condition("If-Range: \"tag\"\r\nIf-Range: \"tag\"\r\n", SR_CONDITION_NONE, false);
    condition("If-Range: Sun, 06 Nov 1994 08:49:37 GMT\r\n", SR_CONDITION_NONE, true);
    condition("If-Range: Sun, 06 Nov 1994 08:49:38 GMT\r\n", SR_CONDITION_NONE, false);
    sr_validators fresh = {SR_BYTES("\"tag\""), 784111777, 784111778};
    const char *base = asks("If-Range: Sun, 06 Nov 1994 08:49:37 GMT\r\n");
    ok(!sr_condition_if_range(&request, base, &fresh),
       "a date that may be of another file in the same second");
    sr_validators timeless = {SR_BYTES("\"tag\""), -1, 784111778};
    base = asks("If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\n");
    ok(sr_condition_of(&request, base, &timeless) == SR_CONDITION_NONE, "a file without a time");
}

static void coding(const char *fields, const char *want)
{
    sr_coding out[SR_CODINGS];
    char got[64] = "";
    const char *base = asks(fields);
    size_t n = sr_coding_wanted(&request, base, out);
    for (size_t i = 0; i < n; i++) {
        strcat(got, sr_coding_name(out[i]).at);
        strcat(got, " ");
    }
    is_bytes(got, strlen(got), want, fields);
}

static void codings(void)
{
    coding("", "");
    coding("Accept-Encoding: gzip, br, zstd\r\n", "br zstd gzip ");
    coding("Accept-Encoding: gzip;q=0.3, br;q=0.1, zstd;q=0.2\r\n", "gzip zstd br ");
    coding("Accept-Encoding: gzip\r\nAccept-Encoding: br\r\n", "br gzip ");
    coding("Accept-Encoding: gzip;q=0.001\r\n", "gzip ");
    coding("Accept-Encoding: gzip;q=1.001\r\n", "");
    coding("Accept-Encoding: gzip;q=.5\r\n", "");
    coding("Accept-Encoding: gzip;q=\r\n", "");
    coding("Accept-Encoding: gzip;q=0.\r\n", "");
    coding("Accept-Encoding: gzip;\r\n", "");
    coding("Accept-Encoding: ;q=1\r\n", "");
    coding("Accept-Encoding: *, gzip;q=0\r\n", "br zstd ");
    coding("Accept-Encoding: gzip;q=0, *\r\n", "br zstd ");
    coding("Accept-Encoding: identity;q=0.7, gzip;q=0.6, br;q=0.8\r\n", "br ");
    coding("Accept-Encoding: gzipped, brr\r\n", "");
}

/* --- paths --- */

static void rest(const char *bytes, sr_path_kind want, const char *name)
{
    char out[SR_PATH_MAX];
    size_t len = strlen(bytes);
    sr_path_kind kind = sr_path_decode_rest(out, sr_bytes_of(guarded(bytes, len), len));
    ok(kind == want && (kind == SR_PATH_BAD || strcmp(out, name) == 0), "'%.60s'", bytes);
}

static void paths(void)
{
    static char deep[SR_PATH_MAX + 2];
    rest("", SR_PATH_NAME, "");
    rest("/", SR_PATH_FOLDER, "");
    rest("/a", SR_PATH_NAME, "a");
    rest("/a/", SR_PATH_FOLDER, "a");
    rest("/a/b.c/d%20e", SR_PATH_NAME, "a/b.c/d e");
    rest("/%e2%82%ac", SR_PATH_NAME, "\xe2\x82\xac");
    rest("/a%", SR_PATH_BAD, "");
    rest("/a%4", SR_PATH_BAD, "");
    rest("/a%4g", SR_PATH_BAD, "");
    rest("/a%2fb", SR_PATH_BAD, "");
    rest("/a%5Cb", SR_PATH_BAD, "");
    rest("/a\\b", SR_PATH_BAD, "");
    rest("/a%00b", SR_PATH_BAD, "");
    rest("/a\x7f", SR_PATH_BAD, "");
    rest("/%1f", SR_PATH_BAD, "");
    rest("/.", SR_PATH_BAD, "");
    rest("/a/.b", SR_PATH_BAD, "");
    rest("/a/%2E%2e", SR_PATH_BAD, "");
    rest("//", SR_PATH_BAD, "");
    rest("/a//b", SR_PATH_BAD, "");
    rest("a", SR_PATH_BAD, "");
    rest("/a.", SR_PATH_NAME, "a.");
    memset(deep, 'a', sizeof deep);
    deep[0] = '/';
    deep[SR_PATH_MAX] = '\0';
    rest(deep, SR_PATH_NAME, deep + 1);
    deep[SR_PATH_MAX] = 'a';
    deep[SR_PATH_MAX + 1] = '\0';
    rest(deep, SR_PATH_BAD, "");
}

static size_t below(const char *path, const char *prefix)
{
    size_t len = strlen(path);
    return sr_path_below(sr_bytes_of(guarded(path, len), len), sr_bytes_of(prefix, strlen(prefix)));
}

static void prefixes(void)
{
    is_int((long long)below("/assets/a", "/assets"), 7, "below");
    is_int((long long)below("/assets", "/assets"), 7, "the prefix itself");
    is_int((long long)below("/%61ssets/a", "/assets"), 9, "encoded");
    is_int((long long)below("/b%C3%BC/x", "/b\xc3\xbc"), 8, "with bytes above 0x7f");
    is_int((long long)below("/a", ""), 0, "all");
    ok(below("/assetsx", "/assets") == SR_PATH_NO_MATCH, "another name that begins like it");
    ok(below("/asset", "/assets") == SR_PATH_NO_MATCH, "a shorter one");
    ok(below("/assets%2Fa", "/assets") == SR_PATH_NO_MATCH, "an encoded slash ends no name");
    ok(below("/a%2Fb/c", "/a/b") == SR_PATH_NO_MATCH, "nor is one within the prefix");
    ok(below("/assets%", "/assets") == SR_PATH_NO_MATCH, "half an escape");
    ok(below("/asset%7", "/assets") == SR_PATH_NO_MATCH, "half an escape in the prefix");
}

/* --- folders and types --- */

static void mounts(void)
{
    static sr_mounts m;
    size_t used;
    ok(sr_mounts_add(&m, "no folder") != NULL && sr_mounts_add(&m, "=/a") != NULL &&
           sr_mounts_add(&m, "=/a=") != NULL && sr_mounts_add(&m, "=a=/tmp") != NULL && m.n == 0,
       "what is no folder");
    ok(!sr_mounts_add(&m, "=/=/tmp") && !sr_mounts_add(&m, "immutable,later:1,index:i.html=/a=/tmp/x=y") &&
           !sr_mounts_add(&m, "max-age:60,charset:,links,pass=/a/b/=/tmp") &&
           !sr_mounts_add(&m, "links:all=/bb=/tmp"),
       "four");
    sr_mount *f = sr_mounts_find(&m, SR_BYTES("/a/b/c"), &used);
    ok(f && used == 4 && f->passes && f->links == SR_LINKS_BENEATH && !f->charset.len && !f->index,
       "the longest");
    is_bytes(sr_mount_cache(f).at, sr_mount_cache(f).len, "public, max-age=60", "max-age");
    f = sr_mounts_find(&m, SR_BYTES("/a/bb"), &used);
    ok(f && used == 2 && !f->passes && strcmp(f->index, "i.html") == 0 && strcmp(f->folder, "/tmp/x=y") == 0,
       "a shorter one");
    is_bytes(sr_mount_cache(f).at, sr_mount_cache(f).len, "public, max-age=31536000, immutable", "immutable");
    is_bytes(f->charset.at, f->charset.len, "utf-8", "charset");
    f = sr_mounts_find(&m, SR_BYTES("/aa"), &used);
    ok(f && used == 0 && !sr_mount_cache(f).len, "all the others");
    ok(sr_mounts_open(&m) && m.at[m.n - 1].fd >= 0 && sr_mount_folder(&m.at[0]) >= 0,
       "one is not there, the others are open");
    while (!sr_mounts_add(&m, "=/x=/tmp"))
        ;
    is_int((long long)m.n, SR_MOUNTS_MAX, "no more than there is room for");
    sr_mounts_free(&m);
}

static void type(const sr_types *t, const char *name, const char *want, bool packed)
{
    const sr_type *got = sr_types_of(t, name);
    ok(got->name.len == strlen(want) && memcmp(got->name.at, want, got->name.len) == 0 &&
           got->is_packed == packed && got->is_text == (strncmp(want, "text/", 5) == 0),
       "%s: %s", name, want);
}

static void types(void)
{
    sr_types t = {0};
    type(&t, "a.css", "text/plain", false);
    ok(!sr_types_read(&t, "svg:image/svg+xml css:text/css png:image/png gz:application/gzip c:text/x-c"),
       "a table");
    type(&t, "a.css", "text/css", false);
    type(&t, "d.css/a.PNG", "image/png", true);
    type(&t, "a.svg", "image/svg+xml", false);
    type(&t, "a.tar.gz", "application/gzip", true);
    type(&t, "a.cs", "text/plain", false);
    type(&t, "a.csss", "text/plain", false);
    type(&t, "a.", "text/plain", false);
    type(&t, "css", "text/plain", false);
    type(&t, "d.css/a", "text/plain", false);
    type(&t, "a.averyveryveryveryverylongextension", "text/plain", false);
    ok(sr_types_read(&t, "css") && sr_types_read(&t, ":a/b") && sr_types_read(&t, "a:") &&
           !sr_types_read(&t, ""),
       "what is no table");
    sr_types_free(&t);
}

int main(void)
{
    ranges();
    conditions();
    codings();
    paths();
    prefixes();
    mounts();
    types();
    return done_testing();
}
