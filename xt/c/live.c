/* live: channels, subscribers, what they get and when; with subscribers that only take notes. */
#include "../../src/http/grip.h"
#include "../../src/live/channel.h"

#include "../../src/live/clients.h"
#include "../../src/live/recent.h"
#include "tap.h"

#include <stdio.h>
#include <stdlib.h>

static sr_engine engine;
static char notes[4096];

typedef struct one {
    sr_subscriber subscriber;
    const char *name;
    const char *user; /* NULL: nobody */
    bool ends;        /* at its first publication */
} one;

static void note(const char *format, const char *name, sr_bytes text)
{
    size_t n = strlen(notes);
    snprintf(notes + n, sizeof notes - n, format, name, (int)text.len, text.at);
}

static void deliver(sr_live *live, sr_subscriber *s, const sr_publication *p)
{
    one *o = (one *)s;
    note("%s:%.*s ", o->name, p->item.stream);
    if (o->ends)
        sr_subscriber_end(live, s);
}

static void gap(sr_live *live, sr_subscriber *s)
{
    note("%s:gap%.*s ", ((one *)s)->name, SR_BYTES(""));
    sr_subscriber_end(live, s);
}

static void due(sr_live *live, sr_subscriber *s)
{
    (void)live;
    note("%s:due%.*s ", ((one *)s)->name, SR_BYTES(""));
}

static void leave(sr_live *live, sr_subscriber *s)
{
    note("%s:leave%.*s ", ((one *)s)->name, SR_BYTES(""));
    sr_subscriber_end(live, s);
}

static sr_bytes user(const sr_subscriber *s)
{
    const char *name = ((const one *)s)->user;
    return sr_bytes_of(name, name ? strlen(name) : 0);
}

static const sr_subscriber_ops ops = {SR_HELD_STREAM, deliver, gap, due, leave, NULL, NULL, user};

static const char *sender = ""; /* of the publications that follow */

static uint64_t number; /* of the last publication */

static bool publish(sr_live *live, const char *channel, const char *id, const char *prev, const char *text)
{
    char packed[4096];
    sr_item item = {.number = ++number,
                    .channel = (uint32_t)strlen(channel),
                    .id = (uint32_t)strlen(id),
                    .prev_id = (uint32_t)strlen(prev),
                    .stream = (uint32_t)strlen(text),
                    .has = SR_ITEM_STREAM,
                    .sender = (uint16_t)strlen(sender)};
    memcpy(packed, &item, sizeof item);
    int n = snprintf(packed + sizeof item, sizeof packed - sizeof item, "%s%s%s%s%s", channel, id, prev, text,
                     sender);
    return sr_live_publish(live, sr_bytes_of(packed, sizeof item + (size_t)n));
}

static bool saw(sr_live *live, const char *want, const char *what)
{
    for (int i = 0; i < 20 && sr_live_timeout(live) == 0; i++)
        sr_live_step(live);
    bool is = ok(strcmp(notes, want) == 0, "%s", what);
    if (!is)
        printf("# got  \"%s\"\n# want \"%s\"\n", notes, want);
    notes[0] = '\0';
    return is;
}

static void begin(sr_live *live, one *o, const char *name)
{
    *o = (one){.name = name};
    sr_subscriber_begin(live, &o->subscriber, NULL, &ops);
}

static sr_subscribed join(sr_live *live, one *o, const char *channel, const char *prev)
{
    const sr_wanted wanted = {sr_bytes_of(channel, strlen(channel)), sr_bytes_of(prev, strlen(prev)), o->user,
                              false};
    return sr_subscribe(live, &o->subscriber, &wanted);
}

/* Subscriptions of somebody who wants nothing of his own. */
static void own(sr_live *live)
{
    one a, b, c;
    begin(live, &a, "a");
    begin(live, &b, "b");
    begin(live, &c, "c");
    a.user = "alice";
    b.user = "";
    join(live, &a, "own", "1");
    join(live, &b, "own", "");
    join(live, &c, "own", "");
    sender = "alice";
    publish(live, "own", "2", "1", "1");
    sender = "alic";
    publish(live, "own", "3", "2", "2");
    sender = "";
    publish(live, "own", "4", "3", "3");
    saw(live, "b:1 c:1 a:2 b:2 c:2 a:3 b:3 c:3 ", "what a user has published is skipped by his own");
    sender = "alice";
    publish(live, "own", "6", "5", "4");
    saw(live, "a:gap b:4 c:4 ", "a gap is one all the same");
    sender = "";
    sr_subscriber_end(live, &b.subscriber);
    sr_subscriber_end(live, &c.subscriber);
}

