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

enum { DEPTH = 10 };

static dds_entity_t participant, reader, writer, waitset;

/* What Cyclone returns: an entity, a number, or an error, which ends the run. */
static dds_return_t must(dds_return_t result, const char *what) {
  if (result < 0)
    bench_stop(1, "%s: %s", what, dds_strretcode(result));
  return result;
}

/* Two ends find each other by the bed's folder, and so do no others that run beside them. */
static dds_qos_t *quality(void) {
  const char *bed = getenv("BENCH_FOLDER");
  dds_qos_t *qos = dds_create_qos();
  dds_qset_reliability(qos, DDS_RELIABILITY_RELIABLE, DDS_INFINITY);
  dds_qset_history(qos, DDS_HISTORY_KEEP_LAST, DEPTH);
  dds_qset_partition1(qos, bed != NULL ? bed : "weir");
  return qos;
}

static void open_ends(void) {
  const char *out = endpoint_is_ping() ? "weir_ping" : "weir_echo";
  const char *in = endpoint_is_ping() ? "weir_echo" : "weir_ping";
  dds_qos_t *qos = quality();
  participant =
      must(dds_create_participant(DDS_DOMAIN_DEFAULT, NULL, NULL), "dds_create_participant");
  dds_entity_t topic = must(
      dds_create_topic(participant, &weir_bench_Stamped_desc, out, NULL, NULL), "dds_create_topic");
  writer = must(dds_create_writer(participant, topic, qos, NULL), "dds_create_writer");
  topic = must(dds_create_topic(participant, &weir_bench_Stamped_desc, in, NULL, NULL),
               "dds_create_topic");
  reader = must(dds_create_reader(participant, topic, qos, NULL), "dds_create_reader");
  dds_delete_qos(qos);
  waitset = must(dds_create_waitset(participant), "dds_create_waitset");
  must(dds_set_status_mask(reader, DDS_DATA_AVAILABLE_STATUS), "dds_set_status_mask");
  must(dds_waitset_attach(waitset, reader, 0), "dds_waitset_attach");
}

/* Until the other end's reader and writer are known here. */
static void meet(void) {
  uint64_t deadline = bench_now() + ENDPOINT_PATIENCE_S * (uint64_t)1000000000;
  dds_publication_matched_status_t readers = {.current_count = 0};
  dds_subscription_matched_status_t writers = {.current_count = 0};
  while (readers.current_count == 0 || writers.current_count == 0) {
    if (bench_now() > deadline)
      bench_stop(1, "the other end was not found in %d s", ENDPOINT_PATIENCE_S);
    bench_sleep_ms(5);
    must(dds_get_publication_matched_status(writer, &readers), "matched readers");
    must(dds_get_subscription_matched_status(reader, &writers), "matched writers");
  }
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

static void await_message(weir_bench_Stamped *message) {
  do
    await_data();
  while (!take(message));
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

static void ping(void) {
  weir_bench_Stamped message;
  while (endpoint_more()) {
    endpoint_pace();
    uint64_t start = bench_now();
    publish(endpoint.handled, (uint32_t)endpoint.size);
    await_message(&message);
    endpoint_record(bench_now() - start);
    endpoint_check(message.data._buffer, message.data._length);
    drop(&message);
    endpoint_handled();
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

static const struct bench_option options[] = {ENDPOINT_OPTIONS};

int main(int argc, char **argv) {
  bench_parse(argc, argv, "cyclone",
              "One end of a round trip through Cyclone DDS; bench/endpoints starts both.", options,
              sizeof options / sizeof *options, NULL);
  /* Not over what the user has set: who sets it wants to measure another configuration. */
  setenv("CYCLONEDDS_URI", LOOPBACK, 0);
  endpoint_start();
  open_ends();
  meet();
  if (endpoint_is_ping())
    ping();
  else
    echo();
  endpoint_print("cyclone");
  must(dds_delete(participant), "dds_delete");
  return 0;
}
