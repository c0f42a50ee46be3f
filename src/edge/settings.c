#include "settings.h"

#include "../http/token.h"
#include "../share/queue.h"

#include <errno.h>
#include <stdlib.h>

/* How a word is parsed, and where its value goes. */
typedef enum kind { COUNT, SIZE, SECONDS, SWITCH, DESCRIPTOR } kind;

typedef struct word {
    const char *name;
    kind kind;
    size_t at; /* in sr_settings */
    size_t size;
    uint64_t max;
} word;

#define AT(member) offsetof(sr_settings, member), sizeof(((sr_settings *)0)->member)

static const word words[] = {
    {"max-request-line", COUNT, AT(config.request.line), SR_HEAD_MAX},
    {"max-header-bytes", COUNT, AT(config.request.head), SR_HEAD_MAX},
    {"max-header-fields", COUNT, AT(config.request.fields), SR_REQUEST_FIELDS_MAX},
    {"max-body", SIZE, AT(config.max_body), INT64_MAX},
    {"body-memory", SIZE, AT(config.body_memory), INT64_MAX},
    {"max-temp-file-size", SIZE, AT(config.max_temp), INT64_MAX},
    {"header-timeout", SECONDS, AT(config.header_ns), 0},
    {"tls-handshake-timeout", SECONDS, AT(config.handshake_ns), 0},
    {"tls-self-signed", SWITCH, AT(keyfiles.self_signed), 1},
    {"keeper", SWITCH, AT(keeper), 1},
    {"check", SWITCH, AT(check), 1},
    {"sandbox", SWITCH, AT(sandbox), 1},
    {"gate", DESCRIPTOR, AT(gate), INT32_MAX},
    {"keys", DESCRIPTOR, AT(keys), INT32_MAX},
    {"legacy-keys", DESCRIPTOR, AT(legacy_keys), INT32_MAX},
    {"keepalive-timeout", SECONDS, AT(config.idle_ns), 0},
    {"body-timeout", SECONDS, AT(config.body_ns), 0},
    {"body-rate", COUNT, AT(config.body_rate), UINT32_MAX},
    {"write-timeout", SECONDS, AT(config.write_ns), 0},
    {"linger-timeout", SECONDS, AT(config.linger_ns), 0},
    {"max-keepalive-reqs", COUNT, AT(config.max_keepalive_reqs), UINT32_MAX},
    {"keepalive", SWITCH, AT(config.keepalive), 1},
    {"detach", SWITCH, AT(detach), 1},
    {"strict", SWITCH, AT(strict), 1},
    {"https-redirect", SWITCH, AT(redirects), 1},
    {"https-port", COUNT, AT(https_port), UINT16_MAX},
    {"sheds-unfinished", SWITCH, AT(config.sheds_unfinished), 1},
    {"max-connections", SIZE, AT(config.max_connections), INT64_MAX},
    {"max-queue", SIZE, AT(config.max_queue), SR_QUEUE_SLOTS_MAX},
    {"half-closed", SWITCH, AT(config.serves_half_closed), 1},
    {"queue-timeout", SECONDS, AT(config.queue_ns), 0},
    {"request-timeout", SECONDS, AT(config.request_ns), 0},
    {"stream-timeout", SECONDS, AT(config.stream_ns), 0},
    {"graceful-timeout", SECONDS, AT(graceful_ns), 0},
    {"slow-log", SECONDS, AT(slow_ns), 0},
    {"slow-log-max", COUNT, AT(slow_max), 1000},
    {"proxy-protocol", SWITCH, AT(config.proxy_protocol), 1},
    {"underscores", SWITCH, AT(config.request.underscores), 1},
    {"trusted-underscores", SWITCH, AT(config.trusted_underscores), 1},
    {"x-forwarded-host", SWITCH, AT(config.x_forwarded_host), 1},
    {"x-forwarded-port", SWITCH, AT(config.x_forwarded_port), 1},
    {"informational", COUNT, AT(config.informational), SR_INFORMATIONAL_KINDS - 1},
    {"lobby", DESCRIPTOR, AT(lobby), INT32_MAX},
    {"sleepers", DESCRIPTOR, AT(sleepers), INT32_MAX},
    {"lifeline", DESCRIPTOR, AT(control), INT32_MAX},
    {"control", DESCRIPTOR, AT(control), INT32_MAX}, /* the same, from a supervisor of an earlier build */
    {"report", DESCRIPTOR, AT(report), INT32_MAX},
    {"scoreboard", DESCRIPTOR, AT(scoreboard), INT32_MAX},
    {"owner", COUNT, AT(owner), INT32_MAX},
    {"edge", COUNT, AT(edge), SR_EDGE_ROWS_MAX - 1},
    {"uid", SIZE, AT(uid), UINT32_MAX - 1},
    {"gid", SIZE, AT(gid), UINT32_MAX - 1},
    {"common", DESCRIPTOR, AT(common), INT32_MAX},
    {"supervisor", DESCRIPTOR, AT(supervisor), INT32_MAX},
    {"access-log", DESCRIPTOR, AT(log.fd), INT32_MAX},
    {"access-log-priority", COUNT, AT(log.priority), 191},
    {"access-log-min-time", SECONDS, AT(log.min_ns), 0},
    {"access-log-errors-only", SWITCH, AT(log.errors_only), 1},
    {"access-log-at-once", SWITCH, AT(log.at_once), 1},
};

