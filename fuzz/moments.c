/*
 * moments: exchanges in which the edge changes its mind at any moment: limits, clients and workers that go
 * away or break the rules, stops, heirs, and a lack of memory, disk or descriptors, before, between and
 * behind the records of replies, and while the edge sends. Each client gets whole responses to its own
 * requests, in order, or sees that one is refused or cut; undisturbed, all are whole; all come to an end; and
 * no slot, connection, byte or descriptor is missing then.
 * Judges: src/edge/crew.c src/edge/deliver.c src/edge/limits.c src/edge/mend.c src/edge/stop.c
 * src/worker/reply.c src/conn/output.c
 *
 * Input: operations, a byte each with the bytes that it needs after it; see moments_operation.
 */
#include "acts.h"

enum { MOMENTS_CLIENTS = 4 };

static moments_client moments_clients[MOMENTS_CLIENTS];
static unsigned moments_id;

/* --- clients --- */

/* Judges all that has come. */
static void moments_look(moments_client *k)
{
    int status;
    moments_verdict v;
    do {
        const moments_shape *shape = k->n ? k->asked[0].shape : NULL;
        v = moments_judge(k, &status);
        MUST(v != V_WRONG);
        if (v == V_REFUSED)
            MUST(status == 502 || status == 503 || status == 504);
        if (v == V_REFUSED && moments_calm)
            MUST(shape->record[0] == R_CUT || shape->record[0] == R_UNREAD);
        if (k->ended && v < V_WHOLE && k->n &&
            moments_calm) /* behind one that ends with the connection, or is cut */
            MUST(v == V_NOTHING || moments_count(shape, R_CUT));
    } while (v == V_WHOLE || v == V_REFUSED);
}

static void moments_drop(moments_client *k)
{
    moments_leave(k);
}

static void moments_client_acts(moments_input *in, uint8_t op)
{
    static const size_t amounts[] = {1, 200, 5000, 1 << 20};
    moments_client *k = &moments_clients[op % MOMENTS_CLIENTS];
    switch (op / MOMENTS_CLIENTS % 4) {
    case 0:
    case 1:
        if (k->fd >= 0 && k->ended)
            moments_drop(k);
        if (k->fd < 0)
            moments_connect(k);
        moments_ask(k, ++moments_id, &moments_shapes[moments_take_byte(in) % MOMENTS_SHAPES_1]);
        return;
    case 2:
        moments_read(k, amounts[moments_take_byte(in) % 4]);
        moments_look(k);
        return;
    case 3:
        if (k->fd < 0)
            return;
        if (moments_take_byte(in) % 4) {
            moments_drop(k);
        } else {
            moments_calm = false;
            shutdown(k->fd, SHUT_WR);
        }
        return;
    }
}

/* --- the rest --- */

static void moments_operation(moments_input *in)
{
    uint8_t op = moments_take_byte(in);
    switch (op % 8) {
    case 0:
    case 1:
        moments_client_acts(in, op / 8);
        return;
    case 2:
    case 3:
    case 4:
        moments_worker_acts(in, op / 8);
        if (op & 128)
            moments_steps(1);
        return;
    case 5:
        moments_time_goes(op / 8);
        return;
    case 6:
        moments_steps(1 + op / 8 % 3);
        return;
    case 7:
        if (op > 127)
            moments_short(op / 8);
        else
            moments_ends(moments_take_byte(in));
        return;
    }
}

/* All that was begun comes to an end: workers that were killed are replaced, and clients read. */
static void moments_come_to_an_end(void)
{
    bool more = true;
    moments_inside = NULL;
    for (int turn = 0; moments_lives && more && turn < 300; turn++) {
        more = false;
        moments_workers_go_on();
        moments_heir_reads();
        moments_steps(1);
        for (int i = 0; i < MOMENTS_CLIENTS; i++) {
            moments_client *k = &moments_clients[i];
            moments_read(k, 1 << 20);
            moments_look(k);
            more = more || (k->fd >= 0 && !k->ended && k->n);
        }
        more = more || (moments_lives && sr_slots_used(moments_edge));
        moments_wait(30 * SR_MILLISECOND);
    }
    MUST(!moments_lives || moments_edge->stop.begun || moments_edge->engine->retiring || !more);
}

FUZZ_TARGET(moments)
{
    moments_input in = {data, data + size};
    moments_play();
    for (int i = 0; i < MOMENTS_CLIENTS; i++)
        moments_clients[i] = (moments_client){.fd = -1};
    while (moments_lives && in.at < in.end)
        moments_operation(&in);
    moments_come_to_an_end();
    if (!moments_lives)
        sr_stop_end(moments_edge);
    for (int i = 0; i < MOMENTS_CLIENTS; i++) {
        moments_read(&moments_clients[i], 1 << 20);
        moments_look(&moments_clients[i]);
        moments_leave(&moments_clients[i]);
    }
    moments_is_over();
    return 0;
}
