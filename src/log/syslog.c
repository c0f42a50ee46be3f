#include "syslog.h"

#include "../net/sockets.h"

#include <errno.h>
#include <stdio.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

void sr_syslog_init(sr_syslog *l, int fd, int priority)
{
    *l = (sr_syslog){.priority = priority, .to_len = sizeof l->to};
    if (getpeername(fd, (struct sockaddr *)&l->to, &l->to_len) != 0)
        l->to_len = 0;
}

/* By hand: strftime would name the month in the locale of the application. */
static size_t head(const sr_syslog *l, char *out, size_t cap)
{
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    time_t now = time(NULL);
    struct tm t;
    localtime_r(&now, &t);
    return (size_t)snprintf(out, cap, "<%d>%.3s %2d %02d:%02d:%02d sirius[%d]: ", l->priority,
                            months + (size_t)t.tm_mon * 3, t.tm_mday, t.tm_hour, t.tm_min, t.tm_sec,
                            (int)getpid());
}

/* The receiver is gone; another one may have taken its place. */
static bool again(const sr_syslog *l, int fd)
{
    return l->to_len && connect(fd, (const struct sockaddr *)&l->to, l->to_len) == 0;
}

int sr_syslog_send(sr_syslog *l, int fd, sr_buffer *lines)
{
    char prefix[64];
    size_t prefix_len = head(l, prefix, sizeof prefix);
    bool fresh = false;
    while (sr_buffer_len(lines)) {
        struct iovec iov[SR_SYSLOG_BURST][2];
        struct msghdr messages[SR_SYSLOG_BURST] = {{0}};
        unsigned n = 0;
        const char *at = sr_buffer_at(lines), *end = at + sr_buffer_len(lines);
        for (const char *eol; n < SR_SYSLOG_BURST && at < end; at = eol + 1, n++) {
            eol = memchr(at, '\n', (size_t)(end - at));
            iov[n][0] = (struct iovec){prefix, prefix_len};
            iov[n][1] = (struct iovec){(void *)at, (size_t)(eol - at)};
            messages[n] = (struct msghdr){.msg_iov = iov[n], .msg_iovlen = 2};
        }
        int sent = sr_sockets_send(fd, messages, n, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent > 0) {
            const char *line = iov[sent - 1][1].iov_base;
            sr_buffer_take(lines, (size_t)(line - sr_buffer_at(lines)) + iov[sent - 1][1].iov_len + 1);
            continue;
        }
        if (errno == EINTR)
            continue;
        if (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS)
            return EAGAIN;
        int err = errno;
        if (fresh || !again(l, fd))
            return err;
        fresh = true;
    }
    return 0;
}
