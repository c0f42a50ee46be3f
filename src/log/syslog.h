#ifndef SR_SYSLOG_H
#define SR_SYSLOG_H
/*
 * syslog: sends lines as datagrams to the syslog of this machine, one each, as syslog(3) formats them:
 * "<190>Nov 6 08:49:37 sirius[4711]: " (RFC 3164 4.1, without a host name, as usual on a local socket), then
 * the line without its newline. The time is that of sending.
 *
 * Owner: the sink that embeds it. The descriptor belongs to the sink and is connected. Never waits.
 */
#include "../base/buffer.h"

#include <sys/socket.h>
#include <sys/un.h>

enum {
    SR_SYSLOG_LINE_MAX = 8000, /* bytes: rsyslog takes 8 KiB, journald more, RFC 3164 asked for 1,024 */
    SR_SYSLOG_BURST = 8, /* lines sent at once: net.unix.max_dgram_qlen lets 10 wait, unless it is raised */
};

typedef struct sr_syslog {
    int priority;          /* facility * 8 + severity */
    struct sockaddr_un to; /* the address that the descriptor was connected to */
    socklen_t to_len;      /* 0: unknown */
} sr_syslog;

void sr_syslog_init(sr_syslog *l, int fd, int priority);

/*
 * Sends the lines in `lines`, which are whole, and removes those that were sent. Connects again, once a call,
 * when nobody receives at the other end. Returns 0 when all are sent, else errno; EAGAIN: the receiver is
 * full.
 */
int sr_syslog_send(sr_syslog *l, int fd, sr_buffer *lines);

#endif
