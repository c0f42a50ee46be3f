/* door: a lobby outlives who enters it, and knows who that is */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "share/door.h"

#include "tap.h"

#include <errno.h>
#include <sys/prctl.h>
#include <sys/socket.h>
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
    ok(sr_door_pair(pair) == 0 && sr_door_name(pair[0]) == 0, "a pair is no lobby");
    close(lobby);
    is_int(sr_door_enter(name, &line), ECONNREFUSED, "a lobby that is closed refuses");
    return done_testing();
}
