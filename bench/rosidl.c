/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages in C as rosidl generates them, in the hands of one node: one that it publishes, the copy
 * of it that it keeps, and one that it takes, whose sequence is made as long as needed through the
 * introspection type support, as rmw_cyclonedds does. So three large sequences live at once; all of
 * their memory comes and goes through rosidl's own functions.
 *
 * After warm-up the memory is there already, and each page fault and each memory system call of
 * the steady part is the allocator's doing.
 */
#include "bench.h"

#include <rosidl_typesupport_introspection_c/message_introspection.h>
#include <rosidl_typesupport_introspection_c/visibility_control.h>

#include "weir_bench/msg/detail/stamped__functions.h"
#include "weir_bench/msg/detail/stamped__rosidl_typesupport_introspection_c.h"
#include "weir_bench/msg/detail/stamped__struct.h"

typedef weir_bench__msg__Stamped message_type;
typedef rosidl_typesupport_introspection_c__MessageMembers members_type;
typedef rosidl_typesupport_introspection_c__MessageMember member_type;

static uint64_t size = 1u << 20, iterations = 200, warmup = 5;

static const struct bench_option options[] = {
    {"size", BENCH_BYTES, &size, 1, (uint64_t)1 << 32, NULL, "bytes in each message"},
    {"iterations", BENCH_COUNT, &iterations, 1, 100000000, NULL, "measured iterations"},
    {"warmup", BENCH_COUNT, &warmup, 0, 1000000, NULL, "iterations before measuring starts"},
};

static const members_type *members;
static const member_type *data_member;

static void find_members(void) {
  const rosidl_message_type_support_t *support = ROSIDL_TYPESUPPORT_INTERFACE__MESSAGE_SYMBOL_NAME(
      rosidl_typesupport_introspection_c, weir_bench, msg, Stamped)();
  members = support->data;
  for (uint32_t i = 0; i < members->member_count_; i++)
    if (strcmp(members->members_[i].name_, "data") == 0)
      data_member = &members->members_[i];
  if (members->size_of_ != sizeof(message_type) || data_member == NULL)
    bench_stop(1, "the type support tells of another message");
}

static void must(bool done, const char *what) {
  if (!done)
    bench_stop(1, "%s failed", what);
}

static uint8_t *resize(message_type *message) {
  void *sequence = (char *)message + data_member->offset_;
  must(data_member->resize_function(sequence, (size_t)size), "resizing");
  return message->data.data;
}

static void publish(message_type *message, uint64_t number) {
  struct timespec now;
  must(weir_bench__msg__Stamped__init(message), "init");
  clock_gettime(CLOCK_REALTIME, &now);
  message->sec = (int32_t)now.tv_sec;
  message->nanosec = (uint32_t)now.tv_nsec;
  message->number = number;
  memset(resize(message), (int)(number & 0xff), (size_t)size);
}

/* What is left of deserialising when the message came in the machine's own byte order. */
static void take(message_type *message, const message_type *sent) {
  members->init_function(message, ROSIDL_RUNTIME_C_MSG_INIT_ALL);
  message->sec = sent->sec;
  message->nanosec = sent->nanosec;
  message->number = sent->number;
  memcpy(resize(message), sent->data.data, sent->data.size);
}

/* One iteration; returns its nanoseconds. */
static uint64_t iterate(uint64_t number) {
  message_type published, kept, taken;
  uint64_t start = bench_now();
  publish(&published, number);
  must(weir_bench__msg__Stamped__init(&kept), "init");
  must(weir_bench__msg__Stamped__copy(&published, &kept), "copying");
  take(&taken, &published);
  must(weir_bench__msg__Stamped__are_equal(&kept, &taken) && taken.data.size == size,
       "comparing the copy with what was taken");
  weir_bench__msg__Stamped__fini(&published);
  weir_bench__msg__Stamped__fini(&kept);
  members->fini_function(&taken);
  return bench_now() - start;
}

static uint64_t system_ns(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return (uint64_t)usage.ru_stime.tv_sec * 1000000000u + (uint64_t)usage.ru_stime.tv_usec * 1000u;
}

int main(int argc, char **argv) {
  bench_parse(argc, argv, "rosidl",
              "Make, copy, compare and drop messages in C that rosidl generated.", options,
              sizeof options / sizeof *options, NULL);
  find_members();
  uint64_t *times = bench_array((size_t)iterations * sizeof *times);
  uint64_t first_faults[2] = {0, 0};
  bench_mark(0);
  (void)system_ns();

  for (uint64_t i = 0; i < warmup; i++) {
    uint64_t before = bench_faults(RUSAGE_SELF);
    iterate(i);
    if (i < 2)
      first_faults[i] = bench_faults(RUSAGE_SELF) - before;
  }
  bench_mark(BENCH_MARK_BEGIN);
  uint64_t system = system_ns();
  uint64_t faults = bench_faults(RUSAGE_SELF);
  for (uint64_t i = 0; i < iterations; i++)
    times[i] = iterate(warmup + i);
  faults = bench_faults(RUSAGE_SELF) - faults;
  system = system_ns() - system;
  bench_mark(BENCH_MARK_END);

  size_t count = (size_t)iterations;
  uint64_t peak = bench_proc_kib(BENCH_STATUS, "VmHWM:");
  bench_sort(times, count);
  printf("{\"bench\":\"rosidl\",\"size\":%" PRIu64 ",\"iterations\":%" PRIu64 ",\"warmup\":%" PRIu64
         ",\"first_faults\":[%" PRIu64 ",%" PRIu64 "],\"faults\":%" PRIu64
         ",\"faults_per_iteration\":%.4f,\"system_ns_per_iteration\":%" PRIu64
         ",\"ns_median\":%" PRIu64 ",\"ns_p99\":%" PRIu64 ",\"ns_max\":%" PRIu64
         ",\"rss_peak_kib\":%" PRIu64 "}\n",
         size, iterations, warmup, first_faults[0], first_faults[1], faults,
         (double)faults / (double)iterations, system / iterations,
         bench_percentile(times, count, 50), bench_percentile(times, count, 99), times[count - 1],
         peak);
  return 0;
}