static void order(sr_live *live)
{
    one a, b, c;
    begin(live, &a, "a");
    begin(live, &b, "b");
    begin(live, &c, "c");
    ok(join(live, &a, "x", "") == SR_SUBSCRIBED && join(live, &b, "x", "") == SR_SUBSCRIBED &&
           join(live, &b, "y", "") == SR_SUBSCRIBED,
       "two subscribers");
    ok(join(live, &a, "x", "") == SR_SUBSCRIBED, "again");
    ok(publish(live, "x", "", "", "1") && publish(live, "x", "", "", "2") && publish(live, "y", "", "", "3"),
       "three items");
    join(live, &c, "x", "");
    ok(publish(live, "x", "", "", "4") && publish(live, "z", "", "", "5"), "two more, one to nobody");
    saw(live, "a:1 b:1 b:3 a:2 b:2 a:4 b:4 c:4 ", "each channel in its order; nobody gets what came before");
    sr_unsubscribe(live, &b.subscriber, SR_BYTES("x"));
    sr_unsubscribe(live, &b.subscriber, SR_BYTES("no"));
    a.ends = true;
    publish(live, "x", "", "", "5");
    publish(live, "x", "", "", "6");
    saw(live, "a:5 c:5 c:6 ", "one has unsubscribed, and one ends at an item");
    sr_subscriber_end(live, &b.subscriber);
    sr_subscriber_end(live, &c.subscriber);
    ok(live->n_channels == 0, "no channel is left");
}

static void ends_within(sr_live *live)
{
    static one many[200];
    for (int i = 0; i < 200; i++) {
        begin(live, &many[i], "m");
        join(live, &many[i], "x", "");
    }
    publish(live, "x", "", "", "1");
    sr_live_step(live);
    ok(strlen(notes) == SR_LIVE_SLICE * 4, "a step delivers %d", SR_LIVE_SLICE);
    for (int i = SR_LIVE_SLICE - 2; i < SR_LIVE_SLICE + 2; i++)
        sr_subscriber_end(live, &many[i].subscriber);
    for (int i = 0; i < 5; i++)
        sr_live_step(live);
    ok(strlen(notes) == 198 * 4, "some end meanwhile: those that are left get it");
    notes[0] = '\0';
    publish(live, "x", "", "", "2");
    sr_live_step(live);
    for (int i = 0; i < 200; i++)
        if (i < SR_LIVE_SLICE - 2 || i >= SR_LIVE_SLICE + 2)
            sr_subscriber_end(live, &many[i].subscriber);
    notes[0] = '\0';
    saw(live, "", "all end meanwhile");
    ok(!live->n_channels && !live->pending, "nothing is left");
}

static void gaps(sr_live *live)
{
    one a, b, c;
    begin(live, &a, "a");
    begin(live, &b, "b");
    ok(join(live, &a, "x", "3") == SR_SUBSCRIBED, "the first one says where it is");
    ok(join(live, &b, "x", "") == SR_SUBSCRIBED, "another one does not care");
    publish(live, "x", "4", "3", "4");
    publish(live, "x", "6", "5", "6");
    saw(live, "a:4 b:4 a:gap b:6 ", "a gap is told to who asks");
    begin(live, &c, "c");
    ok(join(live, &c, "x", "4") == SR_SUBSCRIBED_LATE, "what came behind is missed");
    sr_subscriber_end(live, &c.subscriber);
    sr_subscriber_end(live, &b.subscriber);
    ok(live->n_channels == 1, "the id is remembered without subscribers");
    begin(live, &c, "c");
    ok(join(live, &c, "x", "6") == SR_SUBSCRIBED, "and is right");
    begin(live, &b, "b");
    ok(join(live, &b, "x", "7") == SR_SUBSCRIBED_LATE, "another one is not");
    sr_subscriber_end(live, &b.subscriber);
    begin(live, &b, "b");
    ok(join(live, &b, "x", "7") == SR_SUBSCRIBED_LATE, "nor the next");
    sr_subscriber_end(live, &b.subscriber);
    engine.now += (SR_LIVE_REMEMBERS + 1) * SR_SECOND;
    begin(live, &b, "b");
    ok(join(live, &b, "x", "7") == SR_SUBSCRIBED,
       "for a minute, as what was published last may not be the newest");
    publish(live, "x", "8", "7", "8");
    saw(live, "c:gap b:gap ", "but the channel has missed one");
    begin(live, &a, "a");
    begin(live, &b, "b");
    ok(join(live, &a, "y", "99") == SR_SUBSCRIBED && join(live, &b, "y", "1") == SR_SUBSCRIBED,
       "what one says of a channel that nobody knows");
    publish(live, "y", "2", "1", "2");
    publish(live, "y", "3", "2", "3");
    saw(live, "a:gap b:2 b:3 ", "binds only him");
    sr_subscriber_end(live, &b.subscriber);
    engine.now += (SR_LIVE_REMEMBERS + 2) * SR_SECOND;
    sr_live_step(live);
    ok(live->n_channels == 0, "for a minute");
    for (int i = 0; i < SR_LIVE_REMEMBERED_MAX + 10; i++) {
        char name[16];
        snprintf(name, sizeof name, "c%d", i);
        publish(live, name, "1", "", "x");
        sr_live_step(live);
    }
    ok(live->n_channels == SR_LIVE_REMEMBERED_MAX, "not more than %d", SR_LIVE_REMEMBERED_MAX);
    engine.now += (SR_LIVE_REMEMBERS + 2) * SR_SECOND;
    sr_live_step(live);
    ok(live->n_channels == 0 && sr_live_timeout(live) == -1, "and then nothing is to be done");
}

