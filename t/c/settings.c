/* settings: words that an edge is started with, and which of them are refused */
#include "edge/settings.h"

#include "tap.h"

#include <stdlib.h>

enum { WORDS_MAX = 16 };

#define NEEDED "lobby=5", "sleepers=6", "listen=4:tcp:80:www.example.com", "tmpdir=/tmp"

/* NULL when all are read, else the word and why, with a space between */
static const char *reads(sr_settings *s, char *const *words)
{
    static char error[200];
    char *argv[WORDS_MAX + 2] = {"sirius-edge"};
    const char *word = NULL, *why = NULL;
    int n = 1;
    for (; *words; words++)
        argv[n++] = *words;
    if (sr_settings_read(s, n, argv, &word, &why))
        return NULL;
    snprintf(error, sizeof error, "%s %s", word, why);
    return error;
}

static void drop(sr_settings *s)
{
    free(s->groups);
    free(s->tmpdir);
    free(s->server);
}

static void refuses(char *word, const char *why)
{
    sr_settings s;
    const char *got = reads(&s, (char *[]){NEEDED, word, NULL});
    char want[200];
    snprintf(want, sizeof want, "%s %s", word, why);
    is_bytes(got ? got : "", got ? strlen(got) : 0, want, want);
    drop(&s);
}

static void misses(const char *want, char *const *words)
{
    sr_settings s;
    const char *got = reads(&s, words);
    is_bytes(got ? got : "", got ? strlen(got) : 0, want, want);
    drop(&s);
}

static void test_values(void)
{
    sr_settings s;
    const char *error = reads(&s, (char *[]){NEEDED, "max-body=1099511627776", "header-timeout=0.25",
                                             "keepalive=1", "uid=0", "groups=4294967294,27", "bells=7,8,9",
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
    is_int(s.n_listeners, 2, "listeners");
    ok(s.listeners[0].fd == 4 && !s.listeners[0].is_unix, "the first one: TCP");
    is_bytes(s.listeners[0].site.name.at, s.listeners[0].site.name.len, "www.example.com", "its name");
    ok(s.listeners[1].fd == 11 && s.listeners[1].is_unix, "the second one: unix");
    is_bytes(s.listeners[1].site.port.at, s.listeners[1].site.port.len, "81", "its port");
    is_bytes(s.listeners[1].site.name.at, s.listeners[1].site.name.len, "a:b", "its name may have a colon");
    is_int((long long)s.config.server.len, 0, "an empty Server field");
    ok(s.control == -1 && s.log.fd == -1 && !s.owner, "what was not said is absent");
    drop(&s);
}

static void test_wrong(void)
{
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
    test_wrong();
    test_missing();
    return done_testing();
}
