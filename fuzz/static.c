/*
 * static: requests for files of a folder, by openat2 and by steps. Whatever path and fields are, what is
 * opened is a regular file of that folder, by the name that a second decoder reads in the path; and
 * conditions, ranges and codings agree with a second reading.
 * Judges: src/static/find.c src/static/fields.c src/static/path.c src/static/mount.c src/net/beneath.c
 * src/http/range.c src/http/condition.c src/http/coding.c
 *
 * Input: a byte that chooses the folder and the method, the path up to a line feed, then lines of fields.
 */
#include "http1/head.h"
#include "static/fields.h"

#include "fuzz.h"
#include "http/token.h"
#include "http1/write.h"
#include "static/path.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { STATIC_NOW = 1700000000, STATIC_TIME = 1600000000 };

static const char *const static_folders[] = {
    "public",       "public/css",         "public/.git",
    "public/empty", "public/.well-known", "public/.well-known/acme-challenge"};
static const char *const static_files[] = {
    "public/a.txt",
    "public/a.css",
    "public/a.css.gz",
    "public/a.css.br",
    "public/a.css.zst",
    "public/index.html",
    "public/css/index.html",
    "public/css/deep.css",
    "public/x y",
    "public/a.txt.gz.br",
    "public/.hidden",
    "public/.git/config",
    "public/css/.env",
    "public/b\\c",
    "secret.txt",
    "public/c\001",
    "public/.well-known/acme-challenge/Token_-1",
    "public/.well-known/acme-challenge/a.txt",
};
static const char *const static_links[][2] = {
    {"a.txt", "public/link"},      {"..", "public/up"},   {"../secret.txt", "public/out"},
    {"/etc/passwd", "public/abs"}, {"css", "public/dir"}, {"/proc/self/root", "public/magic"}};

static char static_root[64];
static sr_mounts static_mounts;
static const char *const static_words[] = {
    "=/f=", "index:index.html=/i=", "links,pass=/l=", "pass,index:a.txt=/=", "webroot,charset:=/w="};

