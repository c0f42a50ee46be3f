#include "lanerules.h"

#include "../base/fnv.h"
#include "../http/token.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_MAX_SEEN = 8192 }; /* bytes of a path that are looked at */

/* --- rules --- */

static uint64_t key_of(sr_bytes text)
{
    uint64_t key = sr_fnv(SR_FNV_START, text.at, text.len);
    return key ? key : 1;
}

static bool number_read(const char **at, uint64_t most, uint64_t *n)
{
    char *end;
    errno = 0;
    *n = strtoull(*at, &end, 10);
    if (end == *at || *end != ',' || errno || **at == '-' || *n > most)
        return false;
    *at = end + 1;
    return true;
}

/* "/PREFIX", "METHOD /PREFIX" or "NAME: VALUE" */
static bool text_read(sr_lanerule *rule, const char *text)
{
    size_t len = strlen(text);
    if (!len || len > SR_LANE_TEXT_MAX)
        return false;
    rule->text = sr_bytes_of(text, len);
    rule->key = key_of(rule->text);
    const char *slash = *text == '/' ? text : strstr(text, " /"), *colon = strchr(text, ':');
    if (*text != '/' && colon && colon[1] == ' ' && (!slash || colon < slash)) {
        size_t name = (size_t)(colon - text);
        rule->field = sr_bytes_of(text, name);
        rule->value = sr_bytes_of(colon + 2, len - name - 2);
        return name && rule->value.len;
    }
    if (!slash)
        return false;
    rule->method = sr_bytes_of(text, (size_t)(slash - text));
    slash += *slash == ' ';
    rule->prefix = sr_bytes_of(slash, len - (size_t)(slash - text));
    return true;
}

/* Whether a request for which both hold belongs to a. */
static bool first(const sr_lanerule *a, const sr_lanerule *b)
{
    if (!a->prefix.len || !b->prefix.len)
        return !a->prefix.len && b->prefix.len;
    return a->prefix.len > b->prefix.len ||
           (a->prefix.len == b->prefix.len && a->method.len && !b->method.len);
}

const char *sr_lanerules_add(sr_lanerules *all, const char *word)
{
    sr_lanerule rule = {.limit = 0};
    char *end;
    if (all->n == SR_LANES_MAX)
        return "is one lane too many";
    if (!number_read(&word, UINT32_MAX, &rule.limit) || !rule.limit ||
        !number_read(&word, UINT32_MAX, &rule.queue))
        return "is not LIMIT,QUEUE,SECONDS,TEXT";
    double seconds = strtod(word, &end);
    if (end == word || *end != ',' || !(seconds >= 0 && seconds < 1e9) || !text_read(&rule, end + 1))
        return "is not LIMIT,QUEUE,SECONDS,TEXT";
    rule.timeout_ns = (int64_t)(seconds * 1e9);
    uint32_t at = all->n++;
    for (; at > 0 && first(&rule, &all->at[at - 1]); at--)
        all->at[at] = all->at[at - 1];
    all->at[at] = rule;
    return NULL;
}

/* --- paths --- */

/* What a path may be taken for. */
typedef struct readings {
    char plain[PATH_MAX_SEEN];    /* decoded once, as the application sees it */
    char flat[PATH_MAX_SEEN];     /* without empty segments and "." */
    char resolved[PATH_MAX_SEEN]; /* and with ".." resolved */
    size_t n_plain, n_flat, n_resolved;
    bool odd; /* it has such segments: the other two are made */
    bool cut; /* it is longer than what was looked at */
} readings;

/* The byte at *i, decoded; moves *i behind it. The escapes of the path are sound (src/http/target.h). */
static char next(sr_bytes path, size_t *i)
{
    char c = path.at[(*i)++];
    if (c != '%' || path.len - *i < 2)
        return c;
    c = (char)(sr_hex_value((unsigned char)path.at[*i]) << 4 | sr_hex_value((unsigned char)path.at[*i + 1]));
    *i += 2;
    return c;
}

/* Decodes the path, and looks whether it is odd. */
static void decode(readings *to, sr_bytes path)
{
    size_t len = 0, dots = 0; /* of the segment */
    bool inside = false;      /* a slash was seen */
    to->n_plain = 0;
    to->odd = to->cut = false;
    for (size_t i = 0; i < path.len;) {
        char c = next(path, &i);
        if (to->n_plain < PATH_MAX_SEEN)
            to->plain[to->n_plain++] = c;
        else
            to->cut = true;
        if (c == '/') {
            to->odd = to->odd || (inside && (!len || (len == dots && dots <= 2)));
            inside = true;
            len = dots = 0;
        } else {
            len++;
            dots += c == '.';
        }
    }
    to->odd = to->odd || (len && len == dots && dots <= 2);
}

