/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an allocator adds to the start of every process: run a short command many times and report
 * its CPU time, wall time and faults a run. The environment given with -E reaches the command only,
 * so this program itself never runs under the allocator that is measured.
 */
#include "bench.h"

#include <spawn.h>
#include <sys/wait.h>

static uint64_t runs = 200;

static const struct bench_option options[] = {
    {"runs", BENCH_COUNT, &runs, 1, 1000000, NULL, "how often to run the command"},
};

/* One run; a command that cannot start or does not return 0 ends everything. */
static void run(char **command, char **environment, struct rusage *usage) {
  pid_t child;
  int error = posix_spawnp(&child, command[0], NULL, NULL, command, environment);
  if (error != 0)
    bench_stop(1, "cannot run %s: %s", command[0], strerror(error));
  int status;
  while (wait4(child, &status, 0, usage) < 0)
    if (errno != EINTR)
      bench_stop(1, "cannot wait for %s: %s", command[0], strerror(errno));
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    bench_stop(1, "%s failed (wait status 0x%x)", command[0], (unsigned)status);
}

int main(int argc, char **argv) {
  /* -E NAME=VALUE pairs come first; the common options know no value that repeats. */
  static char *environment[4096];
  size_t count = 0;
  for (char **entry = environ; *entry != NULL && count < 4000; entry++)
    environment[count++] = *entry;
  int first = 1;
  for (; first + 1 < argc && strcmp(argv[first], "-E") == 0 && count < 4095; first += 2)
    environment[count++] = argv[first + 1];
  argv[first - 1] = argv[0];
  int at = first - 1 +
           bench_parse(argc - first + 1, argv + first - 1, "startup",
                       "Run a command many times and report its cost a run. Options of "
                       "the form -E NAME=VALUE\n(first, repeatable) set its environment.",
                       options, sizeof options / sizeof *options, "-- COMMAND...");
  if (at >= argc)
    bench_stop(2, "no command given (see --help)");
  uint64_t *cpu = bench_array((size_t)runs * sizeof *cpu);
  uint64_t *wall = bench_array((size_t)runs * sizeof *wall);
  uint64_t faults = 0, total_cpu = 0, peak = 0;
  struct rusage usage;
  run(argv + at, environment, &usage);
  for (uint64_t i = 0; i < runs; i++) {
    uint64_t start = bench_now();
    run(argv + at, environment, &usage);
    wall[i] = bench_now() - start;
    cpu[i] = bench_cpu_ns(&usage);
    total_cpu += cpu[i];
    faults += (uint64_t)usage.ru_minflt;
    if ((uint64_t)usage.ru_maxrss > peak)
      peak = (uint64_t)usage.ru_maxrss;
  }
  bench_sort(cpu, (size_t)runs);
  bench_sort(wall, (size_t)runs);
  printf("{\"bench\":\"startup\",\"runs\":%" PRIu64 ",\"cpu_ns_median\":%" PRIu64
         ",\"cpu_ns_mean\":%" PRIu64 ",\"wall_ns_median\":%" PRIu64
         ",\"faults_per_run\":%.1f,\"rss_peak_kib\":%" PRIu64 "}\n",
         runs, bench_percentile(cpu, (size_t)runs, 50), total_cpu / runs,
         bench_percentile(wall, (size_t)runs, 50), (double)faults / (double)runs, peak);
  return 0;
}
