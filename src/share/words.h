#ifndef SR_WORDS_H
#define SR_WORDS_H
/*
 * words: what the supervisor tells an edge on its command line, NAME=VALUE, one row for each name. The edge
 * reads them by this table (edge/setup.c); the supervisor knows from it which options it passes
 * (lib/Sirius/Edge/Setup.pm).
 *
 *   X(name, kind, member, most, from)
 *
 * kind: how the value is read, read_KIND of edge/setup.c. member: of sr_setup. most: the largest number.
 * from: option: the option of this name as it is; onoff: the option of this name as 1 or 0; tls: the option
 * of this name, for the keeper (lib/Sirius/Edge/Keeper.pm); made: of options, by Setup.pm; own: a descriptor
 * or the like, for this process only.
 */
/* clang-format off */
#define SR_WORDS(X)                                                                                                   \
    /* limits */                                                                                                      \
    X("max-request-line",       number,     config.request.line,         SR_HEAD_MAX,               option)           \
    X("max-header-bytes",       number,     config.request.head,         SR_HEAD_MAX,               option)           \
    X("max-header-fields",      number,     config.request.fields,       SR_REQUEST_FIELDS_MAX,     option)           \
    X("max-body",               number,     config.max_body,             INT64_MAX,                 option)           \
    X("body-memory",            number,     config.body_memory,          INT64_MAX,                 option)           \
    X("body-rate",              number,     config.body_rate,            UINT32_MAX,                option)           \
    X("max-temp-file-size",     number,     config.max_temp,             INT64_MAX,                 option)           \
    X("max-connections",        number,     config.max_connections,      INT64_MAX,                 made)             \
    X("max-keepalive-reqs",     number,     config.max_keepalive_reqs,   UINT32_MAX,                option)           \
    X("max-queue",              number,     config.max_queue,            SR_QUEUE_SLOTS_MAX,        option)           \
    X("lane",                   lane,       lanes,                       0,                         made)             \
    X("sheds-unfinished",       number,     config.sheds_unfinished,     1,                         option)           \
    /* time limits */                                                                                                 \
    X("tls-handshake-timeout",  seconds,    config.handshake_ns,         0,                         option)           \
    X("header-timeout",         seconds,    config.header_ns,            0,                         option)           \
    X("body-timeout",           seconds,    config.body_ns,              0,                         option)           \
    X("keepalive-timeout",      seconds,    config.idle_ns,              0,                         option)           \
    X("write-timeout",          seconds,    config.write_ns,             0,                         option)           \
    X("linger-timeout",         seconds,    config.linger_ns,            0,                         made)             \
    X("queue-timeout",          seconds,    config.queue_ns,             0,                         option)           \
    X("request-timeout",        seconds,    config.request_ns,           0,                         option)           \
    X("stream-timeout",         seconds,    config.stream_ns,            0,                         option)           \
    X("graceful-timeout",       seconds,    graceful_ns,                 0,                         option)           \
    X("slow-log",               seconds,    slow_ns,                     0,                         option)           \
    X("slow-log-max",           number,     slow_max,                    1000,                      made)             \
    /* requests and responses */                                                                                      \
    X("keepalive",              number,     config.keepalive,            1,                         onoff)            \
    X("http2",                  number,     http2,                       SR_HTTP2_KINDS - 1,        made)             \
    X("half-closed",            number,     config.serves_half_closed,   1,                         made)             \
    X("underscores",            number,     config.request.underscores,  1,                         made)             \
    X("trusted-underscores",    number,     config.trusted_underscores,  1,                         made)             \
    X("informational",          number,     config.informational,        SR_INFORMATIONAL_KINDS - 1, made)            \
    X("server",                 copy,       server,                      0,                         made)             \
    X("hsts",                   field,      hsts,                        0,                         option)           \
    X("request-id-header",      name,       id_field,                    0,                         option)           \
    X("https-redirect",         number,     redirects,                   1,                         made)             \
    X("https-port",             number,     https_port,                  UINT16_MAX,                made)             \
    X("hold",                   number,     hold,                        SR_HOLDS_KINDS - 1,        made)             \
    X("hold-buffer",            number,     config.hold_buffer,          INT64_MAX,                 option)           \
    X("websocket",              copy,       websocket,                   0,                         made)             \
    X("websocket-max-message",  number,     config.websocket_max,        SR_HEAD_MAX,               option)           \
    X("websocket-rate",         number,     config.websocket_rate,       UINT32_MAX,                option)           \
    X("websocket-ping",         seconds,    config.websocket_ping_ns,    0,                         option)           \
    X("hold-per-client",        number,     config.hold_per_client,      UINT32_MAX,                option)           \
    X("static",                 folder,     mounts,                      0,                         made)             \
    X("types",                  types,      mounts,                      0,                         made)             \
    X("acme-webroot",           folder,     webroot,                     0,                         made)             \
    /* proxies in front */                                                                                            \
    X("proxy-protocol",         number,     config.proxy_protocol,       1,                         onoff)            \
    X("trust-proxy",            networks,   config.trusted,              0,                         made)             \
    X("forwarded",              number,     config.forwarded,            SR_FORWARDED_RFC7239,      made)             \
    X("x-forwarded-host",       number,     config.x_forwarded_host,     1,                         made)             \
    X("x-forwarded-port",       number,     config.x_forwarded_port,     1,                         made)             \
    /* TLS, of the keeper or of an edge without one */                                                                \
    X("tls-cert",               cert,       keyfiles,                    0,                         tls)              \
    X("tls-key",                key,        keyfiles,                    0,                         tls)              \
    X("tls-dir",                text,       keyfiles.dir,                0,                         tls)              \
    X("tls-min",                text,       keyfiles.min,                0,                         tls)              \
    X("tls-ciphers",            text,       keyfiles.ciphers,            0,                         tls)              \
    X("tls-client-ca",          text,       keyfiles.ca,                 0,                         tls)              \
    X("tls-client-crl",         crl,        keyfiles,                    0,                         tls)              \
    X("tls-client-verify",      text,       keyfiles.verify,             0,                         tls)              \
    X("tls-self-signed",        number,     keyfiles.self_signed,        1,                         tls)              \
    X("tls-self-signed-file",   text,       keyfiles.self_file,          0,                         tls)              \
    X("keeper",                 number,     keeper,                      1,                         own)              \
    X("check",                  number,     check,                       1,                         own)              \
    X("keys",                   descriptor, keys,                        INT32_MAX,                 own)              \
    X("legacy-keys",            descriptor, legacy_keys,                 INT32_MAX,                 own)              \
    X("barrier",                descriptor, barrier,                     INT32_MAX,                 own)              \
    /* the access log */                                                                                              \
    X("access-log",             descriptor, log.fd,                      INT32_MAX,                 own)              \
    X("access-log-kind",        sink,       log.kind,                    0,                         own)              \
    X("access-log-priority",    number,     log.priority,                191,                       own)              \
    X("access-log-format",      text,       log.format,                  0,                         made)             \
    X("access-log-min-time",    seconds,    log.min_ns,                  0,                         made)             \
    X("access-log-errors-only", number,     log.errors_only,             1,                         made)             \
    X("access-log-at-once",     number,     log.at_once,                 1,                         made)             \
    /* the process */                                                                                                 \
    X("tmpdir",                 copy,       tmpdir,                      0,                         option)           \
    X("tmpdir-is",              nothing,    tmpdir,                      0,                         made)             \
    X("sandbox",                number,     sandbox,                     1,                         onoff)            \
    X("layout",                 text,       layout,                      0,                         made)             \
    X("name",                   text,       name,                        0,                         own)              \
    X("detach",                 number,     detach,                      1,                         own)              \
    X("strict",                 number,     strict,                      1,                         own)              \
    X("owner",                  number,     owner,                       INT32_MAX,                 own)              \
    X("edge",                   number,     edge,                        SR_EDGE_ROWS_MAX - 1,      own)              \
    X("uid",                    number,     uid,                         UINT32_MAX - 1,            own)              \
    X("gid",                    number,     gid,                         UINT32_MAX - 1,            own)              \
    X("groups",                 groups,     groups,                      0,                         own)              \
    X("listen",                 listener,   listeners,                   0,                         own)              \
    X("lobby",                  descriptor, lobby,                       INT32_MAX,                 own)              \
    X("sleepers",               descriptor, sleepers,                    INT32_MAX,                 own)              \
    X("lifeline",               descriptor, lifeline,                    INT32_MAX,                 own)              \
    X("control",                descriptor, lifeline,                    INT32_MAX,                 own) /* of an earlier build */ \
    X("report",                 descriptor, report,                      INT32_MAX,                 own)              \
    X("supervisor",             descriptor, supervisor,                  INT32_MAX,                 own)              \
    X("scoreboard",             descriptor, scoreboard,                  INT32_MAX,                 own)              \
    X("common",                 descriptor, common,                      INT32_MAX,                 own)              \
    X("bells",                  bells,      bells,                       0,                         own)
/* clang-format on */

#define SR_WORDS_ONE(name, kind, member, most, from) +1
enum { SR_WORDS_N = SR_WORDS(SR_WORDS_ONE) };

#endif
