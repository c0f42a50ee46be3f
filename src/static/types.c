#include "types.h"

#include "../http/token.h"

#include <stdlib.h>

static const sr_type unknown = {.name = {"text/plain", 10}, .is_text = true};

static bool begins(sr_bytes s, const char *with)
{
    size_t len = strlen(with);
    return s.len >= len && memcmp(s.at, with, len) == 0;
}

/* Already compressed types. For any other type, find.c also looks for a .gz, .br or .zst file. */
static bool is_packed(sr_bytes name)
{
    static const char *const packed[] = {"video/",           "audio/",
                                         "font/woff",        "application/font-woff",
                                         "application/zip",  "application/x-gzip",
                                         "application/gzip", "application/x-bzip",
                                         "application/zstd", "application/x-7z",
                                         "application/x-rar"};
    for (size_t i = 0; i < sizeof packed / sizeof packed[0]; i++)
        if (begins(name, packed[i]))
            return true;
    return begins(name, "image/") && !begins(name, "image/svg") && !begins(name, "image/bmp") &&
           !begins(name, "image/vnd.microsoft.icon");
}

static int by_extension(const void *a, const void *b)
{
    const sr_bytes *x = &((const sr_type *)a)->extension, *y = &((const sr_type *)b)->extension;
    int order = memcmp(x->at, y->at, x->len < y->len ? x->len : y->len);
    return order ? order : (x->len > y->len) - (x->len < y->len);
}

/* "css:text/css" */
static bool entry(sr_type *out, sr_bytes word)
{
    const char *colon = memchr(word.at, ':', word.len);
    size_t len = colon ? (size_t)(colon - word.at) : 0;
    sr_bytes name = colon ? sr_bytes_of(colon + 1, word.len - len - 1) : word;
    *out = (sr_type){.extension = sr_bytes_of(word.at, len), .name = name};
    out->is_text = begins(name, "text/");
    out->is_packed = is_packed(name);
    return len && name.len && name.len <= SR_TYPE_MAX && sr_is_value(name);
}

const char *sr_types_read(sr_types *t, const char *text)
{
    size_t most = 1;
    sr_types_free(t);
    for (const char *at = text; *at; at++)
        most += *at == ' ';
    t->text = strdup(text);
    t->at = malloc(most * sizeof *t->at);
    if (!t->text || !t->at)
        return "needs memory";
    for (const char *at = t->text; *at;) {
        size_t len = strcspn(at, " ");
        if (len && !entry(&t->at[t->n++], sr_bytes_of(at, len)))
            return "is not a list of EXTENSION:TYPE";
        at += len + (at[len] == ' ');
    }
    qsort(t->at, t->n, sizeof *t->at, by_extension);
    return NULL;
}

void sr_types_free(sr_types *t)
{
    free(t->text);
    free(t->at);
    *t = (sr_types){0};
}

const sr_type *sr_types_of(const sr_types *t, const char *name)
{
    char lower[32];
    const char *dot = strrchr(name, '.'), *slash = strrchr(name, '/');
    size_t len = dot ? strlen(dot + 1) : 0;
    if (!len || len > sizeof lower || (slash && slash > dot) || !t->n)
        return &unknown;
    for (size_t i = 0; i < len; i++)
        lower[i] = (char)sr_lower((unsigned char)dot[1 + i]);
    sr_type key = {.extension = sr_bytes_of(lower, len)};
    const sr_type *found = bsearch(&key, t->at, t->n, sizeof *t->at, by_extension);
    return found ? found : &unknown;
}
