/* setup: words that an edge is started with, and which of them are refused */
#include "edge/plain.h"

#include "tap.h"

#include <stdlib.h>

enum { WORDS_MAX = 16 };

#define NEEDED "lobby=5", "sleepers=6", "listen=4:tcp:80:www.example.com", "tmpdir=/tmp"

/* NULL when all are read, else the word and why, with a space between */
static const char *reads(sr_setup *s, char *const *words)
{
    static char error[200];
    char *argv[WORDS_MAX + 2] = {"sirius-edge"};
    const char *word = NULL, *why = NULL;
    int n = 1;
    for (; *words; words++)
        argv[n++] = *words;
    if (sr_setup_read(s, n, argv, &word, &why))
        return NULL;
    snprintf(error, sizeof error, "%s %s", word, why);
    return error;
}

static void drop(sr_setup *s)
{
    sr_setup_free(s);
}

static void refuses(char *word, const char *why)
{
    sr_setup s;
    const char *got = reads(&s, (char *[]){NEEDED, word, NULL});
    char want[200];
    snprintf(want, sizeof want, "%s %s", word, why);
    is_bytes(got ? got : "", got ? strlen(got) : 0, want, want);
    drop(&s);
}

static void misses(const char *want, char *const *words)
{
    sr_setup s;
    const char *got = reads(&s, words);
    is_bytes(got ? got : "", got ? strlen(got) : 0, want, want);
    drop(&s);
}

static void test_values(void)
{
    sr_setup s;
    const char *error =
        reads(&s, (char *[]){NEEDED, "max-body=1099511627776", "header-timeout=0.25", "keepalive=1",
                             "http2=2", "uid=0", "groups=4294967294,27", "bells=7,8,9",
                             "listen=11:unix:81:a:b", "server=", "body-rate=4294967295",
                             "access-log-errors-only=1", "trust-proxy=10.0.0.0/8,::1", NULL});
    ok(!error, "all kinds of words%s%s", error ? ": " : "", error ? error : "");
    ok(s.config.max_body == (int64_t)1 << 40, "a size");
    ok(s.config.header_ns == 250000000, "a time");
    ok(s.config.keepalive && s.log.errors_only && !s.config.proxy_protocol, "switches");
    ok(s.uid == 0 && s.gid == -1, "a user, no group");
    ok(s.n_groups == 2 && s.groups[0] == UINT32_MAX - 1 && s.groups[1] == 27, "groups");
    ok(s.n_bells == 3 && s.bells[0] == 7 && s.bells[2] == 9, "descriptors");
    ok(s.config.body_rate == UINT32_MAX, "the largest number");
    ok(s.http2 == SR_HTTP2_BUILT, "a number of one byte that is not 0 or 1");
    is_int(s.n_listeners, 2, "listeners");
    ok(s.listeners[0].fd == 4 && !s.listeners[0].is_unix, "the first one: TCP");
    is_bytes(s.listeners[0].site.name.at, s.listeners[0].site.name.len, "www.example.com", "its name");
    ok(s.listeners[1].fd == 11 && s.listeners[1].is_unix, "the second one: unix");
    is_bytes(s.listeners[1].site.port.at, s.listeners[1].site.port.len, "81", "its port");
    is_bytes(s.listeners[1].site.name.at, s.listeners[1].site.name.len, "a:b", "its name may have a colon");
    is_int((long long)s.config.server.len, 0, "an empty Server field");
    ok(s.lifeline == -1 && s.log.fd == -1 && !s.owner, "what was not said is absent");
    drop(&s);
}

static void port(long long want, char *const *words, const char *name)
{
    sr_setup s;
    const char *error = reads(&s, words);
    ok(!error && s.redirects, "%s is read", name);
    is_int(sr_plain_https_port(&s), want, name);
    drop(&s);
}

