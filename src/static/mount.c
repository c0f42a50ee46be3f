#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* strnlen */
#endif
#include "mount.h"

#include "path.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static bool flag_is(const char *flag, const char *name, const char **value)
{
    size_t len = strlen(name);
    *value = flag + len + 1;
    return strncmp(flag, name, len) == 0 && flag[len] == ':';
}

/* One flag, NUL-terminated. */
static void flag_read(sr_mount *m, const char *flag)
{
    const char *value;
    if (strcmp(flag, "immutable") == 0)
        m->is_immutable = true;
    else if (strcmp(flag, "links") == 0)
        m->links = SR_LINKS_BENEATH;
    else if (strcmp(flag, "links:all") == 0)
        m->links = SR_LINKS_ALL;
    else if (strcmp(flag, "no-cache") == 0)
        snprintf(m->cache, sizeof m->cache, "no-cache");
    else if (strcmp(flag, "pass") == 0)
        m->passes = true;
    else if (strcmp(flag, "webroot") == 0)
        m->is_webroot = true;
    else if (flag_is(flag, "index", &value))
        m->index = value;
    else if (flag_is(flag, "charset", &value))
        m->charset = sr_bytes_of(value, strnlen(value, SR_CHARSET_MAX));
    else if (flag_is(flag, "max-age", &value))
        snprintf(m->cache, sizeof m->cache, "public, max-age=%lu", strtoul(value, NULL, 10));
}

static void flags_read(sr_mount *m, char *flags)
{
    for (char *end; *flags; flags = end) {
        end = flags + strcspn(flags, ",");
        if (*end)
            *end++ = '\0';
        flag_read(m, flags);
    }
}

const char *sr_mounts_add(sr_mounts *m, const char *word)
{
    if (m->n == SR_MOUNTS_MAX)
        return "is one folder too many";
    sr_mount new = {.word = strdup(word), .fd = -1, .charset = SR_BYTES("utf-8")};
    if (!new.word)
        return "needs memory";
    char *prefix = strchr(new.word, '='), *folder = prefix ? strchr(prefix + 1, '=') : NULL;
    if (!folder || prefix[1] != '/' || !folder[1]) {
        free(new.word);
        return "is not FLAGS=PREFIX=FOLDER";
    }
    *prefix++ = *folder++ = '\0';
    size_t at = m->n++, len = strlen(prefix);
    new.folder = folder;
    new.prefix = sr_bytes_of(prefix, prefix[len - 1] == '/' ? len - 1 : len);
    for (; at > 0 && m->at[at - 1].prefix.len < new.prefix.len; at--)
        m->at[at] = m->at[at - 1];
    m->at[at] = new;
    flags_read(&m->at[at], new.word);
    return NULL;
}

sr_bytes sr_mount_cache(const sr_mount *m)
{
    /* RFC 8246; a year is for ever to caches that do not know the word */
    return m->is_immutable ? SR_BYTES("public, max-age=31536000, immutable")
                           : sr_bytes_of(m->cache, strlen(m->cache));
}

int sr_mount_folder(sr_mount *m)
{
    if (m->fd < 0)
        m->fd = sr_beneath_folder(m->folder);
    return m->fd;
}

const sr_mount *sr_mounts_open(sr_mounts *m)
{
    const sr_mount *failed = NULL;
    int err = 0;
    for (size_t i = 0; i < m->n; i++) {
        if (sr_mount_folder(&m->at[i]) >= 0 || failed)
            continue;
        failed = &m->at[i];
        err = errno;
    }
    errno = err;
    return failed;
}

void sr_mounts_free(sr_mounts *m)
{
    for (size_t i = 0; i < m->n; i++) {
        free(m->at[i].word);
        if (m->at[i].fd >= 0)
            close(m->at[i].fd);
    }
    m->n = 0;
    sr_types_free(&m->types);
}

sr_mount *sr_mounts_find(sr_mounts *m, sr_bytes path, size_t *used)
{
    for (size_t i = 0; i < m->n; i++)
        if ((*used = sr_path_below(path, m->at[i].prefix)) != SR_PATH_NO_MATCH)
            return &m->at[i];
    return NULL;
}
