/* waiting: requests that no worker has taken until their time is over */
#include "driver.h"
#include "tap.h"

static site s;

/* Each worker has one; the rest waits */
static void waiting(int64_t queue_ms, int status, uint32_t workers)
{
    sr_config config = config_default();
    client c[4], head;
    int right = 0;
    config.queue_ns = queue_ms * SR_MILLISECOND;
    config.request_ns = SR_SECOND;
    site_open(&s, &config, workers);
    printf("# %u workers, a queue limit of %d ms\n", workers, (int)queue_ms);
    for (uint32_t i = 0; i < 4; i++) {
        c[i] = client_open(&s, 0);
        client_get(&c[i], "/held");
        if (i < workers)
            ok(called(&s, i + 1), "one is with the application");
    }
    int64_t start = sr_clock_monotonic();
    head = client_open(&s, 0);
    client_send(&head, "HEAD /held HTTP/1.1\r\nHost: a\r\n\r\n", 33);
    for (uint32_t i = workers; i < 4; i++)
        right += client_response(&c[i]) == status && c[i].closes && client_ends(&c[i]);
    is_int(right, 4 - (int)workers, "those that wait have their answer");
    ok(ms_since(start) < 9000, "in time (%.0f ms)", ms_since(start));
    while (client_read(&head))
        ;
    ok(head.len && atoi(head.in + 9) == status && strcmp(head.in + head.len - 4, "\r\n\r\n") == 0,
       "to HEAD without a body");
    for (uint32_t i = 0; i < workers; i++)
        right += client_response(&c[i]) == 504;
    is_int(right, 4, "those that run get 504");
    atomic_store(&s.common->go_on, 1);
    is_int(atomic_load(&s.common->calls), workers, "the application has not seen the others");
    for (int i = 0; i < 4; i++)
        client_close(&c[i]);
    client_close(&head);
    site_close(&s);
}

int main(void)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (uint32_t workers = 1; workers <= 2; workers++) {
        waiting(0, 504, workers);
        waiting(10000, 504, workers);
        waiting(400, 503, workers);
    }
    return done_testing();
}
