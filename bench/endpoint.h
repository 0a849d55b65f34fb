/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the two endpoints of a bed share, whatever carries their messages: the options, the pace of
 * the ping, the steady part with its faults and its marks, and the line that each prints. All of it
 * for C and C++. An endpoint goes through its messages like this:
 *
 *     endpoint_start();
 *     while (endpoint_more()) {
 *       endpoint_pace();             ping only: waits until the next message is due
 *       ... one message ...
 *       endpoint_record(ns);         ping only: what the round trip took
 *       ... free all that the message took ...
 *       endpoint_handled();
 *     }
 *     endpoint_print("name");
 */
#ifndef WEIR_BENCH_ENDPOINT_H
#define WEIR_BENCH_ENDPOINT_H

#include "bench.h"

enum { ENDPOINT_PING, ENDPOINT_ECHO, ENDPOINT_NONE };

/* The number of a message by which ping tells echo to end, for want of a connection to close. */
#define ENDPOINT_LAST UINT64_MAX
/* The least payload: a number at its beginning and a byte at its end. */
enum { ENDPOINT_LEAST = 16 };
/* After so many seconds without the other end, or without a message of its, it is given up. */
enum { ENDPOINT_PATIENCE_S = 20 };
/* The least pace of the warm-up: at that of a slow cell it would take longer than the rest. */
enum { ENDPOINT_WARMUP_HZ = 200 };

/* One a process. The first five are options, the rest is kept by the functions below. */
static struct {
  uint64_t role, size, hz, messages, warmup;
  uint64_t handled, due_ns;
  uint64_t first_faults, faults;
  uint64_t *times;
} endpoint = {ENDPOINT_NONE, 1u << 20, 200, 400, 100, 0, 0, 0, 0, NULL};

/* For the head of a program's list of options. */
#define ENDPOINT_OPTIONS \
  {"role", BENCH_WORD, &endpoint.role, 0, 0, "ping|echo", "which end this is; must be given"}, \
      {"size", BENCH_BYTES,           &endpoint.size, ENDPOINT_LEAST, (uint64_t)1 << 30, \
       NULL,   "payload of a message"}, \
      {"hz", \
       BENCH_COUNT, \
       &endpoint.hz, \
       0, \
       1000000, \
       NULL, \
       "messages a second; 0: the next as soon as the echo is back (ping only)"}, \
      {"messages", BENCH_COUNT, &endpoint.messages, 1, 10000000, NULL, "messages measured"}, { \
    "warmup", BENCH_COUNT, &endpoint.warmup, 0, 10000000, NULL, "messages before measuring starts" \
  }

static inline bool endpoint_is_ping(void) {
  return endpoint.role == ENDPOINT_PING;
}

static inline uint64_t endpoint_total(void) {
  return endpoint.warmup + endpoint.messages;
}

static inline bool endpoint_more(void) {
  return endpoint.handled < endpoint_total();
}

/* The marks and the faults are read where everything of one message has been given back and nothing
   of the next has been asked for. */
static inline void endpoint_look(void) {
  if (endpoint.handled == endpoint.warmup) {
    bench_mark(BENCH_MARK_BEGIN);
    endpoint.first_faults = bench_faults(RUSAGE_SELF);
  }
  if (endpoint.handled == endpoint_total()) {
    endpoint.faults = bench_faults(RUSAGE_SELF) - endpoint.first_faults;
    bench_mark(BENCH_MARK_END);
  }
}

/** After the options are read and before the first message. */
static inline void endpoint_start(void) {
  if (endpoint.role == ENDPOINT_NONE)
    bench_stop(2, "--role ping or --role echo must be given");
  endpoint.times = (uint64_t *)bench_array(sizeof(uint64_t) * (size_t)endpoint.messages);
  /* Once before it counts, so that lazy binding is not measured. */
  bench_mark(0);
  (void)bench_faults(RUSAGE_SELF);
  bench_sleep_ms(0);
  endpoint.due_ns = bench_now();
  endpoint_look();
}

