/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A real program, run once: its CPU time, wall time, faults and peak memory. The figures are of the
 * command and of every process below it that was waited for; the peak is that of the largest one.
 * With -C the command is a server: a second command loads it and is not counted, as a robot's
 * parameter or map server is judged by its own time and not by that of its clients. What the
 * command writes to standard output is thrown away. The environment given with -E reaches the
 * command only, so neither this program nor the load runs under the allocator that is measured.
 */
#include "bench.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

static char *plain[4096], *measured[4096];
static size_t variables;
static char *load;

/*
 * Start a command that the kernel ends with this program, whatever ends it; posix_spawn cannot ask
 * for that. vfork, because copying this program's memory would count for the command, as its peak
 * does until exec: that is why the runner does not start the command itself, being far larger.
 */
static pid_t start(char **command, char **environment, int output) {
  pid_t child = vfork();
  if (child == 0) {
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && dup2(output, STDOUT_FILENO) >= 0)
      execvpe(command[0], command, environment);
    _exit(127);
  }
  if (child < 0)
    bench_stop(1, "cannot start %s: %s", command[0], strerror(errno));
  return child;
}

static int await(pid_t child, struct rusage *usage) {
  int status;
  while (wait4(child, &status, 0, usage) < 0)
    if (errno != EINTR)
      bench_stop(1, "cannot wait: %s", strerror(errno));
  return status;
}

static void check(const char *name, int status) {
  if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
    bench_stop(1, "%s cannot be run, or ended with status 127", name);
  if (WIFEXITED(status) && WEXITSTATUS(status) != 0)
    bench_stop(1, "%s ended with status %d", name, WEXITSTATUS(status));
  if (!WIFEXITED(status))
    bench_stop(1, "%s was ended by signal %d", name, WTERMSIG(status));
}

/* Nothing is left of the server when this returns, nor when the load fails and this stops. */
static void load_server(pid_t server, int output) {
  char shell[] = "sh", option[] = "-c";
  char *command[] = {shell, option, load, NULL};
  struct rusage usage;
  int status = await(start(command, plain, output), &usage);
  kill(server, status == 0 ? SIGTERM : SIGKILL);
  if (status != 0)
    await(server, &usage);
  check("the load", status);
}

/* -E and -C come first, as the common options know no text. Returns how many words they are. */
static int read_own_options(int argc, char **argv) {
  int at = 1;
  for (; at + 1 < argc && variables < 4095; at += 2) {
    if (strcmp(argv[at], "-E") == 0)
      measured[variables++] = argv[at + 1];
    else if (strcmp(argv[at], "-C") == 0)
      load = argv[at + 1];
    else
      break;
  }
  return at - 1;
}

int main(int argc, char **argv) {
  for (char **entry = environ; *entry != NULL && variables < 4000; entry++, variables++)
    measured[variables] = plain[variables] = *entry;
  int own = read_own_options(argc, argv);
  argv[own] = argv[0];
  int at = own + bench_parse(argc - own, argv + own, "program",
                             "Run a command once and report its CPU time and peak memory. These "
                             "come first:\n  -E NAME=VALUE  a variable of its environment; "
                             "repeatable\n  -C COMMAND     the command is a server, which the "
                             "shell command COMMAND loads; then it\n                 gets SIGTERM",
                             NULL, 0, "-- COMMAND...");
  if (at >= argc)
    bench_stop(2, "no command given (see --help)");
  int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (nowhere < 0)
    bench_stop(1, "/dev/null: %s", strerror(errno));
  struct rusage usage;
  uint64_t begin = bench_now();
  pid_t child = start(argv + at, measured, nowhere);
  if (load != NULL)
    load_server(child, nowhere);
  int status = await(child, &usage);
  uint64_t wall = bench_now() - begin;
  check(argv[at], status);
  printf("{\"bench\":\"program\",\"cpu_ns\":%" PRIu64 ",\"wall_ns\":%" PRIu64 ",\"faults\":%" PRIu64
         ",\"rss_peak_kib\":%" PRIu64 "}\n",
         bench_cpu_ns(&usage), wall, (uint64_t)usage.ru_minflt, (uint64_t)usage.ru_maxrss);
  return 0;
}
