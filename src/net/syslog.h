#ifndef SR_SYSLOG_H
#define SR_SYSLOG_H
/*
 * syslog: lines as datagrams to the syslog of this machine, one each, as syslog(3) writes them: "<190>Nov  6
 * 08:49:37 sirius[4711]: " (RFC 3164 4.1, without the name of the host, as on any local socket), then the line
 * without its newline. The time is that of sending.
 *
 * Owner: the sink that embeds it; the descriptor is the sink's, and connected. Never waits.
 */
#include "../base/buffer.h"

#include <sys/socket.h>
#include <sys/un.h>

enum {
    SR_SYSLOG_LINE_MAX = 8000, /* bytes: rsyslog takes 8 KiB, journald more, RFC 3164 asked for 1,024 */
    SR_SYSLOG_BURST =
        8, /* lines that are sent at once: net.unix.max_dgram_qlen lets 10 wait, unless raised */
};

typedef struct sr_syslog {
    int priority;          /* facility * 8 + severity */
    struct sockaddr_un to; /* where the descriptor was connected to */
    socklen_t to_len;      /* 0: not known */
} sr_syslog;

void sr_syslog_init(sr_syslog *l, int fd, int priority);

/*
 * Sends the lines in `lines`, whole ones, and takes those from it that are sent. When nobody receives at the
 * other end any more it connects anew, once a call. 0 when all are sent, else errno: EAGAIN when the receiver
 * has no room now.
 */
int sr_syslog_send(sr_syslog *l, int fd, sr_buffer *lines);

#endif
