#ifndef SR_GATE_H
#define SR_GATE_H
/*
 * gate: how a listening TCP socket stops without losing anybody. To close it resets what the kernel holds: connections
 * that are established and not accepted, and those whose first bytes are still on their way (TCP_DEFER_ACCEPT). So
 * newcomers are kept out first: their SYN is dropped, they send it again after a second, and by then are refused, or let in
 * by whoever listens next. Who is inside already is accepted meanwhile.
 *
 * It is the socket that is shut, in all processes that have it: not for one that lives on with somebody else.
 */

/*
 * An errno, 0 when done: EPERM where the kernel lets only root attach filters; the socket is as before then. For good:
 * what is accepted later keeps the filter as well, where it finds nothing to drop.
 */
int sr_gate_shut(int fd);

#endif
