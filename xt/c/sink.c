/* sink: batches and whole lines in a file, whatever that refuses */
#include "planned.h"

#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>

static char dir[] = "/tmp/sirius-sink-XXXXXX", path[64];

static void slurp_file(void)
{
    int fd = open(path, O_RDONLY);
    slurp(fd);
    close(fd);
}

static void open_file(int flags)
{
    unlink(path);
    sink = sr_sink_new(SR_SINK_FILE, open(path, O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0600), BATCH);
}

static void batches(void)
{
    open_file(O_APPEND);
    then(WHOLE, WHOLE, WHOLE);
    is_int(sr_sink_due(sink), 0, "nothing is due");
    sr_buffer_add(sr_sink_line(sink), "one\n", 4);
    sr_sink_added(sink, 5000);
    sr_buffer_add(sr_sink_line(sink), "two\n", 4);
    sr_sink_added(sink, 9000);
    is_int(sr_sink_due(sink), 5000 + 500 * SR_MILLISECOND, "half a second after the oldest line");
    slurp_file();
    ok(len == 0 && writes == 0, "not earlier");
    sr_sink_flush(sink);
    slurp_file();
    is_bytes(text, len, "one\ntwo\n", "then both");
    ok(writes == 1 && sr_sink_due(sink) == 0, "in one write");
    sr_sink_flush(sink);
    is_int(writes, 1, "no write for nothing");
    for (int i = 0; i < 83; i++)
        line("line 000000\n");
    is_int(writes, 1, "996 bytes wait");
    line("line 000000\n");
    ok(writes == 2 && sr_sink_due(sink) == 0, "1,008 are a batch");
    memset(text, 'x', 100000);
    text[99999] = '\n';
    add(text, 100000);
    slurp_file();
    ok(len == 8 + 84 * 12 + 100000 && writes == 3,
       "a line of a hundred batches goes out whole, in one write");
    is_int((long long)sink->buffer.cap, 0, "and its memory is given back");
    sr_buffer_add(sr_sink_line(sink), "cut", 3);
    sr_sink_added(sink, 1);
    line("whole\n");
    sr_sink_flush(sink);
    slurp_file();
    is_bytes(text + len - 7, 7, "\nwhole\n", "a line without an end is taken back");
    line("last\n");
    done(1, "and lost");
    slurp_file();
    is_bytes(text + len - 5, 5, "last\n", "the end writes what waits");
}

static void rotated(void)
{
    char old[80];
    snprintf(old, sizeof old, "%s.1", path);
    open_file(O_APPEND);
    line("old\n");
    rename(path, old);
    int fd = sink->fd;
    sr_sink_replace(sink, open(path, O_WRONLY | O_APPEND | O_CREAT, 0600));
    ok(fcntl(fd, F_GETFD) < 0 && sr_sink_due(sink) == 0, "the old descriptor is closed");
    line("new\n");
    done(0, "nothing is lost");
    slurp_file();
    is_bytes(text, len, "new\n", "new lines are in the new file");
    fd = open(old, O_RDONLY);
    slurp(fd);
    close(fd);
    is_bytes(text, len, "old\n", "old ones in the old");
}

static void interrupted(void)
{
    open_file(O_APPEND);
    then(-EINTR, 5, -EINTR);
    lines(1, 3);
    slurp_file();
    ok(whole_lines() == 3 && writes == 4, "EINTR and a short write: the rest follows");
    done(0, "nothing is lost");
}

/* The real thing: a limit in the middle of the third line, and SIGXFSZ as deadly as it is */
static void limited(void)
{
    struct rlimit all, few;
    getrlimit(RLIMIT_FSIZE, &all);
    few = (struct rlimit){30, all.rlim_max};
    open_file(O_APPEND);
    setrlimit(RLIMIT_FSIZE, &few);
    lines(1, 10);
    is_int((long long)sr_sink_lost(sink), 8, "a full disk: the other eight are counted");
    lines(11, 13);
    setrlimit(RLIMIT_FSIZE, &all);
    slurp_file();
    ok(len == 24 && whole_lines() == 2, "two of ten lines are there, whole");
    lines(14, 16);
    slurp_file();
    is_int(whole_lines(), 5, "and it goes on when there is room");
    done(11, "eleven are lost");
}

