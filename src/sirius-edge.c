/*
 * sirius-edge: the program of an edge. The supervisor starts it with a title as its name. Its setup is
 * in its arguments (src/edge/setup.h); some are numbers of descriptors that it inherits.
 */
#include "edge/edge.h"
#include "edge/keeper.h"
#include "edge/rights.h"
#include "edge/sandbox.h"
#include "h2/h2.h"
#include "net/needed.h"
#include "net/pidfd.h"
#include "net/self.h"
#include "net/tempfile.h"
#include "share/layout.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

/* 0: a build for tools whose own code makes system calls in this process (dev/cover, dev/sanitize). */
#ifndef SR_SANDBOX
#define SR_SANDBOX 1
#endif

/* Copies the arguments; the copy lives as long as the process. NULL: no memory. */
static char **copied(int argc, char **argv)
{
    char **words = calloc((size_t)argc + 1, sizeof *words);
    for (int i = 0; words && i < argc; i++)
        if (!(words[i] = strdup(argv[i])))
            return NULL;
    return words;
}

/* Makes ps show only the name, without the arguments. */
static void title(int argc, char **argv, const char *name)
{
    char text[64];
    char *end = argv[argc - 1] + strlen(argv[argc - 1]), *from = argv[0] + strlen(argv[0]);
    if (argc > 1 && end > from)
        memset(from, 0, (size_t)(end - from));
    snprintf(text, sizeof text, "sirius: %s", name);
    sr_self_name(text);
}

static int by_number(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

/*
 * Closes all descriptors but those in the setup: the operator's shell or a module of the application may
 * have left some open.
 */
static void close_others(const sr_setup *s)
{
    int keep[SR_SETUP_DESCRIPTORS], n = (int)sr_setup_descriptors(s, keep), next = STDERR_FILENO + 1;
    qsort(keep, (size_t)n, sizeof keep[0], by_number);
    for (int i = 0; i < n; i++) {
        sr_self_close(next, keep[i] - 1);
        if (keep[i] >= next)
            next = keep[i] + 1;
    }
    sr_self_close(next, INT_MAX);
}

/*
 * The edge stops by signals of its own (src/edge/edge.h), which arrive as events. Signals that are meant for
 * the supervisor, and may be sent to the whole process group, are ignored.
 */
static void ignore_signals(void)
{
    static const int deaf[] = {SIGHUP,  SIGINT,  SIGQUIT, SIGTERM, SIGPIPE, SIGALRM,
                               SIGUSR1, SIGUSR2, SIGTTIN, SIGTTOU, SIGXFSZ};
    for (size_t i = 0; i < sizeof deaf / sizeof deaf[0]; i++)
        signal(deaf[i], SIG_IGN);
}

/* Closes STDOUT and STDERR, unless they are files, once the start has succeeded. */
static void detach(void)
{
    struct stat st;
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = STDOUT_FILENO; null >= 0 && fd <= STDERR_FILENO; fd++)
        if (fstat(fd, &st) == 0 && !S_ISREG(st.st_mode))
            dup2(null, fd);
    if (null > STDERR_FILENO)
        close(null);
}

/* With the rights that the process has kept: what it may not read is not served. */
static bool open_mounts(const sr_setup *s, sr_mounts *mounts)
{
    const sr_mount *m = mounts ? sr_mounts_open(mounts) : NULL;
    if (!m)
        return true;
    const char *why = strerror(errno);
    if (s->strict)
        fprintf(stderr, "sirius-edge: ");
    else
        fprintf(stderr, "[sirius %d] error: ", (int)getpid());
    if (m->is_webroot)
        fprintf(stderr, "--acme-webroot: cannot open %s: %s\n", m->folder, why);
    else
        fprintf(stderr, "--static %.*s: cannot open %s: %s\n", m->prefix.len ? (int)m->prefix.len : 1,
                m->prefix.len ? m->prefix.at : "/", m->folder, why);
    return !s->strict;
}