/** Sleep until the next message is due. What could not be sent in time is not made up for. */
static inline void endpoint_pace(void) {
  if (endpoint.hz == 0)
    return;
  uint64_t now = bench_now(), hz = endpoint.hz;
  if (endpoint.handled < endpoint.warmup && hz < ENDPOINT_WARMUP_HZ)
    hz = ENDPOINT_WARMUP_HZ;
  endpoint.due_ns += 1000000000u / hz;
  if (endpoint.due_ns < now)
    endpoint.due_ns = now;
  struct timespec due = bench_timespec(endpoint.due_ns);
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL) == EINTR) {
  }
}

/** The round trip of the message that is being handled. */
static inline void endpoint_record(uint64_t ns) {
  if (endpoint.handled >= endpoint.warmup)
    endpoint.times[endpoint.handled - endpoint.warmup] = ns;
}

static inline void endpoint_handled(void) {
  endpoint.handled++;
  endpoint_look();
}

/* ---- payloads, for beds whose messages are plain bytes ---- */

/** Write a payload of `size` bytes: its number, then bytes that depend on it. */
static inline void endpoint_fill(void *payload, size_t size, uint64_t number) {
  memset(payload, (int)(number & 0xff), size);
  memcpy(payload, &number, sizeof number);
  ((unsigned char *)payload)[size - 1] = (unsigned char)~number;
}

/** The number of a payload that came. One that is not as endpoint_fill leaves it ends the run. */
static inline uint64_t endpoint_number(const void *payload, size_t size) {
  uint64_t number = 0;
  if (payload == NULL || size < ENDPOINT_LEAST)
    bench_stop(1, "a message of %zu bytes came", size);
  memcpy(&number, payload, sizeof number);
  const unsigned char *bytes = (const unsigned char *)payload;
  if (bytes[size - 1] != (unsigned char)~number || bytes[size / 2] != (unsigned char)number ||
      (number != ENDPOINT_LAST && size != endpoint.size))
    bench_stop(1, "message %" PRIu64 " came with wrong contents", number);
  return number;
}

/** The payload must be that of the message that is being handled. */
static inline void endpoint_check(const void *payload, size_t size) {
  uint64_t number = endpoint_number(payload, size);
  if (number != endpoint.handled)
    bench_stop(1, "message %" PRIu64 " came instead of %" PRIu64, number, endpoint.handled);
}

/* ---- the result ---- */

/** The line of this endpoint. */
static inline void endpoint_print(const char *name) {
  size_t count = (size_t)endpoint.messages;
  uint64_t sum = 0;
  printf("{\"bench\":\"%s\",\"role\":\"%s\"", name, endpoint_is_ping() ? "ping" : "echo");
  if (endpoint_is_ping()) {
    bench_sort(endpoint.times, count);
    for (size_t i = 0; i < count; i++)
      sum += endpoint.times[i];
    printf(",\"size\":%" PRIu64 ",\"hz\":%" PRIu64 ",\"messages\":%" PRIu64 ",\"warmup\":%" PRIu64
           ",\"ns_p50\":%" PRIu64 ",\"ns_p90\":%" PRIu64 ",\"ns_p99\":%" PRIu64
           ",\"ns_mean\":%" PRIu64 ",\"ns_max\":%" PRIu64,
           endpoint.size, endpoint.hz, endpoint.messages, endpoint.warmup,
           bench_percentile(endpoint.times, count, 50), bench_percentile(endpoint.times, count, 90),
           bench_percentile(endpoint.times, count, 99), sum / count, endpoint.times[count - 1]);
  }
  printf(",\"faults_per_message\":%.4f,\"first_faults\":%" PRIu64 ",\"rss_peak_kib\":%" PRIu64
         "}\n",
         (double)endpoint.faults / (double)count, endpoint.first_faults,
         bench_proc_kib(BENCH_STATUS, "VmHWM:"));
}

#endif
