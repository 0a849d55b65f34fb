/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a command and writes, for each process that it and its descendants make, one JSON line with
 * page faults, peak RSS, wall time and exit status; with --calls also how often the process called
 * brk, mmap, munmap, madvise, mprotect and mremap.
 *
 * It follows the processes with ptrace, but lets them stop only for events: fork, exec, exit and,
 * with --calls, the six calls, which a seccomp filter picks out in the kernel. Everything else runs
 * at full speed. The figures are read at the exit event, when a process is done but its memory and
 * counters still stand. Nothing is preloaded, so every program can be watched, a static one too.
 */
#include "bench.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/time.h>
#include <sys/wait.h>

static uint64_t calls, seconds;
static const struct bench_option options[] = {
    {"calls", BENCH_SWITCH, &calls, 0, 0, NULL, "count memory system calls"},
    {"seconds", BENCH_COUNT, &seconds, 0, 1000000, NULL,
     "then end the command with SIGINT, as Ctrl-C does; 0 lets it run"},
};

enum { KINDS = 6, COMMAND = 160, MOST_TASKS = 65536, GRACE_S = 5 };
static const char *const kind_names[KINDS] = {"brk",     "mmap",     "munmap",
                                              "madvise", "mprotect", "mremap"};

struct process {
  pid_t pid, parent;
  char command[COMMAND];
  uint64_t start_ns, end_ns;
  uint64_t minor, major, peak_kib;
  uint64_t calls[KINDS];
  unsigned tasks; /* threads still there */
  unsigned threads;
  struct process *next;
};

/* A table from thread id to process: open addressing, with a mark where an entry was removed. */
struct task {
  pid_t tid; /* 0: never used, -1: removed */
  struct process *process;
};

static struct task *table;
static size_t table_used;
static struct process *free_processes;
static FILE *report;
static _Atomic int requests; /* signals and timer ticks that ask for an end */
static int pressure;         /* how firmly the end was asked for so far */

static size_t slot_of(pid_t tid) {
  return ((uint32_t)tid * 2654435761u) % MOST_TASKS;
}

static struct task *find_task(pid_t tid) {
  size_t i = slot_of(tid);
  for (size_t n = 0; n < MOST_TASKS && table[i].tid != 0; n++, i = (i + 1) % MOST_TASKS)
    if (table[i].tid == tid)
      return &table[i];
  return NULL;
}

static void add_task(pid_t tid, struct process *process) {
  size_t i = slot_of(tid);
  while (table[i].tid > 0)
    i = (i + 1) % MOST_TASKS;
  if (++table_used >= MOST_TASKS - 1)
    bench_stop(1, "more than %d threads at once", MOST_TASKS);
  table[i] = (struct task){tid, process};
  process->tasks++;
  process->threads++;
}

static void remove_task(struct task *task) {
  task->process->tasks--;
  bool last_of_run = table[(size_t)(task - table + 1) % MOST_TASKS].tid == 0;
  task->tid = last_of_run ? 0 : -1;
  table_used--;
}

static size_t read_proc(pid_t tid, const char *name, char *text, size_t size) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/%s", tid, name);
  int file = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t length = file >= 0 ? read(file, text, size - 1) : -1;
  if (file >= 0)
    close(file);
  text[length > 0 ? length : 0] = '\0';
  return length > 0 ? (size_t)length : 0;
}

/* The command as a short label: base names of the program and of its first arguments, so that
   "python3 talker" can be told from "python3 listener". Options and quotes are left out. */
static void read_command(struct process *process) {
  char text[1024];
  size_t length = read_proc(process->pid, "cmdline", text, sizeof text);
  if (length == 0)
    return;
  size_t out = 0, words = 0;
  for (size_t at = 0; at < length && words < 3; at += strlen(text + at) + 1) {
    const char *word = text + at;
    if (words > 0 && (*word == '-' || *word == '\0'))
      continue;
    const char *slash = strchr(word, ' ') == NULL ? strrchr(word, '/') : NULL;
    if (slash != NULL && slash[1] != '\0')
      word = slash + 1;
    if (words++ > 0 && out + 1 < COMMAND)
      process->command[out++] = ' ';
    for (size_t taken = 0; *word != '\0' && out + 1 < COMMAND && taken < 40; word++, taken++)
      process->command[out++] = *word < ' ' || *word == '"' || *word == '\\' ? '_' : *word;
  }
  process->command[out] = '\0';
}

