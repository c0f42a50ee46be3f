/*
 * sirius-edge: the program of an edge. The supervisor starts it with a title as its name. Its settings are
 * arguments (src/edge/settings.h); some are numbers of descriptors that it inherits.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* syscall */
#endif
#include "edge/edge.h"
#include "edge/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

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
    prctl(PR_SET_NAME, text);
}

/* For Linux before 5.9: descriptors stay open. Those that perl has opened are close-on-exec. */
static void close_between(int first, int last)
{
#ifdef SYS_close_range
    if (first <= last)
        syscall(SYS_close_range, (unsigned)first, (unsigned)last, 0);
#else
    (void)first;
    (void)last;
#endif
}

static int by_number(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

/*
 * Closes all descriptors but those in the settings: the operator's shell or a module of the application may
 * have left some open.
 */
static void close_others(const sr_settings *s)
{
    int keep[SR_LISTENERS_MAX + SR_EDGES_MAX + 11], n = 0, next = STDERR_FILENO + 1;
    for (unsigned i = 0; i < s->n_listeners; i++)
        keep[n++] = s->listeners[i].fd;
    const int own[] = {s->lobby,      s->sleepers, s->control, s->report, s->scoreboard,
                       s->supervisor, s->log.fd,   s->common,  s->keys,   s->legacy_keys};
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        keep[n++] = own[i];
    for (uint32_t i = 0; i < s->n_bells; i++)
        keep[n++] = s->bells[i];
    qsort(keep, (size_t)n, sizeof keep[0], by_number);
    for (int i = 0; i < n; i++) {
        close_between(next, keep[i] - 1);
        if (keep[i] >= next)
            next = keep[i] + 1;
    }
    close_between(next, INT_MAX);
}

/*
 * The edge stops by signals of its own (src/edge/edge.h), which arrive as events. Signals that are meant for
 * the supervisor, and may be sent to the whole process group, are ignored. Only root may look into this
 * process: it holds the data of all clients, and workers of the same user run code of the application.
 */
static void guard(void)
{
    static const int deaf[] = {SIGHUP,  SIGINT,  SIGQUIT, SIGTERM, SIGPIPE, SIGALRM,
                               SIGUSR1, SIGUSR2, SIGTTIN, SIGTTOU, SIGXFSZ};
    for (size_t i = 0; i < sizeof deaf / sizeof deaf[0]; i++)
        signal(deaf[i], SIG_IGN);
    prctl(PR_SET_DUMPABLE, 0);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
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

/*
 * Changes user and group for good, and checks that it worked. The caller may have done so before. False with
 * errno.
 */
static bool drop_rights(const sr_settings *s)
{
    gid_t gid = (gid_t)s->gid, gids[3];
    uid_t uid = s->uid < 0 ? geteuid() : (uid_t)s->uid, uids[3];
    if (s->gid < 0)
        return true;
    if (geteuid() == 0 && (setgroups(s->n_groups, s->groups) != 0 || setresgid(gid, gid, gid) != 0 ||
                           setresuid(uid, uid, uid) != 0))
        return false;
    if (getresgid(&gids[0], &gids[1], &gids[2]) != 0 || getresuid(&uids[0], &uids[1], &uids[2]) != 0)
        return false;
    errno = EPERM;
    return gids[0] == gid && gids[1] == gid && gids[2] == gid && uids[0] == uid && uids[1] == uid &&
           uids[2] == uid && (uid == 0 || setuid(0) != 0);
}

/* With the rights that the process has kept: what it may not read is not served. */
static bool open_mounts(const sr_settings *s, sr_mounts *mounts)
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

/* An edge without a supervisor reads the keys itself. False: the reason is on STDERR. */
static bool read_keys(sr_settings *s)
{
    char why[SR_KEYSET_WHY] = "no memory";
    prctl(PR_SET_DUMPABLE, 0);
    if (!sr_keyfiles_any(&s->keyfiles) ||
        (sr_keyset_begin(&s->keyset) && sr_keyfiles_read(&s->keyfiles, &s->keyset, NULL, NULL, why)))
        return true;
    fprintf(stderr, "[sirius %d] error: %s\n", (int)getpid(), why);
    return false;
}

int main(int argc, char **argv)
{
    sr_settings settings;
    sr_edge *edge;
    const char *word, *why;
    char **words = copied(argc, argv); /* the settings point into them */
    if (!words)
        return 1;
    if (!sr_settings_read(&settings, argc, words, &word, &why)) {
        fprintf(stderr, "sirius-edge: %s %s\n", word, why);
        return 2;
    }
    /* as the user that has started the server, who alone may be able to read them */
    if (settings.keeper ? !sr_keeper_read(&settings) : !read_keys(&settings))
        return 2;
    if (settings.check)
        return 0;
    if (!drop_rights(&settings)) { /* before the guard, as the change makes the process dumpable again */
        fprintf(stderr, "sirius-edge: cannot become user %lld, group %lld: %s\n", (long long)settings.uid,
                (long long)settings.gid, strerror(errno));
        return 1;
    }
    guard();
    close_others(&settings);
    title(argc, argv, settings.name);
    if (settings.keeper) {
        if (settings.detach)
            detach();
        sr_keeper_run(&settings);
        return 0;
    }
    if (!open_mounts(&settings, settings.mounts) || !open_mounts(&settings, settings.webroot))
        return 1;
    int err = sr_edge_new(&edge, &settings);
    sr_keyset_wipe(&settings.keyset);
    if (err) {
        fprintf(stderr, "sirius-edge: cannot start: %s\n", strerror(err));
        return 1;
    }
    if (settings.detach)
        detach();
    sr_edge_run(edge);
    sr_edge_free(edge);
    sr_settings_free(&settings);
    return 0;
}