static void store(sr_settings *s, const word *w, uint64_t n)
{
    char *to = (char *)s + w->at;
    uint32_t n32 = (uint32_t)n;
    bool yes = n != 0;
    if (w->size == sizeof n)
        memcpy(to, &n, sizeof n);
    else if (w->size == sizeof n32)
        memcpy(to, &n32, sizeof n32);
    else
        memcpy(to, &yes, sizeof yes);
}

static const char *number(sr_settings *s, const word *w, const char *value)
{
    char *end;
    errno = 0;
    if (w->kind == SECONDS) {
        double seconds = strtod(value, &end);
        if (*end || end == value || !(seconds >= 0 && seconds < 1e9))
            return "is not a number of seconds from 0 to 1000000000";
        store(s, w, (uint64_t)(seconds * 1e9));
        return NULL;
    }
    unsigned long long n = strtoull(value, &end, 10);
    if (*end || end == value || errno || *value == '-')
        return "is not a number";
    if (n > w->max)
        return "is too large";
    store(s, w, n);
    return NULL;
}

/*
 * "FD:tcp:PORT:NAME" or "FD:unix:PORT:NAME"; applications see PORT and NAME as SERVER_PORT and SERVER_NAME. "tls+tcp"
 * and "tls+unix" speak TLS.
 */
static const char *listener(sr_settings *s, const char *value)
{
    char *end;
    long fd = strtol(value, &end, 10);
    bool sound = end != value && fd >= 0 && *end == ':', is_tls = sound && strncmp(end, ":tls+", 5) == 0;
    const char *type = !sound ? "" : end + (is_tls ? 5 : 1);
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
    s->listeners[s->n_listeners++].is_unix = is_unix;
    return NULL;
}