static void static_remove(void)
{
    char path[128];
    for (size_t i = 0; i < sizeof static_files / sizeof static_files[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", static_root, static_files[i]);
        unlink(path);
    }
    for (size_t i = 0; i < sizeof static_links / sizeof static_links[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", static_root, static_links[i][1]);
        unlink(path);
    }
    snprintf(path, sizeof path, "%s/public/fifo", static_root);
    unlink(path);
    for (size_t i = sizeof static_folders / sizeof static_folders[0]; i-- > 0;) {
        snprintf(path, sizeof path, "%s/%s", static_root, static_folders[i]);
        rmdir(path);
    }
    rmdir(static_root);
    sr_mounts_free(&static_mounts);
}

static void static_open(void)
{
    char path[128], word[160];
    strcpy(static_root, "/tmp/sirius-fuzz-XXXXXX");
    MUST(mkdtemp(static_root));
    atexit(static_remove);
    for (size_t i = 0; i < sizeof static_folders / sizeof static_folders[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", static_root, static_folders[i]);
        MUST(mkdir(path, 0700) == 0);
    }
    for (size_t i = 0; i < sizeof static_files / sizeof static_files[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", static_root, static_files[i]);
        int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        const struct timespec times[2] = {{.tv_sec = STATIC_TIME}, {.tv_sec = STATIC_TIME}};
        MUST(fd >= 0 && write(fd, "0123456789abcdefghij", 10 + i % 10) > 0 && futimens(fd, times) == 0);
        close(fd);
    }
    for (size_t i = 0; i < sizeof static_links / sizeof static_links[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", static_root, static_links[i][1]);
        MUST(symlink(static_links[i][0], path) == 0);
    }
    snprintf(path, sizeof path, "%s/public/fifo", static_root);
    MUST(mkfifo(path, 0600) == 0);
    MUST(!sr_types_read(&static_mounts.types,
                        "txt:text/plain css:text/css html:text/html gz:application/gzip"));
    for (size_t i = 0; i < sizeof static_words / sizeof static_words[0]; i++) {
        snprintf(word, sizeof word, "%s%s/public", static_words[i], static_root);
        MUST(!sr_mounts_add(&static_mounts, word));
    }
    MUST(!sr_mounts_open(&static_mounts));
}

/* --- the second reading --- */

/* The path below the prefix, decoded byte by byte. */
static size_t static_decoded(const sr_found *f, const char *at, size_t len, char *out)
{
    size_t n = 0;
    for (size_t i = 0; i < len; i++) {
        unsigned byte = (unsigned char)at[i];
        if (byte == '%') {
            MUST(i + 2 < len && sscanf(at + i + 1, "%2x", &byte) == 1);
            MUST(byte != '/'); /* or it would have been another path */
            i += 2;
        }
        out[n++] = (char)byte;
    }
    MUST(n >= f->mount->prefix.len && memcmp(out, f->mount->prefix.at, f->mount->prefix.len) == 0);
    n -= f->mount->prefix.len;
    memmove(out, out + f->mount->prefix.len, n);
    return n;
}

/* What was opened is the file of that name in the folder. */
static void static_named(const sr_found *f, const sr_request *r, const char *base)
{
    char link[64], real[512], want[8192], folder[128];
    sr_bytes path = sr_span_in(base, r->path);
    snprintf(link, sizeof link, "/proc/self/fd/%d", f->fd);
    ssize_t len = readlink(link, real, sizeof real - 1);
    MUST(len > 0);
    real[len] = '\0';
    snprintf(folder, sizeof folder, "%s/public", static_root);
    size_t at = strlen(folder);
    MUST(strncmp(real, folder, at) == 0 && real[at] == '/');
    if (f->mount->is_webroot) { /* what is not below this folder has no file */
        static const char below[] = "/.well-known/acme-challenge";
        MUST(strncmp(real + at, below, sizeof below - 1) == 0 && f->coding == SR_CODING_NONE);
        at += sizeof below - 1;
        MUST(strcmp(real + at, "/Token_-1") == 0);
    }
    MUST(!strstr(real + at, "/.") && !strchr(real, '\\'));
    size_t n = path.len ? static_decoded(f, path.at, path.len, want) : 1;
    if (!path.len)
        want[0] = '/';
    if (want[n - 1] == '/')
        n += (size_t)sprintf(want + n, "%s", f->mount->index);
    n += (size_t)sprintf(want + n, "%s", sr_coding_extension(f->coding).at);
    want[n] = '\0';
    if (f->mount->links == SR_LINKS_NONE)
        MUST(strcmp(real + at, want) == 0);
}

static void static_ranges(const sr_found *f)
{
    uint64_t sum = 0;
    MUST(f->ranges.n >= 1 && f->ranges.n <= SR_RANGES_MAX);
    for (size_t i = 0; i < f->ranges.n; i++) {
        MUST(f->ranges.at[i].length > 0 && f->ranges.at[i].first < f->size);
        MUST(f->ranges.at[i].length <= f->size - f->ranges.at[i].first);
        sum += f->ranges.at[i].length;
    }
    MUST(sum <= f->size);
}

/* The only value of a field, NUL-terminated; false: there is none, or more. */
static bool static_only(const sr_request *r, const char *base, const char *name, char out[256])
{
    int n = 0;
    for (uint32_t i = 0; i < r->n_fields; i++) {
        sr_bytes at = sr_span_in(base, r->fields[i].name), value = sr_span_in(base, r->fields[i].value);
        if (!sr_bytes_equal_nocase(at, sr_bytes_of(name, strlen(name))))
            continue;
        n++;
        snprintf(out, 256, "%.*s", (int)(value.len < 255 ? value.len : 255), value.at);
    }
    return n == 1;
}

static bool static_has(const sr_request *r, const char *base, const char *name)
{
    char none[256];
    for (uint32_t i = 0; i < r->n_fields; i++)
        if (sr_bytes_equal_nocase(sr_span_in(base, r->fields[i].name), sr_bytes_of(name, strlen(name))))
            return true;
    return static_only(r, base, name, none);
}

/* What is certain of simple fields. */
static void static_simple(const sr_found *f, const sr_request *r, const char *base)
{
    char value[256];
    bool others = static_has(r, base, "if-match") || static_has(r, base, "if-unmodified-since");
    bool none_match = static_only(r, base, "if-none-match", value);
    if (none_match && !others && (strcmp(value, "*") == 0 || strncmp(value, f->etag, f->etag_len) == 0))
        MUST(f->status == 304);
    if (!static_has(r, base, "if-none-match") && !static_has(r, base, "if-modified-since"))
        MUST(f->status != 304);
    if (!others)
        MUST(f->status != 412);
    if (!static_has(r, base, "range") || r->is_head)
        MUST(f->status != 206 && f->status != 416);
    unsigned long long first, last;
    int end = 0;
    bool plain = static_only(r, base, "range", value) && !others && !static_has(r, base, "if-none-match") &&
                 !static_has(r, base, "if-modified-since") && !static_has(r, base, "if-range") && !r->is_head;
    if (plain && strlen(value) > 6 && value[0] == 'b' && value[6] >= '0' && value[6] <= '9' &&
        sscanf(value, "bytes=%4llu-%4llu%n", &first, &last, &end) == 2 && !value[end] &&
        !strpbrk(value, " +\t") && !strstr(value, "--")) {
        MUST(f->status == (first > last ? 200 : first >= f->size ? 416 : 206));
        if (f->status == 206)
            MUST(f->ranges.n == 1 && f->ranges.at[0].first == first &&
                 f->ranges.at[0].length == (last < f->size ? last : f->size - 1) - first + 1);
    }
    if (f->coding != SR_CODING_NONE)
        MUST(static_has(r, base, "accept-encoding"));
    if (static_only(r, base, "accept-encoding", value) && strcmp(value, "gzip") == 0)
        MUST(f->coding == SR_CODING_GZIP || f->coding == SR_CODING_NONE);
}

/* The head is one, and its parts are as long as they say. */
static void static_head(const sr_found *f, const sr_request *r, const char *base)
{
    sr_response response;
    sr_buffer fields = {0};
    sr_buffer head = {0};
    sr_bytes boundary = f->ranges.n > 1 ? SR_BYTES("limit") : SR_BYTES("");
    MUST(!sr_response_begin(&response, f->status, r->is_head, true) && sr_write_status(&head, f->status));
    MUST(sr_fields_add(f, r, base, STATIC_NOW, boundary, &fields));
    MUST(!sr_response_fields(&response, &head, sr_bytes_of(sr_buffer_at(&fields), sr_buffer_len(&fields))));
    sr_buffer_free(&fields);
    MUST(!sr_write_end(&response, SR_HTTP_1_1, &head, 5, "Sun, 06 Nov 1994 08:49:37 GMT", SR_BYTES("")));
    const char *end = memmem(sr_buffer_at(&head), sr_buffer_len(&head), "\r\n\r\n", 4);
    MUST(end && end + 4 == sr_buffer_at(&head) + sr_buffer_len(&head));
    sr_buffer_reset(&head);
    for (size_t i = 0; f->ranges.n > 1 && i <= f->ranges.n; i++)
        MUST(sr_fields_part(f, i, boundary, &head));
    sr_buffer_free(&head);
}

static void static_ask(const sr_request *r, const char *base, bool steps)
{
    sr_found f;
    sr_beneath_pretend(steps);
    if (!sr_find(&static_mounts, r, base, STATIC_NOW, &f))
        return;
    MUST((f.fd >= 0) == (f.status == 200 || f.status == 206));
    if (f.fd >= 0) {
        struct stat st;
        MUST(fstat(f.fd, &st) == 0 && S_ISREG(st.st_mode) && (uint64_t)st.st_size == f.size);
        static_named(&f, r, base);
    }
    MUST((f.status == 206) == (f.ranges.n > 0) || f.status == 416);
    if (f.status == 206)
        static_ranges(&f);
    if (f.etag_len)
        static_simple(&f, r, base);
    static_head(&f, r, base);
    if (f.fd >= 0)
        close(f.fd);
}

FUZZ_TARGET(static)
{
    static const char *const methods[] = {"GET", "GET", "GET", "HEAD", "POST"};
    static const char *const prefixes[] = {"", "/f", "/i", "/l", "/f/", "/w"};
    sr_request_limits limits = {.line = 6000, .head = 20000, .fields = 50};
    sr_request r;
    if (!static_root[0])
        static_open();
    if (size < 1 || size > 5000)
        return 0;
    const char *at = (const char *)data + 1, *line = memchr(at, '\n', size - 1);
    size_t path = line ? (size_t)(line - at) : size - 1;
    sr_buffer text = {0};
    const char *method = methods[data[0] % 5], *prefix = prefixes[data[0] / 5 % 6];
    sr_buffer_add(&text, method, strlen(method));
    sr_buffer_add(&text, " ", 1);
    sr_buffer_add(&text, prefix, strlen(prefix));
    sr_buffer_add(&text, at, path);
    sr_buffer_add(&text, " HTTP/1.1\r\nHost: a\r\n", 20);
    for (const char *end = at + size - 1; line && line + 1 < end;) {
        const char *from = line + 1;
        line = memchr(from, '\n', (size_t)(end - from));
        sr_buffer_add(&text, from, line ? (size_t)(line - from) : (size_t)(end - from));
        sr_buffer_add(&text, "\r\n", 2);
    }
    sr_buffer_add(&text, "\r\n", 2);
    char *base = fuzz_copy(sr_buffer_at(&text), sr_buffer_len(&text));
    sr_request_init(&r);
    if (sr_request_feed(&r, &limits, base, sr_buffer_len(&text)) == SR_PARSE_DONE) {
        static_ask(&r, base, false);
        static_ask(&r, base, true);
    }
    sr_beneath_pretend(false);
    free(base);
    sr_buffer_free(&text);
    return 0;
}
