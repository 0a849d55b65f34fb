/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bed on Cyclone DDS. Each end does what a ROS node on rmw_cyclonedds does: its one thread sleeps
 * on a waitset, takes a message into memory of its own when there is one, publishes, and frees the
 * message; Cyclone's threads receive beside it. Reliable, keep the last 10, as is ROS's default.
 *
 * Nothing leaves the machine: unless CYCLONEDDS_URI says otherwise, the participants look for each
 * other on the loopback interface and nowhere else.
 */
#include "endpoint.h"

#include <dds/dds.h>

#include "stamped.h"

#define LOOPBACK \
  "<CycloneDDS><Domain><General><Interfaces><NetworkInterface name=\"lo\"/></Interfaces>" \
  "<AllowMulticast>false</AllowMulticast></General><Discovery>" \
  "<ParticipantIndex>auto</ParticipantIndex><Peers><Peer address=\"127.0.0.1\"/></Peers>" \
  "</Discovery></Domain></CycloneDDS>"

enum { DEPTH = 10, POOLED = 320 };

static dds_entity_t participant, reader, writer, waitset;

/* What Cyclone returns: an entity, a number, or an error, which ends the run. */
static dds_return_t must(dds_return_t result, const char *what) {
  if (result < 0)
    bench_stop(1, "%s: %s", what, dds_strretcode(result));
  return result;
}

static dds_entity_t topic(const char *name) {
  return must(dds_create_topic(participant, &weir_bench_Stamped_desc, name, NULL, NULL),
              "dds_create_topic");
}

/* A writer on the topic of this end and a reader on that of the other one. Two ends find each other
   by the bed's folder, and so do no others that run beside them. */
static void open_topics(const char *ping, const char *echo, int depth, dds_entity_t *out,
                        dds_entity_t *in) {
  const char *bed = getenv("BENCH_FOLDER");
  dds_qos_t *qos = dds_create_qos();
  dds_qset_reliability(qos, DDS_RELIABILITY_RELIABLE, DDS_INFINITY);
  dds_qset_history(qos, DDS_HISTORY_KEEP_LAST, depth);
  dds_qset_partition1(qos, bed != NULL ? bed : "weir");
  *out = must(dds_create_writer(participant, topic(endpoint_is_ping() ? ping : echo), qos, NULL),
              "dds_create_writer");
  *in = must(dds_create_reader(participant, topic(endpoint_is_ping() ? echo : ping), qos, NULL),
             "dds_create_reader");
  dds_delete_qos(qos);
}

/* Until the other end's reader and writer are known here. */
static void meet(dds_entity_t out, dds_entity_t in) {
  uint64_t deadline = bench_now() + ENDPOINT_PATIENCE_S * (uint64_t)1000000000;
  dds_publication_matched_status_t readers = {.current_count = 0};
  dds_subscription_matched_status_t writers = {.current_count = 0};
  while (readers.current_count == 0 || writers.current_count == 0) {
    if (bench_now() > deadline)
      bench_stop(1, "the other end was not found in %d s", ENDPOINT_PATIENCE_S);
    bench_sleep_ms(5);
    must(dds_get_publication_matched_status(out, &readers), "matched readers");
    must(dds_get_subscription_matched_status(in, &writers), "matched writers");
  }
}

/*
 * Cyclone keeps the nodes of its writers' histories in lists of 256, one for each of a few threads.
 * At 10 Hz and below, the thread that publishes asks for a node a message and another one, to which
 * the acknowledgement came, puts it into its own list; only a full list passes from one to the
 * other. So until message 257, half a minute later, each takes memory that nobody gives back.
 * Have it over with: messages to a topic of their own, acknowledged all at once.
 */
static void fill_pool(void) {
  dds_entity_t out, in;
  unsigned char byte = 0;
  weir_bench_Stamped message = {.data = {._buffer = &byte, ._length = 1, ._maximum = 1}};
  open_topics("weir_pool_ping", "weir_pool_echo", POOLED, &out, &in);
  meet(out, in);
  for (int i = 0; i < POOLED; i++)
    must(dds_write(out, &message), "dds_write");
  must(dds_wait_for_acks(out, DDS_SECS(ENDPOINT_PATIENCE_S)), "dds_wait_for_acks");
}

