/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What it costs to allocate every batch afresh: one process pushes messages of 8 bytes into a queue
 * of batches, a second thread of it sends them, another process receives and checks each message.
 * Rounds that keep batches and rounds that free each one take turns in the same process, so that a
 * disturbance of the machine hits both. The batch is taken by the thread that pushes and freed by
 * the one that sends.
 */
#include "fleet.h"

#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

static struct queue queue;
static int link_file;

/* Where a round is: DRAINING when all is pushed, IDLE when all is sent. */
enum { IDLE, RUNNING, DRAINING, ENDING };
static _Atomic uint32_t round_state;

static void *sender(void *argument) {
  (void)argument;
  for (bool parts = false;;) {
    uint32_t state = atomic_load(&round_state);
    if (state == ENDING)
      return NULL;
    if (!queue_flush(&queue, parts || state == DRAINING, link_file))
      bench_stop(1, "the receiver has gone");
    if (state == DRAINING) {
      queue_hurry(&queue, false);
      bench_post(&round_state, IDLE);
      while (atomic_load(&round_state) == IDLE)
        bench_futex(&round_state, FUTEX_WAIT_PRIVATE, IDLE);
    } else {
      parts = queue_wait(&queue, bench_now() + BATCHING_NS);
    }
  }
}

int throughput_receiver(int file) {
  uint8_t *bytes = bench_array(BATCH_BYTES);
  uint64_t expected = 0;
  for (int length; (length = read_batch(file, bytes)) >= 0;) {
    const uint8_t *at = bytes + BATCH_HEAD, *end = at + length;
    while (at < end) {
      unsigned priority, key;
      uint64_t number;
      at = get_message(at, end, &priority, &key, &number);
      if (at == NULL || number != expected++)
        bench_stop(1, "message %" PRIu64 " is not as it was sent", expected - 1);
    }
  }
  return expected > 0 ? 0 : 1;
}

struct measure {
  uint64_t wall, cpu, faults, made;
};

static struct measure run_round(uint64_t mode, uint64_t messages, uint64_t *number) {
  queue.mode = mode;
  struct rusage before, after;
  getrusage(RUSAGE_SELF, &before);
  uint64_t made = queue.made, start = bench_now();
  bench_post(&round_state, RUNNING);
  for (uint64_t i = 0; i < messages; i++)
    queue_push(&queue, PRIORITY_DATA, 1000, (*number)++);
  atomic_store(&round_state, DRAINING);
  queue_hurry(&queue, true);
  bench_wait(&round_state, IDLE);
  uint64_t wall = bench_now() - start;
  getrusage(RUSAGE_SELF, &after);
  return (struct measure){wall, bench_cpu_ns(&after) - bench_cpu_ns(&before),
                          (uint64_t)(after.ru_minflt - before.ru_minflt), queue.made - made};
}

/* Between rounds of different modes: those that were kept go, so that each begins as it is. */
static void clear_queue(void) {
  for (unsigned i = 0; i < MOST_BATCHES; i++) {
    struct batch *batch = &queue.stages[PRIORITY_DATA].batches[i];
    free(batch->bytes);
    batch->bytes = NULL;
  }
}

static uint64_t median(uint64_t *values, uint64_t count) {
  bench_sort(values, (size_t)count);
  return bench_percentile(values, (size_t)count, 50);
}

int throughput(uint64_t rounds, uint64_t messages, uint64_t limit_s) {
  int files[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, files) != 0)
    bench_stop(1, "socketpair: %s", strerror(errno));
  signal(SIGPIPE, SIG_IGN);
  pid_t receiver = start_process("receiver", 0, files[1], limit_s);
  close(files[1]);
  link_file = files[0];
  queue_init(&queue, MODE_LAZY);
  pthread_t thread;
  bench_thread(&thread, sender, NULL);

  enum { KEEP, FRESH, WAYS };
  static const uint64_t modes[WAYS] = {MODE_LAZY, MODE_DEMAND};
  uint64_t *wall[WAYS], *cpu[WAYS], faults[WAYS] = {0}, made[WAYS] = {0}, number = 0;
  uint64_t *ratio = bench_array((size_t)rounds * sizeof *ratio);
  uint64_t *cpu_ratio = bench_array((size_t)rounds * sizeof *cpu_ratio);
  for (unsigned way = 0; way < WAYS; way++) {
    wall[way] = bench_array((size_t)rounds * sizeof *wall[way]);
    cpu[way] = bench_array((size_t)rounds * sizeof *cpu[way]);
  }
  for (uint64_t i = 0; i < 2 + rounds; i++) { /* the first two are not counted */
    for (unsigned turn = 0; turn < WAYS; turn++) {
      unsigned way = (i + turn) % WAYS;
      /* A few batches first: what is kept is there before it is measured. */
      (void)run_round(modes[way], messages / 8 + 1, &number);
      struct measure got = run_round(modes[way], messages, &number);
      clear_queue();
      if (i < 2)
        continue;
      wall[way][i - 2] = got.wall;
      cpu[way][i - 2] = got.cpu;
      faults[way] += got.faults;
      made[way] += got.made;
    }
    if (i >= 2) {
      uint64_t at = i - 2;
      ratio[at] = wall[KEEP][at] * 1000000 / wall[FRESH][at];
      cpu_ratio[at] = cpu[FRESH][at] * 1000000 / cpu[KEEP][at];
    }
  }
  bench_post(&round_state, ENDING);
  pthread_join(thread, NULL);
  close(link_file);
  int status = 0;
  if (waitpid(receiver, &status, 0) != receiver || status != 0)
    bench_stop(1, "the receiver failed");

  double by = (double)median(ratio, rounds) / 1e6;
  double ns[WAYS], cpu_ns[WAYS];
  for (unsigned way = 0; way < WAYS; way++) {
    ns[way] = (double)median(wall[way], rounds) / (double)messages;
    cpu_ns[way] = (double)median(cpu[way], rounds) / (double)messages;
  }
  double batches = (double)(made[FRESH] > 0 ? made[FRESH] : 1);
  printf("{\"bench\":\"fleet\",\"mode\":\"throughput\",\"rounds\":%" PRIu64 ",\"messages\":%" PRIu64
         ",\"keep_per_s\":%.0f,\"fresh_per_s\":%.0f,\"ns_keep\":%.3f"
         ",\"ns_fresh\":%.3f,\"fresh_by_keep\":%.4f,\"fresh_cost_percent\":%.2f"
         ",\"keep_cpu_ns\":%.3f,\"fresh_cpu_ns\":%.3f,\"cpu_fresh_by_keep\":%.4f"
         ",\"batches_made\":%" PRIu64 ",\"keep_faults\":%" PRIu64 ",\"fresh_faults\":%" PRIu64
         ",\"fresh_faults_per_batch\":%.4f"
         ",\"rss_peak_kib\":%" PRIu64 "}\n",
         rounds, messages, 1e9 / ns[KEEP], 1e9 / ns[FRESH], ns[KEEP], ns[FRESH], by, (1 - by) * 100,
         cpu_ns[KEEP], cpu_ns[FRESH], (double)median(cpu_ratio, rounds) / 1e6, made[FRESH],
         faults[KEEP], faults[FRESH], (double)faults[FRESH] / batches,
         bench_proc_kib(BENCH_STATUS, "VmHWM:"));
  return 0;
}