static void limits(sr_live *live)
{
    one a;
    begin(live, &a, "a");
    int n = 0;
    for (int i = 0; i < SR_GRIP_CHANNELS; i++) {
        char name[16];
        snprintf(name, sizeof name, "c%d", i);
        n += join(live, &a, name, "") == SR_SUBSCRIBED;
    }
    is_int(n, SR_GRIP_CHANNELS, "as many channels as one may have");
    ok(join(live, &a, "another", "") == SR_SUBSCRIBED_NOT && !sr_channel_find(live, SR_BYTES("another")),
       "not one more");
    ok(join(live, &a, "c0", "") == SR_SUBSCRIBED, "but one of them again");
    sr_subscriber_end(live, &a.subscriber);
    static one many[100];
    for (int i = 0; i < 100; i++) {
        begin(live, &many[i], "m");
        join(live, &many[i], "x", "");
    }
    static char packed[65536];
    sr_item item = {
        .number = ++number, .channel = 1, .stream = sizeof packed - sizeof item - 1, .has = SR_ITEM_STREAM};
    memcpy(packed, &item, sizeof item);
    packed[sizeof item] = 'x';
    sr_live_publish(live, sr_bytes_of(packed, sizeof packed));
    int steps = 0;
    for (; live->busy.next != &live->busy && steps < 100; steps++) {
        sr_live_step(live);
        notes[0] = '\0';
    }
    is_int(steps, 25, "a step takes less of long items: four of 64 KiB");
    for (int i = 0; i < 100; i++)
        sr_subscriber_end(live, &many[i].subscriber);
}

static void timers(sr_live *live)
{
    one a, b;
    begin(live, &a, "a");
    begin(live, &b, "b");
    sr_timer_set(live, &a.subscriber, 3);
    sr_timer_set(live, &b.subscriber, 1000);
    engine.now += 3 * SR_SECOND - 1;
    saw(live, "", "not before its time");
    engine.now += SR_SECOND + 1;
    saw(live, "a:due ", "at its time");
    engine.now += 990 * SR_SECOND;
    saw(live, "", "a long one goes round the wheel");
    engine.now += 10 * SR_SECOND;
    saw(live, "b:due ", "and fires once");
    sr_timer_set(live, &a.subscriber, 5);
    sr_timer_set(live, &a.subscriber, 0);
    engine.now += 10 * SR_SECOND;
    saw(live, "", "one that is not needed any more");
    sr_timer_set(live, &a.subscriber, 5);
    static sr_exchange second, first;
    static sr_conn conn = {.state = SR_CONN_STREAMS, .exchange = &first};
    first = (sr_exchange){.conn = &conn, .older = &second, .held = &a};
    second = (sr_exchange){.conn = &conn, .held = &b};
    a.subscriber.exchange = &first;
    b.subscriber.exchange = &second;
    sr_link_init(&conn.all);
    sr_link_append(&engine.all, &conn.all);
    sr_live_drain(live);
    sr_link_remove(&conn.all);
    saw(live, "a:leave b:leave ", "all leave");
    ok(!live->held[SR_HELD_STREAM] && !live->wheel.n, "nothing is left");
}

/*
 * Connections come from another edge: whichever of the two knows a publication first, each of them gets it
 * once
 */
