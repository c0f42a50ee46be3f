#include "engine.h"

#include "spools.h"

void sr_engine_tick(sr_engine *e)
{
    e->now = sr_clock_monotonic();
    int64_t wall = sr_clock_wall_seconds();
    if (wall == e->wall)
        return;
    e->wall = wall;
    e->wall_offset = sr_clock_wall() - e->now;
    sr_date_format(e->date, wall);
}

void sr_engine_publish(sr_engine *e, sr_worker_state state)
{
    sr_row *row = e->row;
    atomic_store_explicit(&row->connections, e->n_conns, memory_order_relaxed);
    atomic_store_explicit(&row->idle, e->deadlines.n_idle, memory_order_relaxed);
    atomic_store_explicit(&row->spooled, sr_spools_bytes(), memory_order_relaxed);
    if (atomic_load_explicit(&row->state, memory_order_relaxed) != state) {
        atomic_store_explicit(&row->since, e->now, memory_order_relaxed);
        atomic_store_explicit(&row->state, state, memory_order_relaxed);
    }
}

/* Whether the whole server is about to stop. */
static bool server_stops(const sr_engine *e)
{
    return e->scoreboard && atomic_load_explicit(&e->scoreboard->shared->stopping, memory_order_relaxed);
}

bool sr_engine_keeps(const sr_engine *e, const sr_exchange *x)
{
    const sr_conn *c = x->conn;
    const sr_config *config = &e->config;
    bool stays = !e->draining && !e->says_close && !(e->retiring && !sr_transport_moves(c->transport)) &&
                 !server_stops(e);
    stays = stays && !(e->apart && !sr_buffer_len(&c->in));
    return x->keep_alive && config->keepalive && !c->borrowed && stays &&
           (!config->max_keepalive_reqs || c->requests < config->max_keepalive_reqs);
}