static void test_https(void)
{
    sr_setup s;
    const char *error =
        reads(&s, (char *[]){NEEDED, "hsts=max-age=1; includeSubDomains", "request-id-header=X-Request-Id",
                             "acme-webroot=id:1-2,webroot,charset:=/.well-known=/a=b", NULL});
    ok(!error && !s.redirects, "no redirect");
    is_bytes(s.config.hsts.at, s.config.hsts.len, "max-age=1; includeSubDomains", "a field");
    is_bytes(s.config.id_field.at, s.config.id_field.len, "X-Request-Id", "the name of one");
    ok(s.webroot && s.webroot->n == 1 && s.webroot->at[0].is_webroot && !s.mounts, "a folder for challenges");
    is_bytes(s.webroot->at[0].folder, strlen(s.webroot->at[0].folder), "/a=b", "its name");
    drop(&s);
#define REDIRECT NEEDED, "https-redirect=1"
    port(443, (char *[]){REDIRECT, NULL}, "no address with TLS: 443");
    port(8443, (char *[]){REDIRECT, "listen=7:tls+tcp:8443:x", "listen=8:tls+tcp:9443:x", NULL}, "the first");
    port(443, (char *[]){REDIRECT, "listen=7:tls+tcp:8443:x", "listen=8:tls+tcp:443:x", NULL},
         "443 if there is one");
    port(9443, (char *[]){REDIRECT, "listen=7:tls+unix:0:x", "listen=8:tls+tcp:9443:x", NULL},
         "not that of a unix socket");
    port(443, (char *[]){REDIRECT, "listen=7:tls+unix:0:x", NULL}, "a unix socket alone: 443");
    port(65535, (char *[]){REDIRECT, "https-port=65535", "listen=7:tls+tcp:443:x", NULL},
         "as the option has it");
}

static void test_wrong(void)
{
    refuses("https-port=65536", "is too large");
    refuses("https-redirect=2", "is too large");
    refuses("hsts=a\177", "is not a field value");
    refuses("request-id-header=", "is not a field name");
    refuses("request-id-header=X-Id: a\r\nX-Evil", "is not a field name");
    refuses("acme-webroot=/a", "is not FLAGS=PREFIX=FOLDER");
    refuses("fly=1", "is not the name of a setting");
    refuses("max-bod=1", "is not the name of a setting");
    refuses("max-body", "is not NAME=VALUE");
    refuses("max-body=", "is not a number");
    refuses("max-body=1k", "is not a number");
    refuses("max-body=-1", "is not a number");
    refuses("max-body=99999999999999999999", "is not a number");
    refuses("keepalive=2", "is too large");
    refuses("max-header-fields=257", "is too large");
    refuses("lobby=2147483648", "is too large");
    refuses("header-timeout=x", "is not a number of seconds from 0 to 1000000000");
    refuses("header-timeout=-1", "is not a number of seconds from 0 to 1000000000");
    refuses("header-timeout=nan", "is not a number of seconds from 0 to 1000000000");
    refuses("groups=1,,2", "is not a list of groups");
    refuses("groups=4294967295", "is not a list of groups");
    refuses("bells=1,x", "is not a list of descriptors");
    refuses("listen=4", "is not FD:tcp:PORT:NAME or FD:unix:PORT:NAME");
    refuses("listen=4:udp:80:x", "is not FD:tcp:PORT:NAME or FD:unix:PORT:NAME");
    refuses("listen=4:tcp:80", "is not FD:tcp:PORT:NAME or FD:unix:PORT:NAME");
    refuses("access-log-kind=paper", "is not file, pipe or syslog");
    refuses("trust-proxy=10.0.0.0/33", "is not a list of networks");
}

static void test_missing(void)
{
    misses("lobby is missing", (char *[]){"sleepers=6", "listen=4:tcp:80:x", "tmpdir=/tmp", NULL});
    misses("sleepers is missing", (char *[]){"lobby=5", "listen=4:tcp:80:x", "tmpdir=/tmp", NULL});
    misses("listen is missing", (char *[]){"lobby=5", "sleepers=6", "tmpdir=/tmp", NULL});
    misses("tmpdir is missing", (char *[]){"lobby=5", "sleepers=6", "listen=4:tcp:80:x", NULL});
    misses("access-log-format is missing", (char *[]){NEEDED, "access-log=9", NULL});
}

int main(void)
{
    test_values();
    test_https();
    test_wrong();
    test_missing();
    return done_testing();
}
