/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One end of a round trip of stamped byte arrays between two processes, as two C++ nodes over
 * rmw_zenoh have it: ping publishes and takes the echo, echo takes and publishes what it took.
 * Each is run with a buffer arm (middleware.h) and a history, its own: which of two processes with
 * the same code pays for its memory depends on what it allocated before.
 */
#include "endpoint.h"
#include "middleware.h"

static uint64_t transport = Link::TCP, buffer = Middleware::EXACT, history, address;
enum { HISTORY_NONE, HISTORY_LARGE };

static const struct bench_option options[] = {
    ENDPOINT_OPTIONS,
    {"transport", BENCH_WORD, &transport, 0, 0, "tcp|unix",
     "loopback TCP, or a socket (default tcp)"},
    {"address", BENCH_TEXT, &address, 0, 0, NULL,
     "file of the socket, or which tells the port (default roundtrip.address)"},
    {"buffer", BENCH_WORD, &buffer, 0, 0, "in-place|wide|exact",
     "what a take deserialises from: the payload, or a copy in 4 x its size + 64 KiB, or in its "
     "size (default exact)"},
    {"history", BENCH_WORD, &history, 0, 0, "none|large",
     "large: this end has freed a block of 16 MiB before (default none)"},
};

/* glibc's thresholds follow the largest block that was ever freed. */
static void have_history(void) {
  enum { LARGE = 16 << 20 };
  void *block = bench_take(LARGE);
  memset(block, 1, LARGE);
  bench_keep(block);
  free(block);
}

/* The first and the last byte tell a message's number, as well as its own field. */
static void check(const Message &message, uint32_t number) {
  uint8_t byte = (uint8_t)number;
  if (message.number != number || message.data.size() != endpoint.size ||
      message.data.front() != byte || message.data.back() != byte)
    bench_stop(1, "message %u came back as %u with %zu bytes, or was altered", number,
               message.number, message.data.size());
}

static void ping(Middleware &middleware) {
  Message message;
  message.data.assign((size_t)endpoint.size, 7);
  endpoint_start();
  for (uint32_t number = 0; endpoint_more(); number++) {
    endpoint_pace();
    message.number = number;
    message.data.front() = message.data.back() = (uint8_t)number;
    uint64_t start = bench_now();
    message.sec = (int32_t)(start / 1000000000u);
    message.nanosec = (uint32_t)(start % 1000000000u);
    {
      Message echo;
      middleware.publish(message);
      if (!middleware.take(echo))
        bench_stop(1, "the echo has ended early");
      endpoint_record(bench_now() - start);
      check(echo, number);
    }
    endpoint_handled();
  }
}

static void echo(Middleware &middleware) {
  endpoint_start();
  for (uint32_t number = 0; endpoint_more(); number++) {
    {
      Message message;
      if (!middleware.take(message))
        bench_stop(1, "the ping has ended early");
      check(message, number);
      middleware.publish(message);
    }
    endpoint_handled();
  }
}

int main(int argc, char **argv) {
  bench_parse(argc, argv, "roundtrip",
              "One end of a round trip between two processes, as over rmw_zenoh; bench/endpoints "
              "starts both.",
              options, sizeof options / sizeof *options, NULL);
  if (endpoint.role == ENDPOINT_NONE)
    bench_stop(2, "--role ping or --role echo must be given");
  if (history == HISTORY_LARGE)
    have_history();
  const char *file = address != 0 ? (const char *)(uintptr_t)address : "roundtrip.address";
  Link::Transport way = transport == Link::TCP ? Link::TCP : Link::UNIX;
  Middleware middleware(endpoint_is_ping() ? Link::connect(way, file) : Link::listen(way, file),
                        (Middleware::Buffer)buffer);
  if (endpoint_is_ping())
    ping(middleware);
  else
    echo(middleware);
  endpoint_print("roundtrip");
  return 0;
}