static void open_ends(void) {
  participant =
      must(dds_create_participant(DDS_DOMAIN_DEFAULT, NULL, NULL), "dds_create_participant");
  fill_pool();
  open_topics("weir_ping", "weir_echo", DEPTH, &writer, &reader);
  meet(writer, reader);
  waitset = must(dds_create_waitset(participant), "dds_create_waitset");
  must(dds_set_status_mask(reader, DDS_DATA_AVAILABLE_STATUS), "dds_set_status_mask");
  must(dds_waitset_attach(waitset, reader, 0), "dds_waitset_attach");
}

static void await_data(void) {
  dds_attach_t triggered;
  if (must(dds_waitset_wait(waitset, &triggered, 1, DDS_SECS(ENDPOINT_PATIENCE_S)),
           "dds_waitset_wait") == 0)
    bench_stop(1, "no message came in %d s", ENDPOINT_PATIENCE_S);
}

/* Take one message, whose buffer is then the caller's to free. False if there is none yet. */
static bool take(weir_bench_Stamped *message) {
  void *samples[1] = {message};
  dds_sample_info_t info;
  memset(message, 0, sizeof *message);
  return must(dds_take(reader, samples, &info, 1, 1), "dds_take") == 1 && info.valid_data;
}

/* Take before waiting: what came while another message was handled wakes nobody up. */
static void await_message(weir_bench_Stamped *message) {
  while (!take(message))
    await_data();
}

static void drop(weir_bench_Stamped *message) {
  dds_sample_free(message, &weir_bench_Stamped_desc, DDS_FREE_CONTENTS);
}

static void publish(uint64_t number, uint32_t size) {
  weir_bench_Stamped message = {.number = number};
  message.data._buffer = dds_sequence_octet_allocbuf(size);
  message.data._maximum = message.data._length = size;
  message.data._release = true;
  endpoint_fill(message.data._buffer, size, number);
  must(dds_write(writer, &message), "dds_write");
  drop(&message);
}

/* Take an echo; its round trip began at `start`. */
static void receive(uint64_t start) {
  weir_bench_Stamped message;
  await_message(&message);
  endpoint_record(bench_now() - start);
  endpoint_check(message.data._buffer, message.data._length);
  drop(&message);
  endpoint_handled();
}

/* When a thread is late, an end has one message more in its hands than at other times. In the
   warm-up that happens to every fourth message, not to fall on one of the steady part by chance. */
static bool with_next(void) {
  return endpoint.handled + 1 < endpoint.warmup && endpoint.handled % 4 == 0;
}

static void ping(void) {
  while (endpoint_more()) {
    endpoint_pace();
    bool two = with_next();
    uint64_t start = bench_now();
    publish(endpoint.handled, (uint32_t)endpoint.size);
    if (two)
      publish(endpoint.handled + 1, (uint32_t)endpoint.size);
    receive(start);
    if (two)
      receive(start);
  }
  publish(ENDPOINT_LAST, ENDPOINT_LEAST);
  must(dds_wait_for_acks(writer, DDS_SECS(ENDPOINT_PATIENCE_S)), "dds_wait_for_acks");
}

static void echo(void) {
  weir_bench_Stamped message;
  while (endpoint_more()) {
    await_message(&message);
    endpoint_check(message.data._buffer, message.data._length);
    must(dds_write(writer, &message), "dds_write");
    drop(&message);
    endpoint_handled();
  }
  /* Not to leave before ping has all that was sent. */
  await_message(&message);
  if (endpoint_number(message.data._buffer, message.data._length) != ENDPOINT_LAST)
    bench_stop(1, "there was no end after the last message");
  drop(&message);
}

static uint64_t settle_s;

static const struct bench_option options[] = {
    ENDPOINT_OPTIONS,
    {"settle-s", BENCH_COUNT, &settle_s, 0, 3600, NULL,
     "seconds between finding the other end and the first message; over 8, Cyclone's periodic work "
     "has been done once"},
};

int main(int argc, char **argv) {
  bench_parse(argc, argv, "cyclone",
              "One end of a round trip through Cyclone DDS; bench/endpoints starts both.", options,
              sizeof options / sizeof *options, NULL);
  /* Not over what the user has set: who sets it wants to measure another configuration. */
  setenv("CYCLONEDDS_URI", LOOPBACK, 0);
  endpoint_start();
  open_ends();
  bench_sleep_ms(settle_s * 1000);
  if (endpoint_is_ping())
    ping();
  else
    echo();
  endpoint_print("cyclone");
  must(dds_delete(participant), "dds_delete");
  return 0;
}
