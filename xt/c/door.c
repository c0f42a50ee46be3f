/* door: a lobby outlives who enters it, and knows who that is */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "share/door.h"
#include "share/lobby.h"

#include "tap.h"

#include <errno.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static int lobby;
static uint64_t name;

static pid_t child(void)
{
    fflush(stdout);
    pid_t pid = fork();
    if (!pid)
        prctl(PR_SET_PDEATHSIG, SIGKILL);
    return pid;
}

static int ends(pid_t pid)
{
    int status;
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Nobody has accepted it yet, and the note has a sender all the same. */
static void a_note_waits(void)
{
    pid_t pid = child();
    if (!pid) {
        int line;
        sr_message note = {.kind = SR_MESSAGE_HELLO, .row = 7, .number = 99};
        _exit(sr_door_enter(name, &line) || sr_door_send(line, &note, NULL, 0, false));
    }
    is_int(ends(pid), 0, "somebody enters, says hello and ends before anybody looks");
    int line, fds[SR_MESSAGE_FDS], n;
    sr_message note;
    is_int(sr_door_admit(lobby, &line), 0, "it is admitted later");
    is_int(sr_door_receive(line, &note, fds, &n, false), 0, "with what it has said");
    ok(note.kind == SR_MESSAGE_HELLO && note.row == 7 && note.number == 99 && note.pid == pid && n == 0,
       "and who it was");
    is_int(sr_door_receive(line, &note, fds, &n, false), EPIPE, "then it is gone");
    close(line);
    is_int(sr_door_admit(lobby, &line), EAGAIN, "nobody else is there");
}

#ifdef SR_PORTABLE
/* A socket with the name of a lobby, as old as that */
static int named(const char *path, int age, bool listens)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    struct timeval times[2];
    int fd = socket(AF_UNIX, SR_LOBBY_TYPE, 0);
    strcpy(at.sun_path, path);
    if (bind(fd, (struct sockaddr *)&at, sizeof at) != 0 || (listens && listen(fd, 8) != 0))
        return -1;
    gettimeofday(&times[0], NULL);
    times[0].tv_sec -= age;
    times[1] = times[0];
    utimes(path, times);
    if (!listens)
        close(fd);
    return fd;
}

/* Of servers that were killed */
static void swept(void)
{
    char paths[4][64];
    for (unsigned i = 0; i < 4; i++)
        snprintf(paths[i], sizeof paths[i],
                 i < 3 ? "/tmp/sirius-%016llx.lobby" : "/tmp/sirius-+%015llx.lobby",
                 (unsigned long long)(i < 3 ? name ^ (i + 1) : name >> 8));
    int listening = named(paths[2], 1000, true), own;
    ok(named(paths[0], 1000, false) >= 0 && named(paths[1], 0, false) >= 0 && listening >= 0 &&
           named(paths[3], 1000, false) >= 0,
       "sockets with names of lobbies");
    ok(sr_door_lobby(&own) == 0, "a new lobby");
    ok(access(paths[0], F_OK) != 0, "removes one where nobody listens any more");
    ok(access(paths[1], F_OK) == 0, "but a young one is left");
    ok(access(paths[2], F_OK) == 0, "and one where somebody does");
    ok(access(paths[3], F_OK) == 0, "and one of another name");
    sr_lobby_remove(sr_door_name(own));
    close(own);
    close(listening);
    for (int i = 0; i < 4; i++)
        unlink(paths[i]);
}
#endif

static void shut_down(void)
{
    int in, out, other, fds[SR_MESSAGE_FDS], n;
    sr_message note = {.kind = SR_MESSAGE_ASK};
    ok(sr_door_enter(name, &in) == 0 && sr_door_admit(lobby, &out) == 0, "a line");
    shutdown(in, SHUT_RDWR);
    is_int(sr_door_receive(out, &note, fds, &n, false), EPIPE, "who shuts it down shuts his own");
    ok(sr_door_enter(name, &other) == 0, "others enter as before");
    close(in);
    close(out);
    ok(sr_door_admit(lobby, &out) == 0, "and are admitted");
    note = (sr_message){.kind = SR_MESSAGE_QUEUE, .row = 3};
    is_int(sr_door_send(out, &note, &lobby, 1, false), 0, "a descriptor goes the other way");
    ok(sr_door_receive(other, &note, fds, &n, false) == 0 && note.row == 3 && n == 1, "and arrives");
    close(fds[0]);
    close(other);
    close(out);
}

static void strangers(void)
{
    if (geteuid() != 0)
        return;
    pid_t pid = child();
    if (!pid) {
        int line;
        _exit(setresuid(65534, 65534, 65534) || sr_door_enter(name, &line));
    }
    int line;
    is_int(ends(pid), 0, "another user can knock");
    is_int(sr_door_admit(lobby, &line), 0, "and is let in");
    ok(sr_door_stranger(line), "as a stranger");
    close(line);
    is_int(sr_door_enter(name, &line), 0, "one of this user comes");
    close(line);
    is_int(sr_door_admit(lobby, &line), 0, "and is let in");
    ok(!sr_door_stranger(line), "as none");
    close(line);
}

static void full(void)
{
    static int lines[10000];
    int n = 0, err = 0, line;
    while (n < 10000 && (err = sr_door_enter(name, &lines[n])) == 0)
        n++;
    ok(n > 100 && (err == EAGAIN || err == EMFILE), "more than it holds do not wait for it");
    while (n > 0)
        close(lines[--n]);
    while (sr_door_admit(lobby, &line) == 0)
        close(line);
    ok(sr_door_enter(name, &line) == 0, "later they enter");
    close(line);
}

int main(void)
{
    alarm(60);
    is_int(sr_door_lobby(&lobby), 0, "a lobby");
    ok((name = sr_door_name(lobby)) != 0, "it has a name");
    int line, pair[2];
    is_int(sr_door_admit(lobby, &line), EAGAIN, "nobody is there");
    a_note_waits();
    shut_down();
    strangers();
    full();
#ifdef SR_PORTABLE
    swept();
#endif
    ok(sr_door_pair(pair) == 0 && sr_door_name(pair[0]) == 0, "a pair is no lobby");
    close(lobby);
    is_int(sr_door_enter(name, &line), ECONNREFUSED, "a lobby that is closed refuses");
    return done_testing();
}
