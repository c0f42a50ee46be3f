#include "setup.h"

#include "../http/token.h"
#include "../share/queue.h"

#include <errno.h>
#include <stdlib.h>

typedef struct word word;

struct word {
    const char *name;
    const char *(*read)(sr_setup *s, const word *w, const char *value); /* NULL, or what is wrong */
    size_t at;                                                          /* in sr_setup */
    size_t size;
    uint64_t most;
};

static void *member(sr_setup *s, const word *w)
{
    return (char *)s + w->at;
}

static void store(sr_setup *s, const word *w, uint64_t n)
{
    uint32_t n32 = (uint32_t)n;
    uint8_t n8 = (uint8_t)n; /* a bool is 0 or 1 by the row of its word */
    const void *from = w->size == sizeof n ? (void *)&n : w->size == sizeof n32 ? (void *)&n32 : (void *)&n8;
    memcpy(member(s, w), from, w->size);
}

static const char *read_number(sr_setup *s, const word *w, const char *value)
{
    char *end;
    errno = 0;
    unsigned long long n = strtoull(value, &end, 10);
    if (*end || end == value || errno || *value == '-')
        return "is not a number";
    if (n > w->most)
        return "is too large";
    store(s, w, n);
    return NULL;
}

static const char *read_descriptor(sr_setup *s, const word *w, const char *value)
{
    return read_number(s, w, value);
}

static const char *read_seconds(sr_setup *s, const word *w, const char *value)
{
    char *end;
    double seconds = strtod(value, &end);
    if (*end || end == value || !(seconds >= 0 && seconds < 1e9))
        return "is not a number of seconds from 0 to 1000000000";
    store(s, w, (uint64_t)(seconds * 1e9));
    return NULL;
}

static const char *read_text(sr_setup *s, const word *w, const char *value)
{
    *(const char **)member(s, w) = value;
    return NULL;
}

static const char *read_copy(sr_setup *s, const word *w, const char *value)
{
    char **to = member(s, w);
    free(*to);
    *to = strdup(value);
    return *to ? NULL : "cannot be stored: out of memory";
}

/* Another directory of the same name makes other words */
static const char *read_nothing(sr_setup *s, const word *w, const char *value)
{
    (void)s;
    (void)w;
    (void)value;
    return NULL;
}

/*
 * "FD:tcp:PORT:NAME" or "FD:unix:PORT:NAME"; applications see PORT and NAME as SERVER_PORT and SERVER_NAME.
 * "tls+tcp" and "tls+unix" speak TLS, "h2c+tcp" and "h2c+unix" HTTP/2 beside HTTP/1.1.
 */
static const char *read_listener(sr_setup *s, const word *w, const char *value)
{
    (void)w;
    char *end;
    long fd = strtol(value, &end, 10);
    bool sound = end != value && fd >= 0 && *end == ':', is_tls = sound && strncmp(end, ":tls+", 5) == 0;
    bool is_h2c = sound && strncmp(end, ":h2c+", 5) == 0;
    const char *type = !sound ? "" : end + (is_tls || is_h2c ? 5 : 1);
    bool is_unix = strncmp(type, "unix:", 5) == 0, is_tcp = strncmp(type, "tcp:", 4) == 0;
    const char *port = type + (is_unix ? 5 : 4), *colon = is_unix || is_tcp ? strchr(port, ':') : NULL;
    if (!colon)
        return "is not FD:tcp:PORT:NAME or FD:unix:PORT:NAME";
    if (s->n_listeners == SR_LISTENERS_MAX)
        return "exceeds the maximum number of listeners";
    s->listeners[s->n_listeners].fd = (int)fd;
    s->listeners[s->n_listeners].site = (sr_site){.port = sr_bytes_of(port, (size_t)(colon - port)),
                                                  .name = sr_bytes_of(colon + 1, strlen(colon + 1))};
    s->listeners[s->n_listeners].is_tls = is_tls;
    s->listeners[s->n_listeners].is_h2c = is_h2c;
    s->listeners[s->n_listeners++].is_unix = is_unix;
    return NULL;
}

/* "7,9": one descriptor for each edge */
static const char *read_bells(sr_setup *s, const word *w, const char *value)
{
    (void)w;
    for (char *end;; value = end + 1) {
        unsigned long fd = strtoul(value, &end, 10);
        if (end == value || (*end && *end != ',') || fd > INT32_MAX || s->n_bells == SR_EDGES_MAX)
            return "is not a list of descriptors";
        s->bells[s->n_bells++] = (int)fd;
        if (!*end)
            return NULL;
    }
}

/* "65534,27": user and group */
static const char *read_groups(sr_setup *s, const word *w, const char *value)
{
    (void)w;
    size_t most = 1;
    for (const char *at = value; *at; at++)
        most += *at == ',';
    free(s->groups);
    s->n_groups = 0;
    if (!(s->groups = malloc(most * sizeof *s->groups)))
        return "cannot be stored: out of memory";
    for (char *end;; value = end + 1) {
        unsigned long id = strtoul(value, &end, 10);
        if (end == value || (*end && *end != ',') || id >= UINT32_MAX)
            return "is not a list of groups";
        s->groups[s->n_groups++] = (gid_t)id;
        if (!*end)
            return NULL;
    }
}

static const char *read_sink(sr_setup *s, const word *w, const char *value)
{
    (void)w;
    static const char *const kinds[] = {
        [SR_SINK_FILE] = "file", [SR_SINK_PIPE] = "pipe", [SR_SINK_SYSLOG] = "syslog"};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(value, kinds[i]) == 0) {
            s->log.kind = (sr_sink_kind)i;
            return NULL;
        }
    return "is not file, pipe or syslog";
}

