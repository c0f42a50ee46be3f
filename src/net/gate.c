#ifndef SR_PORTABLE
#include "gate.h"

#include <errno.h>
#include <linux/filter.h>
#include <sys/socket.h>

enum { FLAGS = 13, SYN = 0x02, ACK = 0x10 }; /* FLAGS: the offset in the TCP header (RFC 9293 3.1) */

int sr_gate_shut(int fd)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_B | BPF_ABS, FLAGS),      BPF_STMT(BPF_ALU | BPF_AND | BPF_K, SYN | ACK),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYN, 0, 1), BPF_STMT(BPF_RET | BPF_K, 0),
        BPF_STMT(BPF_RET | BPF_K, 0xffffffff),
    };
    struct sock_fprog program = {.len = sizeof code / sizeof code[0], .filter = code};
    return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) == 0 ? 0 : errno;
}
#endif