/*
 * The counters as they stand. `tid` is a thread at its exit event: it still has the memory map,
 * which the leader may have left already. Faults are read for the whole process, which includes
 * threads that are gone.
 */
static void read_counters(struct process *process, pid_t tid) {
  char text[4096];
  if (read_proc(process->pid, "stat", text, sizeof text) > 0) {
    /* The name in brackets may hold anything, so fields are counted from the last bracket. */
    const char *at = strrchr(text, ')');
    unsigned long minor, major;
    if (at != NULL &&
        sscanf(at + 1, " %*c %*d %*d %*d %*d %*d %*u %lu %*u %lu", &minor, &major) == 2) {
      process->minor = minor;
      process->major = major;
    }
  }
  char name[64];
  snprintf(name, sizeof name, "task/%d/status", tid);
  if (read_proc(process->pid, name, text, sizeof text) > 0) {
    const char *peak = strstr(text, "VmHWM:");
    if (peak != NULL)
      process->peak_kib = strtoull(peak + 6, NULL, 10);
  }
  process->end_ns = bench_now();
}

static struct process *new_process(pid_t pid, struct process *parent) {
  struct process *process = free_processes;
  if (process != NULL)
    free_processes = process->next;
  else
    process = bench_take(sizeof *process);
  *process = (struct process){.pid = pid, .start_ns = bench_now()};
  if (parent != NULL) {
    process->parent = parent->pid;
    memcpy(process->command, parent->command, sizeof process->command);
  }
  return process;
}

static void write_report(struct process *process, int status) {
  fprintf(report, "{\"pid\":%d,\"parent\":%d,\"command\":\"%s\",\"threads\":%u", process->pid,
          process->parent, process->command, process->threads);
  fprintf(report,
          ",\"minor_faults\":%" PRIu64 ",\"major_faults\":%" PRIu64 ",\"rss_peak_kib\":%" PRIu64
          ",\"start_ns\":%" PRIu64 ",\"wall_ns\":%" PRIu64,
          process->minor, process->major, process->peak_kib, process->start_ns,
          (process->end_ns != 0 ? process->end_ns : bench_now()) - process->start_ns);
  if (WIFSIGNALED(status))
    fprintf(report, ",\"signal\":%d", WTERMSIG(status));
  else
    fprintf(report, ",\"exit\":%d", WEXITSTATUS(status));
  if (calls) {
    fprintf(report, ",\"calls\":{");
    for (int kind = 0; kind < KINDS; kind++)
      fprintf(report, "%s\"%s\":%" PRIu64, kind > 0 ? "," : "", kind_names[kind],
              process->calls[kind]);
    fprintf(report, "}");
  }
  fprintf(report, "}\n");
  process->next = free_processes;
  free_processes = process;
}

/* ---- the filter ---- */

/* Six comparisons; the event carries the index of the one that matched. */
static bool install_filter(void) {
  static const long numbers[KINDS] = {SYS_brk,     SYS_mmap,     SYS_munmap,
                                      SYS_madvise, SYS_mprotect, SYS_mremap};
  struct sock_filter code[2 * KINDS + 2];
  size_t length = 0;
  code[length++] =
      (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
  for (unsigned kind = 0; kind < KINDS; kind++) {
    code[length++] =
        (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)numbers[kind], 0, 1);
    code[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE | kind);
  }
  code[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  struct sock_fprog program = {.len = (unsigned short)length, .filter = code};
  /* Root needs no promise about privileges, and without it setuid programs go on working. */
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0)
    return true;
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/* ---- following ---- */

static void resume(pid_t tid, int request, int signal_number) {
  ptrace((enum __ptrace_request)request, tid, NULL, (void *)(intptr_t)signal_number);
}

/* Is tid a thread of the process `pid`? */
static bool is_thread_of(pid_t tid, pid_t pid) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/task/%d", pid, tid);
  return access(path, F_OK) == 0;
}