/* The process of --workers 0 says when one expires; of certificates it says nothing. */
static void tell_crl(void *setup, sr_keyfiles_kind kind, const char *file, const char *name, int64_t expires)
{
    const sr_setup *s = setup;
    if (kind == SR_KEYFILES_CRL && s->report >= 0)
        sr_keeper_tell(setup, kind, file, name, expires);
}

/* An edge without a supervisor reads the keys itself. False: the reason is on STDERR. */
static bool read_keys(sr_setup *s)
{
    char why[SR_KEYSET_WHY] = "no memory";
    sr_self_readable(false);
    if (!sr_keyfiles_any(&s->keyfiles) ||
        (sr_keyset_begin(&s->keyset) && sr_keyfiles_read(&s->keyfiles, &s->keyset, tell_crl, s, why)))
        return true;
    fprintf(stderr, "[sirius %d] error: %s\n", (int)getpid(), why);
    return false;
}

/*
 * With --workers 0: the process that this edge serves for has rights of its own to give up first, and an
 * application to warm up. False: it has ended.
 */
static bool barrier_opens(const sr_setup *s)
{
    char byte;
    struct pollfd p[] = {{.fd = s->barrier, .events = POLLIN},
                         {.fd = sr_pidfd_open((pid_t)s->owner), .events = POLLIN}};
    if (p[1].fd < 0)
        return false;
    while (poll(p, sizeof p / sizeof p[0], -1) < 0 && errno == EINTR)
        ;
    bool opens = p[0].revents && read(s->barrier, &byte, 1) == 1;
    close(p[1].fd);
    close(s->barrier);
    return opens;
}

/*
 * The C library looks at /etc/localtime each second, as TZ may be missing from the environment, and takes UTC
 * where it may not.
 */
static void fix_time_zone(void)
{
    setenv("TZ", ":/etc/localtime", 0);
    tzset();
}

/* A socket of syslog is connected again when the receiver was started again (src/log/syslog.c). */
static unsigned syslog_address(const sr_setup *s)
{
    struct sockaddr_un to;
    socklen_t len = sizeof to;
    bool known = s->log.fd >= 0 && s->log.kind == SR_SINK_SYSLOG &&
                 getpeername(s->log.fd, (struct sockaddr *)&to, &len) == 0;
    return known ? len : 0;
}

/* Files of these folders are read. */
static void add_folders(sr_sandbox *box, int *folders, const sr_mounts *mounts)
{
    for (size_t i = 0; mounts && i < mounts->n; i++) {
        const sr_mount *m = &mounts->at[i];
        folders[box->n_folders++] = m->fd;
        /* links lead anywhere; a folder that is not there is tried again */
        box->paths = box->paths || m->links == SR_LINKS_ALL || m->fd < 0;
    }
}

/*
 * From here on the process opens no file but below the folders that it has open, and makes only the system
 * calls that it needs to serve. What libraries look up when they are first used has been looked up: the keys
 * are loaded.
 */
static void confine(const sr_setup *s, int tmpdir)
{
    int folders[2 * SR_MOUNTS_MAX];
    sr_sandbox box = {
        .keeper = s->keeper, .tmpdir = tmpdir, .folders = folders, .reconnect = syslog_address(s)};
    char line[128];
    add_folders(&box, folders, s->mounts);
    add_folders(&box, folders, s->webroot);
    sr_sandbox_files(&box); /* where the kernel has it: docs/SECURITY.md */
    int err = sr_sandbox_calls(&box);
    if (!err || s->report < 0)
        return;
    snprintf(line, sizeof line, "%d unfiltered %s\n", (int)getpid(),
             err == EOPNOTSUPP ? "Sirius has none for this kind of machine" : strerror(err));
    ssize_t n = write(s->report, line, strlen(line));
    (void)n;
}

/*
 * Before the setup is read, which may be another one as well. False: the server is of another version than
 * this program; STDERR has the reason.
 */