/* Copies the segments but for empty ones, ".", and if `up`, ".." with what it takes away. */
static size_t flatten(char *to, const readings *from, bool up)
{
    size_t n = 0;
    for (size_t i = 0, end; i < from->n_plain; i = end) {
        for (; i < from->n_plain && from->plain[i] == '/'; i++)
            ;
        for (end = i; end < from->n_plain && from->plain[end] != '/'; end++)
            ;
        size_t len = end - i;
        bool dot = len == 1 && from->plain[i] == '.';
        if (up && len == 2 && memcmp(from->plain + i, "..", 2) == 0) {
            while (n && to[--n] != '/')
                ;
            continue;
        }
        if (dot || (!len && n && end < from->n_plain))
            continue;
        if (n + len + 1 > PATH_MAX_SEEN)
            break;
        to[n++] = '/';
        memcpy(to + n, from->plain + i, len);
        n += len;
    }
    if (!n)
        to[n++] = '/';
    return n;
}

static bool begins(const char *at, size_t len, sr_bytes prefix)
{
    return len >= prefix.len && sr_bytes_equal_nocase(sr_bytes_of(at, prefix.len), prefix);
}

/* A framework answers HEAD as it does GET, and some take "post" for POST. */
static bool method_holds(sr_bytes rule, sr_bytes method)
{
    return !rule.len || sr_bytes_equal_nocase(method, rule) ||
           (sr_bytes_equal_nocase(rule, SR_BYTES("GET")) && sr_bytes_equal_nocase(method, SR_BYTES("HEAD")));
}

static bool field_holds(const sr_lanerule *rule, const sr_request *r, const char *base)
{
    for (uint32_t i = 0; i < r->n_fields; i++)
        if (sr_bytes_equal_nocase(sr_span_in(base, r->fields[i].name), rule->field) &&
            sr_bytes_equal(sr_span_in(base, r->fields[i].value), rule->value))
            return true;
    return false;
}

/* Which of the rules in `which`, a bit for each, the path belongs to if this is its reading; -1: none. */
static int of_reading(const sr_lanerules *all, uint32_t which, const char *at, size_t len)
{
    for (uint32_t i = 0; i < all->n; i++)
        if (which >> i & 1 && begins(at, len, all->at[i].prefix))
            return (int)i;
    return -1;
}

/* That with fewer places; of two with as many, the first in the order of rules. */
static int fewer(const sr_lanerules *all, int a, int b)
{
    if (a < 0 || b < 0)
        return a < 0 ? b : a;
    if (all->at[a].limit != all->at[b].limit)
        return all->at[a].limit < all->at[b].limit ? a : b;
    return a < b ? a : b;
}

/* Of a path with empty segments or dot segments; `found` as it is. */
static int of_odd(const sr_lanerules *all, uint32_t which, readings *path, int found)
{
    path->n_flat = flatten(path->flat, path, false);
    path->n_resolved = flatten(path->resolved, path, true);
    found = fewer(all, found, of_reading(all, which, path->resolved, path->n_resolved));
    for (size_t i = 0; i < path->n_flat; i++)
        if (path->flat[i] == '/')
            found = fewer(all, found, of_reading(all, which, path->flat + i, path->n_flat - i));
    for (uint32_t i = 0; path->cut && i < all->n; i++) /* nobody knows where its dot segments lead */
        found = fewer(all, found, which >> i & 1 ? (int)i : -1);
    return found;
}

int sr_lanerules_find(const sr_lanerules *all, const sr_request *r, const char *base, bool trusted)
{
    readings path;
    sr_bytes method = sr_span_in(base, r->method);
    uint32_t which = 0;
    for (uint32_t i = 0; i < all->n; i++) {
        const sr_lanerule *rule = &all->at[i];
        if (rule->prefix.len)
            which |= (uint32_t)method_holds(rule->method, method) << i;
        else if (trusted && field_holds(rule, r, base))
            return (int)i;
    }
    if (!which)
        return -1;
    /* an absolute-form with an empty path means "/" */
    decode(&path, r->path.len ? sr_span_in(base, r->path) : SR_BYTES("/"));
    int found = of_reading(all, which, path.plain, path.n_plain);
    return path.odd ? of_odd(all, which, &path, found) : found;
}