static sr_mounts *mounts_at(sr_setup *s, const word *w)
{
    sr_mounts **at = member(s, w);
    return *at ? *at : (*at = calloc(1, sizeof **at));
}

static const char *read_folder(sr_setup *s, const word *w, const char *value)
{
    sr_mounts *to = mounts_at(s, w);
    return to ? sr_mounts_add(to, value) : "needs memory";
}

static const char *read_types(sr_setup *s, const word *w, const char *value)
{
    sr_mounts *to = mounts_at(s, w);
    return to ? sr_types_read(&to->types, value) : "needs memory";
}

/* Checked here once: with a bad value no response over TLS could be made. */
static const char *read_field(sr_setup *s, const word *w, const char *value)
{
    return sr_is_value(sr_bytes_of(value, strlen(value))) ? read_copy(s, w, value) : "is not a field value";
}

static const char *read_name(sr_setup *s, const word *w, const char *value)
{
    return sr_is_token(sr_bytes_of(value, strlen(value))) ? read_copy(s, w, value) : "is not a field name";
}

static const char *read_cert(sr_setup *s, const word *w, const char *value)
{
    return sr_keyfiles_cert(member(s, w), value) ? NULL : "needs memory";
}

static const char *read_key(sr_setup *s, const word *w, const char *value)
{
    return sr_keyfiles_key(member(s, w), value) ? NULL : "needs memory";
}

static const char *read_crl(sr_setup *s, const word *w, const char *value)
{
    return sr_keyfiles_crl(member(s, w), value) ? NULL : "needs memory";
}

static const char *read_networks(sr_setup *s, const word *w, const char *value)
{
    sr_bytes wrong;
    bool read = sr_cidrs_parse(member(s, w), sr_bytes_of(value, strlen(value)), &wrong);
    return read ? NULL : "is not a list of networks";
}

static const char *read_lane(sr_setup *s, const word *w, const char *value)
{
    return sr_lanerules_add(member(s, w), value);
}

#define WORD(name, kind, to, most, from)                                                                     \
    {name, read_##kind, offsetof(sr_setup, to), sizeof(((sr_setup *)0)->to), most},
static const word words[] = {SR_WORDS(WORD)};

static const char *read_one(sr_setup *s, const char *name, size_t len, const char *value)
{
    for (size_t i = 0; i < SR_WORDS_N; i++)
        if (strlen(words[i].name) == len && memcmp(words[i].name, name, len) == 0)
            return words[i].read(s, &words[i], value);
    return "is not the name of a setting";
}

void sr_setup_init(sr_setup *s)
{
    *s = (sr_setup){.config.report_fd = -1, .name = "edge", .sandbox = true, .uid = -1, .gid = -1};
    for (size_t i = 0; i < SR_WORDS_N; i++)
        if (words[i].read == read_descriptor)
            store(s, &words[i], UINT32_MAX); /* -1 */
}

unsigned sr_setup_descriptors(const sr_setup *s, int fds[SR_SETUP_DESCRIPTORS])
{
    unsigned n = 0;
    for (size_t i = 0; i < SR_WORDS_N; i++)
        if (words[i].read == read_descriptor)
            memcpy(&fds[n++], (const char *)s + words[i].at, sizeof *fds);
    for (unsigned i = 0; i < s->n_listeners; i++)
        fds[n++] = s->listeners[i].fd;
    for (uint32_t i = 0; i < s->n_bells; i++)
        fds[n++] = s->bells[i];
    return n;
}

bool sr_setup_read(sr_setup *s, int argc, char **argv, const char **word, const char **why)
{
    sr_setup_init(s);
    for (int i = 1; i < argc; i++) {
        const char *equal = strchr(argv[i], '=');
        *word = argv[i];
        *why = equal ? read_one(s, argv[i], (size_t)(equal - argv[i]), equal + 1) : "is not NAME=VALUE";
        if (*why)
            return false;
    }
    *word = s->keeper                          ? NULL
            : s->lobby < 0                     ? "lobby"
            : s->sleepers < 0                  ? "sleepers"
            : !s->n_listeners                  ? "listen"
            : !s->tmpdir                       ? "tmpdir"
            : s->log.fd >= 0 && !s->log.format ? "access-log-format"
                                               : NULL;
    *why = *word ? "is missing" : NULL;
    s->config.report_fd =
        s->owner ? -1 : s->report; /* without a supervisor, nobody reads messages about trouble */
    s->config.tmpdir = s->tmpdir;
    s->config.server = s->server ? sr_bytes_of(s->server, strlen(s->server)) : (sr_bytes){0};
    s->config.hsts = s->hsts ? sr_bytes_of(s->hsts, strlen(s->hsts)) : (sr_bytes){0};
    s->config.id_field = s->id_field ? sr_bytes_of(s->id_field, strlen(s->id_field)) : (sr_bytes){0};
    return !*word;
}

void sr_setup_free(sr_setup *s)
{
    if (s->mounts)
        sr_mounts_free(s->mounts);
    if (s->webroot)
        sr_mounts_free(s->webroot);
    free(s->mounts);
    free(s->webroot);
    sr_keyfiles_free(&s->keyfiles);
    sr_keyset_wipe(&s->keyset);
    free(s->groups);
    free(s->tmpdir);
    free(s->websocket);
    free(s->server);
    free(s->hsts);
    free(s->id_field);
}
