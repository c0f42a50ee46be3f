/* counters: numbers that only grow, and histograms */
#include "share/counters.h"
#include "tap.h"

static void indices(void)
{
    bool all = true;
    is_int((long long)sr_histogram_from(0), 0, "the first bucket begins at 0");
    is_int((long long)sr_histogram_from(1), 16384, "and ends at 16 us");
    ok(sr_histogram_from(SR_HISTOGRAM_BUCKETS - 1) >= 128 * UINT64_C(1000000000),
       "the last but one at 128 s or more");
    for (unsigned i = 0; i < SR_HISTOGRAM_BUCKETS; i++) {
        uint64_t from = sr_histogram_from(i);
        bool last = i == SR_HISTOGRAM_BUCKETS - 1;
        uint64_t to = last ? UINT64_MAX : sr_histogram_from(i + 1) - 1;
        bool good = sr_histogram_index(from) == i && sr_histogram_index(to) == i &&
                    sr_histogram_index(from + (to - from) / 2) == i && (last || to >= from);
        all = all && good && (i < 1 || last || (double)(to - from) <= (double)from / 4);
    }
    ok(all, "each time has its bucket, none is wider than a quarter of its start");
}

static bool near(double got, double want)
{
    bool good = got >= want * (1 - 1e-9) && got <= want * (1 + 1e-9);
    if (!good)
        printf("# got %.9g, want %.9g\n", got, want);
    return good;
}

static void quantiles(void)
{
    sr_histogram h = {0};
    ok(sr_histogram_quantile(&h, 0.5) == 0 && sr_histogram_count(&h) == 0, "of nothing: 0");
    for (int i = 0; i < 4; i++)
        sr_histogram_add(&h, 5);
    ok(near(sr_histogram_quantile(&h, 0.5), 8192), "half of the first bucket");
    ok(near(sr_histogram_quantile(&h, 1), 16384), "all of it");
    for (int i = 0; i < 4; i++)
        sr_histogram_add(&h, 1 << 20); /* of 2^20 to 5 * 2^18 */
    ok(near(sr_histogram_quantile(&h, 0.5), 16384), "half of all are in the first");
    ok(near(sr_histogram_quantile(&h, 0.75), 4.5 * (1 << 18)), "and half of the others in half of the other");
    sr_histogram_add(&h, UINT64_MAX / 4);
    ok(near(sr_histogram_quantile(&h, 1), (double)(UINT64_C(1) << 37)),
       "of what is longer than all buckets: at least that");
    is_int((long long)sr_histogram_count(&h), 9, "how many");
    ok(h.sum == 4 * 5 + 4 * (UINT64_C(1) << 20) + UINT64_MAX / 4, "their sum");
}

/* A million times, spread evenly over the logarithm: no percentile is wrong by more than a bucket */
static void spread(void)
{
    sr_histogram h = {0};
    enum { N = 1000000 };
    double want[100], time = 20000; /* ns, to 20 s */
    bool all = true;
    for (int i = 0; i < N; i++, time *= 1.0000138156) {
        sr_histogram_add(&h, (uint64_t)time);
        want[i / (N / 100)] = time;
    }
    for (int percent = 1; percent < 100; percent++) {
        double got = sr_histogram_quantile(&h, percent / 100.0);
        all = all && got > want[percent - 1] * 0.99 && got < want[percent - 1] * 1.01;
    }
    ok(all, "percentiles are right to one in a hundred");
}

static void sums(void)
{
    sr_counters a = {0}, b = {0}, sum = {0};
    sr_counters_add(&a.requests, 3);
    sr_counters_add(&b.requests, 4);
    sr_counters_add(&b.closed[SR_CLOSED_APPLICATION], 5);
    sr_counters_add(&b.log_lost, 6);
    sr_histogram_add(&a.latency, UINT64_MAX / 4);
    sr_counters_sum(&sum, &a);
    sr_counters_sum(&sum, &b);
    ok(sum.requests == 7 && sum.closed[SR_CLOSED_APPLICATION] == 5 && sum.log_lost == 6 &&
           sr_histogram_count(&sum.latency) == 1 && sr_histogram_count(&sum.queue) == 0,
       "every counter is summed, the last one too");
    bool named = true;
    for (int i = 0; i < SR_CLOSED_REASONS; i++)
        for (int j = 0; j < i; j++)
            named = named && strcmp(sr_closed_name((sr_closed)i), sr_closed_name((sr_closed)j)) != 0;
    ok(named, "every reason has a name of its own");
}

int main(void)
{
    indices();
    quantiles();
    spread();
    sums();
    return done_testing();
}