/* "7,9": one descriptor for each edge */
static const char *bells(sr_settings *s, const char *value)
{
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
static const char *groups(sr_settings *s, const char *value)
{
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

static const char *sink(sr_settings *s, const char *value)
{
    static const char *const kinds[] = {
        [SR_SINK_FILE] = "file", [SR_SINK_PIPE] = "pipe", [SR_SINK_SYSLOG] = "syslog"};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(value, kinds[i]) == 0) {
            s->log.kind = (sr_sink_kind)i;
            return NULL;
        }
    return "is not file, pipe or syslog";
}

static const char *text(char **to, const char *value)
{
    free(*to);
    *to = strdup(value);
    return *to ? NULL : "cannot be stored: out of memory";
}

static const char *mount(sr_mounts **to, const char *value, bool types)
{
    if (!*to && !(*to = calloc(1, sizeof **to)))
        return "needs memory";
    return types ? sr_types_read(&(*to)->types, value) : sr_mounts_add(*to, value);
}

/* Checked here once: with a bad value no response over TLS could be made. */
static const char *hsts(sr_settings *s, const char *value)
{
    return sr_is_value(sr_bytes_of(value, strlen(value))) ? text(&s->hsts, value) : "is not a field value";
}

static const char *read_one(sr_settings *s, const char *name, size_t len, const char *value)
{
#define IS(literal) (len == sizeof literal - 1 && memcmp(name, literal, sizeof literal - 1) == 0)
    sr_bytes wrong;
    if (IS("listen"))
        return listener(s, value);
    if (IS("groups"))
        return groups(s, value);
    if (IS("bells"))
        return bells(s, value);
    if (IS("static") || IS("types"))
        return mount(&s->mounts, value, IS("types"));
    if (IS("acme-webroot"))
        return mount(&s->webroot, value, false);
    if (IS("hsts"))
        return hsts(s, value);
    if (IS("access-log-kind"))
        return sink(s, value);
    if (IS("access-log-format")) {
        s->log.format = value;
        return NULL;
    }
    if (IS("layout")) {
        s->layout = value;
        return NULL;
    }
    if (IS("name")) {
        s->name = value;
        return NULL;
    }
    if (IS("tls-cert"))
        return sr_keyfiles_cert(&s->keyfiles, value) ? NULL : "needs memory";
    if (IS("tls-key"))
        return sr_keyfiles_key(&s->keyfiles, value) ? NULL : "needs memory";
    if (IS("tls-client-crl"))
        return sr_keyfiles_crl(&s->keyfiles, value) ? NULL : "needs memory";
    const struct {
        const char *name, **to;
    } texts[] = {
        {"tls-dir", &s->keyfiles.dir},         {"tls-client-ca", &s->keyfiles.ca},
        {"tls-min", &s->keyfiles.min},         {"tls-client-verify", &s->keyfiles.verify},
        {"tls-ciphers", &s->keyfiles.ciphers}, {"tls-self-signed-file", &s->keyfiles.self_file},
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (strlen(texts[i].name) == len && memcmp(texts[i].name, name, len) == 0) {
            *texts[i].to = value;
            return NULL;
        }
    if (IS("tmpdir-is")) /* so that another folder of this name makes the settings others */
        return NULL;
    if (IS("tmpdir"))
        return text(&s->tmpdir, value);
    if (IS("server"))
        return text(&s->server, value);
    if (IS("trust-proxy"))
        return sr_cidrs_parse(&s->config.trusted, sr_bytes_of(value, strlen(value)), &wrong)
                   ? NULL
                   : "is not a list of networks";
    if (IS("forwarded")) {
        s->config.forwarded = strcmp(value, "1") == 0 ? SR_FORWARDED_RFC7239 : SR_FORWARDED_X;
        return NULL;
    }
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strlen(words[i].name) == len && memcmp(words[i].name, name, len) == 0)
            return number(s, &words[i], value);
    return "is not the name of a setting";
#undef IS
}

void sr_settings_init(sr_settings *s)
{
    *s = (sr_settings){.config.report_fd = -1,
                       .name = "edge",
                       .lobby = -1,
                       .sleepers = -1,
                       .control = -1,
                       .report = -1,
                       .supervisor = -1,
                       .keys = -1,
                       .gate = -1,
                       .sandbox = true,
                       .legacy_keys = -1,
                       .scoreboard = -1,
                       .common = -1,
                       .uid = -1,
                       .gid = -1,
                       .log.fd = -1};
}

bool sr_settings_read(sr_settings *s, int argc, char **argv, const char **word, const char **why)
{
    sr_settings_init(s);
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
    return !*word;
}

void sr_settings_free(sr_settings *s)
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
    free(s->server);
    free(s->hsts);
}