/* The maker's event and the new task's first stop come in either order; the first one registers. */
static void meet_task(pid_t tid, struct process *maker) {
  if (find_task(tid) != NULL)
    return;
  if (maker != NULL) {
    add_task(tid, is_thread_of(tid, maker->pid) ? maker : new_process(tid, maker));
    return;
  }
  char text[4096];
  read_proc(tid, "status", text, sizeof text);
  const char *group = strstr(text, "\nTgid:");
  pid_t leader = group != NULL ? (pid_t)strtol(group + 6, NULL, 10) : tid;
  const char *parent = group != NULL ? strstr(group, "\nPPid:") : NULL;
  struct task *known = find_task(leader);
  if (known == NULL && parent != NULL)
    known = find_task((pid_t)strtol(parent + 6, NULL, 10));
  struct process *near = known != NULL ? known->process : NULL;
  add_task(tid, near != NULL && near->pid == leader ? near : new_process(leader, near));
}

/* After an exec only one thread is left, and it bears the leader's id whoever called exec. */
static void follow_exec(struct process *process, pid_t leader) {
  for (size_t i = 0; i < MOST_TASKS && process->tasks > 1; i++)
    if (table[i].tid > 0 && table[i].process == process && table[i].tid != leader)
      remove_task(&table[i]);
  read_command(process);
}

static void handle_event(pid_t tid, struct process *process, int event) {
  unsigned long message = 0;
  ptrace(PTRACE_GETEVENTMSG, tid, NULL, &message);
  switch (event) {
  case PTRACE_EVENT_FORK:
  case PTRACE_EVENT_VFORK:
  case PTRACE_EVENT_CLONE:
    meet_task((pid_t)message, process);
    break;
  case PTRACE_EVENT_EXEC:
    follow_exec(process, tid);
    break;
  case PTRACE_EVENT_EXIT:
    read_counters(process, tid);
    break;
  case PTRACE_EVENT_SECCOMP:
    if (message < KINDS)
      process->calls[message]++;
    break;
  default:
    break;
  }
}

static void handle_stop(pid_t tid, int status) {
  int event = status >> 16;
  int signal_number = WSTOPSIG(status);
  if (find_task(tid) == NULL)
    meet_task(tid, NULL);
  struct process *process = find_task(tid)->process;
  if (event == 0) {
    resume(tid, PTRACE_CONT, signal_number);
    return;
  }
  handle_event(tid, process, event);
  /* A stop by job control lasts until SIGCONT; anything else goes on at once. */
  bool stopped =
      event == PTRACE_EVENT_STOP && (signal_number == SIGSTOP || signal_number == SIGTSTP ||
                                     signal_number == SIGTTIN || signal_number == SIGTTOU);
  resume(tid, stopped ? PTRACE_LISTEN : PTRACE_CONT, 0);
}

static void handle_end(pid_t tid, int status) {
  struct task *task = find_task(tid);
  if (task == NULL)
    return;
  struct process *process = task->process;
  remove_task(task);
  if (process->tasks == 0)
    write_report(process, status);
}

/*
 * End the command step by step: SIGINT to its process group as a terminal would, then SIGTERM and
 * at last SIGKILL to all that is left, wherever it has put itself.
 */
static void press(pid_t group) {
  if (pressure == 0) {
    kill(-group, SIGINT);
  } else {
    for (size_t i = 0; i < MOST_TASKS; i++)
      if (table[i].tid > 0 && table[i].tid == table[i].process->pid)
        kill(table[i].tid, pressure == 1 ? SIGTERM : SIGKILL);
  }
  pressure++;
}

/* The timer goes on firing, so a signal that arrives just before waitpid sleeps is not lost. */
static void set_timer(uint64_t first_s) {
  struct itimerval timer = {.it_value = {.tv_sec = (time_t)first_s},
                            .it_interval = {.tv_sec = GRACE_S}};
  setitimer(ITIMER_REAL, &timer, NULL);
}

static int follow(pid_t child) {
  int result = 1, seen = 0;
  for (;;) {
    for (; seen < atomic_load(&requests); seen++)
      press(child);
    int status;
    pid_t tid = waitpid(-1, &status, __WALL);
    if (tid < 0 && errno == EINTR)
      continue;
    if (tid < 0)
      return result;
    if (WIFSTOPPED(status)) {
      handle_stop(tid, status);
      continue;
    }
    handle_end(tid, status);
    if (tid != child)
      continue;
    result = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    /* A daemon that stays behind would serve the next run too; it has a moment to leave. */
    if (pressure == 0)
      pressure = 1;
    set_timer(GRACE_S);
  }
}

