#ifndef SR_GATE_H
#define SR_GATE_H
/*
 * gate: stops a listening TCP socket without losing a client. Closing the socket resets what the kernel holds
 * for it: connections that are established and not accepted, and those whose first bytes are still on their
 * way (TCP_DEFER_ACCEPT). So new clients are kept out first: their SYN is dropped, they send it again after a
 * second, and by then they are refused, or accepted by the next listener. Connections that exist are
 * accepted meanwhile.
 *
 * This acts on the socket, in all processes that have it. Do not use it on a socket that another server goes
 * on with.
 */

/*
 * Attaches the filter, for good; sockets that are accepted later inherit it, and it drops nothing there.
 * Returns 0 or errno. EPERM: the kernel lets only root do so, and the socket is as before.
 */
int sr_gate_shut(int fd);

#endif
