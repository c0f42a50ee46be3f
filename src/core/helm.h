#ifndef SR_HELM_H
#define SR_HELM_H
/*
 * helm: the one lock of a worker. Who holds it drives the engine: every field of sr_engine and of its
 * connections that is not said to be atomic may be touched only by the holder.
 *
 * The Perl thread holds it except while application code runs. Uncontended, taking and leaving cost about 20
 * ns together.
 */
#include <pthread.h>
#include <stdbool.h>

typedef struct sr_helm {
    pthread_mutex_t lock;
} sr_helm;

static inline int sr_helm_init(sr_helm *h)
{
    return pthread_mutex_init(&h->lock, NULL);
}
static inline void sr_helm_free(sr_helm *h)
{
    pthread_mutex_destroy(&h->lock);
}
static inline void sr_helm_take(sr_helm *h)
{
    pthread_mutex_lock(&h->lock);
}
static inline bool sr_helm_try(sr_helm *h)
{
    return pthread_mutex_trylock(&h->lock) == 0;
}
static inline void sr_helm_leave(sr_helm *h)
{
    pthread_mutex_unlock(&h->lock);
}

#endif