/* ---- starting ---- */

static void on_request(int unused) {
  (void)unused;
  atomic_fetch_add(&requests, 1);
}

/* Without SA_RESTART, so that waitpid returns and the request is passed on at once. */
static void catch_signals(void) {
  struct sigaction action = {.sa_handler = on_request};
  sigaction(SIGINT, &action, NULL);
  sigaction(SIGTERM, &action, NULL);
  sigaction(SIGALRM, &action, NULL);
}

/* The child: a process group of its own, which takes the signals; it waits until it is followed. */
__attribute__((noreturn)) static void become(char **command, int gate, int complaint) {
  setpgid(0, 0);
  /* Whoever runs this in the background may ignore SIGINT; the command must be able to get it. */
  signal(SIGINT, SIG_DFL);
  char byte;
  if (read(gate, &byte, 1) != 1)
    _exit(126);
  int error = 0;
  if (calls && !install_filter()) {
    error = -errno;
  } else {
    execvp(command[0], command);
    error = errno;
  }
  if (write(complaint, &error, sizeof error) < 0)
    _exit(126);
  _exit(127);
}

static pid_t start(char **command, int *complaint) {
  int gate[2], complaints[2];
  if (pipe2(gate, O_CLOEXEC) != 0 || pipe2(complaints, O_CLOEXEC) != 0)
    bench_stop(1, "no pipe: %s", strerror(errno));
  pid_t child = fork();
  if (child < 0)
    bench_stop(1, "cannot fork: %s", strerror(errno));
  if (child == 0)
    become(command, gate[0], complaints[1]);
  setpgid(child, child);
  close(gate[0]);
  close(complaints[1]);
  long wanted = PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE |
                PTRACE_O_TRACEEXEC | PTRACE_O_TRACEEXIT | PTRACE_O_EXITKILL |
                (calls ? PTRACE_O_TRACESECCOMP : 0);
  if (ptrace(PTRACE_SEIZE, child, NULL, (void *)wanted) != 0) {
    int error = errno;
    kill(child, SIGKILL);
    bench_stop(125, "not permitted to follow processes (ptrace): %s", strerror(error));
  }
  add_task(child, new_process(child, NULL));
  if (write(gate[1], "", 1) != 1)
    bench_stop(1, "cannot start the command");
  close(gate[1]);
  *complaint = complaints[0];
  return child;
}

int main(int argc, char **argv) {
  /* -o FILE and -E NAME=VALUE come first; the common options know no value that is text. */
  const char *output = NULL;
  static char *added[256];
  size_t added_count = 0;
  int first = 1;
  for (; first + 1 < argc; first += 2) {
    if (strcmp(argv[first], "-o") == 0)
      output = argv[first + 1];
    else if (strcmp(argv[first], "-E") == 0 && added_count < 256)
      added[added_count++] = argv[first + 1];
    else
      break;
  }
  int at = first - 1 +
           bench_parse(argc - first + 1, argv + first - 1, "procwatch",
                       "Run a command and write one JSON line for each of its processes. "
                       "First of all may stand\n-o FILE (where to write; stderr if not "
                       "given) and -E NAME=VALUE (the command's environment).",
                       options, sizeof options / sizeof *options, "-- COMMAND...");
  if (at >= argc)
    bench_stop(2, "no command given (see --help)");
  report = output != NULL ? fopen(output, "we") : stderr;
  if (report == NULL)
    bench_stop(1, "cannot write %s: %s", output, strerror(errno));
  for (size_t i = 0; i < added_count; i++)
    if (strchr(added[i], '=') == NULL || putenv(added[i]) != 0)
      bench_stop(2, "-E: '%s' is not NAME=VALUE", added[i]);
  table = bench_array(MOST_TASKS * sizeof *table);
  catch_signals();
  int complaint;
  pid_t child = start(argv + at, &complaint);
  if (seconds > 0)
    set_timer(seconds);
  int result = follow(child);
  int error = 0;
  if (read(complaint, &error, sizeof error) == (ssize_t)sizeof error)
    bench_stop(error < 0 ? 125 : 127, "%s: %s", error < 0 ? "no seccomp filter" : argv[at],
               strerror(error < 0 ? -error : error));
  if (fflush(report) != 0)
    bench_stop(1, "cannot write the report: %s", strerror(errno));
  return result;
}