static void arrivals(sr_live *live)
{
    one a, b, c, here;
    uint64_t n;
    while (sr_recent_untold(live, &n))
        ;
    sr_recent_keep(live, true);
    begin(live, &here, "here");
    join(live, &here, "x", "");
    publish(live, "x", "", "", "1");
    saw(live, "here:1 ", "one who was here");
    begin(live, &a, "a");
    join(live, &a, "x", "");
    ok(sr_recent_arrive(live, &a.subscriber), "one arrives");
    saw(live, "a:1 ", "and gets what the old edge does not know");
    sr_recent_told(live, number);
    sr_recent_told(live, number + 1);
    begin(live, &b, "b");
    join(live, &b, "x", "");
    sr_recent_arrive(live, &b.subscriber);
    saw(live, "", "another one, behind the word that it has two of them");
    publish(live, "x", "", "", "2");
    saw(live, "here:2 a:2 ", "the second comes here later");
    publish(live, "x", "", "", "3");
    begin(live, &c, "c");
    join(live, &c, "x", "");
    c.ends = true;
    ok(!sr_recent_arrive(live, &c.subscriber), "one that ends at what it gets");
    saw(live, "c:3 here:3 a:3 b:3 ", "while that is on its way to others");
    sr_subscriber_end(live, &a.subscriber);
    sr_subscriber_end(live, &b.subscriber);
    sr_subscriber_end(live, &here.subscriber);
    int told = 0;
    while (sr_recent_untold(live, &n))
        told += n == number - 2 + (uint64_t)told;
    is_int(told, 3, "the next edge is told of all three, in order");
    for (uint64_t i = 1; i <= 256;
         i++) /* of one process in a millisecond or two, as their numbers are made */
        sr_recent_told(live, UINT64_C(1) << 60 | i << 22 | 4711);
    int known = 0;
    for (uint64_t i = 1; i <= 256; i++)
        known += sr_recent_told_at(live, UINT64_C(1) << 60 | i << 22 | 4711) != UINT32_MAX;
    is_int(known, 256, "many of one publisher are known");
    sr_recent_again(live, 2);
    ok(sr_recent_untold(live, &n) && n == number - 1, "again, as they could not be sent");
    for (int i = 0; i < SR_RECENT_NUMBERS + 5; i++)
        publish(live, "x", "", "", "x");
    ok(sr_recent_untold(live, &n) && n == number - SR_RECENT_NUMBERS + 1, "of too many, the last");
    publish(live, "z", "8", "7", "8");
    begin(live, &a, "a");
    sr_subscribe(live, &a.subscriber, &(sr_wanted){SR_BYTES("z"), SR_BYTES("7"), false, true});
    sr_recent_arrive(live, &a.subscriber);
    publish(live, "z", "9", "8", "9");
    saw(live, "a:8 a:9 ", "one that goes on where the old edge has ended misses nothing");
    sr_subscriber_end(live, &a.subscriber);
}

static void bad_items(sr_live *live)
{
    ok(!sr_live_publish(live, SR_BYTES("")) && !sr_live_publish(live, SR_BYTES("rubbish")),
       "what is no item");
    one a;
    begin(live, &a, "a");
    join(live, &a, "x", "1");
    live->pending = SR_LIVE_PENDING_MAX;
    ok(!publish(live, "x", "2", "1", "2"), "too much is pending");
    live->pending = 0;
    publish(live, "x", "3", "2", "3");
    saw(live, "a:gap ", "what was dropped is a gap for those who ask");
    begin(live, &a, "a");
    join(live, &a, "x", "3");
    publish(live, "x", "4", "3", "4");
    saw(live, "a:4 ", "and nothing behind it");
    sr_subscriber_end(live, &a.subscriber);
}

static void addresses(sr_live *live)
{
    sr_peer a = {.family = 4, .addr = {10, 0, 0, 1}, .port = 1}, b = a, c = {.family = 0};
    b.port = 2;
    ok(sr_clients_came(live, &a, 2) && sr_clients_came(live, &b, 2) && !sr_clients_came(live, &a, 2),
       "two of an address");
    ok(sr_clients_came(live, &c, 2), "another one");
    sr_clients_left(live, &b);
    ok(sr_clients_came(live, &a, 2), "one has left");
    ok(sr_clients_came(live, &a, UINT32_MAX) && !sr_clients_came(live, &a, 2),
       "nobody comes while another edge has sent more");
    for (int i = 0; i < 3; i++)
        sr_clients_left(live, &a);
    sr_clients_left(live, &c);
}

int main(void)
{
    engine.row = &engine.no_row;
    engine.now = SR_SECOND;
    sr_link_init(&engine.all);
    sr_live *live = sr_live_new(&engine);
    order(live);
    ends_within(live);
    gaps(live);
    limits(live);
    timers(live);
    live->draining = false;
    bad_items(live);
    arrivals(live);
    addresses(live);
    own(live);
    one a;
    begin(live, &a, "a");
    join(live, &a, "x", "");
    publish(live, "x", "", "", "1");
    sr_subscriber_end(live, &a.subscriber);
    publish(live, "y", "1", "", "1");
    sr_live_free(live);
    return done_testing();
}