static void of_another(void)
{
    int fd = open(path, O_WRONLY | O_APPEND);
    ok(write(fd, "line of oth\n", 12) == 12, "another process writes meanwhile");
    close(fd);
}

static void full(void)
{
    open_file(O_APPEND);
    then(-ENOSPC, WHOLE, WHOLE);
    lines(1, 2);
    lines(3, 4);
    slurp_file();
    ok(whole_lines() == 2 && len == 24, "no byte fits: the next batch does");
    then(24, -EDQUOT, WHOLE);
    lines(5, 9);
    lines(10, 10);
    slurp_file();
    ok(whole_lines() == 5 && len == 60, "it ends between two lines");
    then(5, 10, -EIO);
    lines(11, 12);
    lines(13, 13);
    slurp_file();
    ok(whole_lines() == 7 && len == 84, "it ends inside a line");
    then(17, -ENOSPC, -ENOSPC);
    between = of_another;
    lines(14, 16);
    between = NULL;
    lines(17, 17);
    then(WHOLE, 17, -ENOSPC);
    lines(18, 20);
    lines(21, 21);
    slurp_file();
    text[len] = '\0';
    ok(!strcmp(text + 84, "line 000014\nline line of oth\n\nline 000018\nline 000021\n"),
       "bytes of others stay");
    done(11, "lines that are lost");

    open_file(0);
    then(17, -ENOSPC, WHOLE);
    lines(1, 3);
    lines(4, 4);
    done(2, "a file that has no O_APPEND");
    slurp_file();
    is_bytes(text, len, "line 000001\nline \nline 000004\n",
             "is not shortened: the next batch starts a line");
}

static void devices(void)
{
    sink = sr_sink_new(SR_SINK_FILE, open("/dev/full", O_WRONLY | O_APPEND), BATCH);
    lines(1, 1000);
    is_int(sr_sink_due(sink), 0, "/dev/full keeps nothing waiting");
    done(1000, "and loses all");
    sink = sr_sink_new(SR_SINK_FILE, open("/dev/null", O_WRONLY | O_APPEND), BATCH);
    lines(1, 1000);
    done(0, "/dev/null loses none");
}

/* A child must not write what its parent wrote into memory */
static void forked(void)
{
    open_file(O_APPEND);
    line("once\n");
    int status = 1;
    if (fork() == 0) {
        line("of the child\n");
        sr_sink_flush(sink);
        int64_t due = sr_sink_due(sink);
        sr_sink_free(sink);
        _exit(due != 0);
    }
    wait(&status);
    done(0, "in the parent nothing is lost");
    slurp_file();
    ok(status == 0 && len == 5, "a child writes nothing");
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *drive(void *unused)
{
    for (int i = 0; i < 1000; i++) {
        pthread_mutex_lock(&lock);
        lines(i, i);
        pthread_mutex_unlock(&lock);
    }
    return unused;
}

static void threads(void)
{
    pthread_t one, two;
    open_file(O_APPEND);
    pthread_create(&one, NULL, drive, NULL);
    pthread_create(&two, NULL, drive, NULL);
    pthread_join(one, NULL);
    pthread_join(two, NULL);
    done(0, "two threads, one lock");
    slurp_file();
    is_int(whole_lines(), 2000, "all lines");
}

int main(void)
{
    if (!mkdtemp(dir))
        return 99;
    snprintf(path, sizeof path, "%s/log", dir);
    batches();
    rotated();
    interrupted();
    limited();
    full();
    devices();
    forked();
    threads();
    sr_sink_free(NULL);
    snprintf(text, sizeof text, "%s.1", path);
    unlink(text);
    unlink(path);
    rmdir(dir);
    return done_testing();
}
