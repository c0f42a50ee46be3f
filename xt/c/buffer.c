/* buffer: growth, taking from the front, and memory that is not there. */
#include "../../src/base/buffer.h"

#include <stdlib.h>

#include "../../src/base/list.h"
#include "tap.h"

static void grows(void)
{
    sr_buffer b;
    sr_buffer_init(&b);
    is_int((long long)sr_buffer_len(&b), 0, "empty");
    ok(sr_buffer_add(&b, NULL, 0) && !b.data, "nothing costs nothing");
    ok(sr_buffer_reserve(&b, 10) && b.cap >= 10 && b.end == 0, "reserve does not move the end");
    ok(sr_buffer_add(&b, "hello", 5) && sr_buffer_add_bytes(&b, SR_BYTES(" world")), "add");
    is_bytes(sr_buffer_at(&b), sr_buffer_len(&b), "hello world", "what was added");
    sr_buffer_take(&b, 6);
    is_bytes(sr_buffer_at(&b), sr_buffer_len(&b), "world", "what is left");
    sr_buffer_take(&b, 5);
    ok(b.from == 0 && b.end == 0 && b.data, "empty again: starts at the front");
    sr_buffer_add(&b, "x", 1);
    sr_buffer_reset(&b);
    ok(sr_buffer_len(&b) == 0 && b.data, "reset keeps the memory");
    sr_buffer_free(&b);
    ok(!b.data && b.cap == 0, "free");
    ok(sr_buffer_add(&b, "again", 5), "usable again");
    sr_buffer_free(&b);
}

static void moves(void)
{
    sr_buffer b;
    sr_buffer_init(&b);
    char block[200];
    memset(block, 'a', sizeof block);
    sr_buffer_add(&b, block, sizeof block);
    sr_buffer_take(&b, 190);
    char *before = b.data;
    size_t cap = b.cap;
    ok(sr_buffer_reserve(&b, cap - 10) && b.data == before && b.from == 0 && b.cap == cap,
       "a short rest is moved to the front");
    is_bytes(sr_buffer_at(&b), sr_buffer_len(&b), "aaaaaaaaaa", "and is the same");

    sr_buffer_add(&b, block, 190);
    sr_buffer_take(&b, 60);
    ok(sr_buffer_reserve(&b, 100) && b.from == 0, "a long rest is copied to a larger memory");
    is_int((long long)sr_buffer_len(&b), 140, "as long as before");
    sr_buffer_free(&b);
}

static void exhausted(void)
{
    sr_buffer b;
    sr_buffer_init(&b);
    sr_buffer_add(&b, "abc", 3);
    ok(!sr_buffer_reserve(&b, SIZE_MAX) && !sr_buffer_reserve(&b, SIZE_MAX / 4), "too much to count");
    ok(sizeof(size_t) < 8 || !sr_buffer_add(&b, "x", SIZE_MAX / 8), "too much to have");
    is_bytes(sr_buffer_at(&b), sr_buffer_len(&b), "abc", "leaves it as it was");
    sr_buffer_free(&b);
}

static void links(void)
{
    typedef struct item {
        int n;
        sr_link link;
    } item;
    sr_link list;
    item a = {.n = 1}, b = {.n = 2};
    sr_link_init(&list);
    sr_link_init(&a.link);
    sr_link_init(&b.link);
    ok(sr_link_alone(&list), "an empty list");
    sr_link_append(&list, &a.link);
    sr_link_append(&list, &b.link);
    sr_link_append(&list, &a.link);
    is_int(SR_LIST_ENTRY(list.next, item, link)->n, 2, "appended again: the last");
    is_int(SR_LIST_ENTRY(list.prev, item, link)->n, 1, "the tail");
    sr_link_remove(&b.link);
    sr_link_remove(&b.link);
    ok(sr_link_alone(&b.link) && list.next == &a.link && list.prev == &a.link, "removing twice");
}

/* The sanitizer is to return NULL for what cannot be had, as malloc does, not to stop. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

int main(void)
{
    grows();
    moves();
    exhausted();
    links();
    return done_testing();
}