static bool fits(int argc, char **argv)
{
    static const char name[] = "layout=";
    char why[SR_LAYOUT_WHY];
    for (int i = 1; i < argc; i++)
        if (strncmp(argv[i], name, sizeof name - 1) == 0 &&
            sr_layout_differs(argv[i] + sizeof name - 1, why)) {
            fprintf(
                stderr,
                "sirius-edge: this program is of another version than the server that starts it (layout of "
                "%s): install one version completely, and restart the server\n",
                why);
            return false;
        }
    return true;
}

static int run_keeper(sr_setup *s)
{
    if (s->detach)
        detach();
    if (SR_SANDBOX && s->sandbox)
        confine(s, -1);
    sr_keeper_run(s);
    return 0;
}

/* Where a filter refuses a call, the server would wait for ever. False: STDERR has the reason. */
static bool has_calls(void)
{
    int err;
    const char *missing = sr_needed_missing(&err);
    if (missing)
        fprintf(stderr,
                "sirius-edge: cannot start: %s(2) fails: %s. Linux 5.3 is needed, and in a container a "
                "filter of system "
                "calls (seccomp) that allows it: that of Docker 20.10, or deploy/container/seccomp.json\n",
                missing, strerror(err));
    return !missing;
}

/* The option that needs HTTP/2; NULL: none does. */
static const char *wants_h2(const sr_setup *s)
{
    for (unsigned i = 0; i < s->n_listeners; i++)
        if (s->listeners[i].is_h2c)
            return "--listen ADDRESS,h2c";
    return s->http2 == SR_HTTP2_ON ? "--enable-http2" : NULL;
}

static int run_edge(sr_setup *s)
{
    sr_edge *edge;
    if (!has_calls())
        return 1;
    const char *h2 = sr_h2_built() ? NULL : wants_h2(s);
    if (h2) {
        fprintf(
            stderr,
            "sirius-edge: %s: this build has no HTTP/2: install libnghttp2-dev, then build Sirius again\n",
            h2);
        return 1;
    }
    if (s->barrier >= 0 && !barrier_opens(s))
        return 0;
    if (!open_mounts(s, s->mounts) || !open_mounts(s, s->webroot))
        return 1;
    int tmpdir = sr_tempfile_stay(s->tmpdir), err = sr_edge_new(&edge, s);
    sr_keyset_wipe(&s->keyset);
    if (err) {
        fprintf(stderr, "sirius-edge: cannot start: %s\n",
                err == EINVAL || err == EPROTO
                    ? "what it shares with the server is of another version of Sirius"
                    : strerror(err));
        return 1;
    }
    if (s->detach)
        detach();
    fix_time_zone();
    if (SR_SANDBOX && s->sandbox)
        confine(s, tmpdir);
    sr_edge_run(edge);
    sr_edge_free(edge);
    sr_setup_free(s);
    return 0;
}

int main(int argc, char **argv)
{
    sr_setup setup;
    const char *word, *why;
    char **words = copied(argc, argv); /* the setup points into them */
    sr_self_readable(false);
    if (!words)
        return 1;
    if (!fits(argc, words))
        return 2;
    if (!sr_setup_read(&setup, argc, words, &word, &why)) {
        fprintf(stderr, "sirius-edge: %s %s\n", word, why);
        return 2;
    }
    /* as the user that has started the server, who alone may be able to read them */
    if (setup.keeper ? !sr_keeper_read(&setup) : !read_keys(&setup))
        return 2;
    if (setup.check)
        return 0;
    if (!sr_rights_drop(&setup)) { /* before the guard, as the change makes the process dumpable again */
        fprintf(stderr, "sirius-edge: cannot become user %lld, group %lld: %s\n", (long long)setup.uid,
                (long long)setup.gid, strerror(errno));
        return 1;
    }
    sr_rights_guard();
    ignore_signals();
    close_others(&setup);
    title(argc, argv, setup.name);
    return setup.keeper ? run_keeper(&setup) : run_edge(&setup);
}
