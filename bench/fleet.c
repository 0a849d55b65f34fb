/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A fleet of processes around one router, as in zenoh's report on the memory of transmission queues
 * (eclipse-zenoh/zenoh#1749): publishers and subscribers, each a process of its own with an
 * allocator of its own, each linked to the router by a Unix socket. Both ends of each link have a
 * queue of 18 batches of 64 KiB in eight priorities, which are all there from the start, or made
 * when they are first needed and then kept, or made for each use and freed when sent. A little
 * traffic runs: publisher i sends messages of 8 bytes that the router forwards to a subscriber,
 * and every link carries signs of life. Each process has threads besides, as a runtime's, with a
 * few small blocks that come and go. While all that goes on, the sum over all processes of their
 * proportional set size (Pss) is read, in which what several processes share counts once.
 *
 * The process that was started only starts the others, reads and prints; it is not counted. With
 * --throughput it measures something else, see fleet_throughput.c.
 */
#include "fleet.h"

#include <signal.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

enum { MOST_THREADS = 64, SMALL_BLOCKS = 48, SMALL_LEAST = 24, SMALL_MOST = 2048 };
enum { TICK_MS = 100, SMALL_A_TICK = 8, EVENTS = 64, POLL_MS = 5 };

static uint64_t publishers = 100, subscribers = 100, mode = MODE_START, hz = 10, run_ms = 3000;
static uint64_t threads = 4, alive_ms = 500, limit_s = 60, measure_throughput;
static uint64_t rounds = 200, messages = 250000;

static const struct bench_option options[] = {
    {"mode", BENCH_WORD, &mode, 0, 0, "start|lazy|demand",
     "batches made at start, when first needed, or for each use (default start)"},
    {"publishers", BENCH_COUNT, &publishers, 1, MOST_LINKS / 2, NULL, "processes that publish"},
    {"subscribers", BENCH_COUNT, &subscribers, 1, MOST_LINKS / 2, NULL, "and that subscribe"},
    {"hz", BENCH_COUNT, &hz, 1, 1000, NULL, "messages a second of each publisher"},
    {"run-ms", BENCH_COUNT, &run_ms, 100, 3600000, NULL, "traffic before memory is read"},
    {"threads", BENCH_COUNT, &threads, 0, MOST_THREADS, NULL,
     "threads of each process besides those of its link"},
    {"alive-ms", BENCH_COUNT, &alive_ms, 10, 3600000, NULL, "time between signs of life"},
    {"limit-s", BENCH_COUNT, &limit_s, 1, 86400, NULL, "after which everything is ended"},
    {"throughput", BENCH_SWITCH, &measure_throughput, 0, 0, NULL,
     "messages a second through one link instead, batches kept and fresh by turns"},
    {"rounds", BENCH_COUNT, &rounds, 1, 100000, NULL, "of --throughput, of each kind"},
    {"messages", BENCH_COUNT, &messages, 1000, 1u << 30, NULL, "of --throughput, a round"},
};

/* In memory that all processes of the fleet share: what the first one wants and the others did. */
struct plan {
  uint64_t publishers, subscribers, mode, hz, threads, alive_ms;
  char address[32];
  _Atomic uint32_t listening, ready, stopping;
  struct seat {
    _Atomic uint64_t sent, received, made;
  } seats[1 + MOST_LINKS];
};

static struct plan *plan;
static struct seat *seat; /* this process's */

static bool stopping(void) {
  return atomic_load_explicit(&plan->stopping, memory_order_relaxed) != 0;
}

/* ---- what every process of the fleet has ---- */

static void *live_a_little(void *argument) {
  uint64_t state = bench_seed((uint64_t)getpid() * MOST_THREADS + (uint64_t)(uintptr_t)argument);
  void *blocks[SMALL_BLOCKS];
  for (unsigned i = 0; i < SMALL_BLOCKS; i++) {
    size_t size = bench_size(&state, SMALL_LEAST, SMALL_MOST, true);
    blocks[i] = bench_take(size);
    memset(blocks[i], 1, size);
  }
  while (!stopping()) {
    bench_sleep_ms(TICK_MS);
    for (unsigned i = 0; i < SMALL_A_TICK; i++) {
      unsigned at = (unsigned)(bench_random(&state) % SMALL_BLOCKS);
      size_t size = bench_size(&state, SMALL_LEAST, SMALL_MOST, true);
      free(blocks[at]);
      blocks[at] = bench_take(size);
      memset(blocks[at], 1, size);
    }
  }
  for (unsigned i = 0; i < SMALL_BLOCKS; i++)
    free(blocks[i]);
  return NULL;
}

static void start_runtime(pthread_t *ids) {
  for (uint64_t i = 0; i < plan->threads; i++)
    bench_thread(&ids[i], live_a_little, (void *)(uintptr_t)i);
}

static void join_runtime(const pthread_t *ids) {
  for (uint64_t i = 0; i < plan->threads; i++)
    pthread_join(ids[i], NULL);
}

static int open_socket(struct sockaddr_un *address, socklen_t *length) {
  int file = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (file < 0)
    bench_stop(1, "socket: %s", strerror(errno));
  memset(address, 0, sizeof *address);
  address->sun_family = AF_UNIX;
  /* A name that begins with a zero is in no folder, and goes with the last socket. */
  strcpy(address->sun_path + 1, plan->address);
  *length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(plan->address));
  return file;
}

/* ---- a node: it publishes or it subscribes ---- */

static struct queue node_queue;
static int node_file;
static bool node_publishes;

static void *node_send(void *argument) {
  (void)argument;
  bool parts = true;
  for (uint64_t alive = bench_now(), number = 0; !stopping();) {
    if (bench_now() >= alive) {
      queue_push(&node_queue, PRIORITY_CONTROL, KEY_ALIVE, number++);
      alive += plan->alive_ms * 1000000;
    }
    if (!queue_flush(&node_queue, parts, node_file))
      break;
    parts = queue_wait(&node_queue, alive);
  }
  return NULL;
}

static void *node_receive(void *argument) {
  (void)argument;
  uint8_t *bytes = bench_take(BATCH_BYTES);
  uint64_t expected = 0;
  for (int length; (length = read_batch(node_file, bytes)) >= 0;) {
    for (const uint8_t *at = bytes + BATCH_HEAD, *end = at + length; at < end;) {
      unsigned priority, key;
      uint64_t number;
      at = get_message(at, end, &priority, &key, &number);
      if (at == NULL)
        bench_stop(1, "a batch is not as it was sent");
      if (key == KEY_ALIVE)
        continue;
      /* Several publishers may share a subscriber; then their numbers are not one row. */
      if (node_publishes || (plan->publishers <= plan->subscribers && number != expected++))
        bench_stop(1, "message %" PRIu64 " came out of turn", number);
      atomic_fetch_add_explicit(&seat->received, 1, memory_order_relaxed);
    }
  }
  free(bytes);
  return NULL;
}

static int run_node(unsigned index) {
  struct sockaddr_un address;
  socklen_t length;
  node_file = open_socket(&address, &length);
  if (connect(node_file, (struct sockaddr *)&address, length) != 0)
    bench_stop(1, "connect: %s", strerror(errno));
  uint16_t who = (uint16_t)index;
  if (!write_all(node_file, (const uint8_t *)&who, sizeof who))
    bench_stop(1, "the router has gone");
  queue_init(&node_queue, plan->mode);
  pthread_t runtime[MOST_THREADS], sender, receiver;
  start_runtime(runtime);
  bench_thread(&sender, node_send, NULL);
  bench_thread(&receiver, node_receive, NULL);
  atomic_fetch_add(&plan->ready, 1);
  while (atomic_load(&plan->ready) <= plan->publishers + plan->subscribers && !stopping())
    bench_sleep_ms(TICK_MS / 10);
  uint64_t period = 1000000000 / plan->hz, next = bench_now() + index * period / MOST_LINKS;
  for (uint64_t number = 0; !stopping();) {
    uint64_t now = bench_now();
    if (now < next || !node_publishes) {
      bench_sleep_ms(node_publishes && next - now < TICK_MS * 1000000u ? (next - now) / 1000000 + 1
                                                                       : TICK_MS);
      continue;
    }
    queue_push(&node_queue, PRIORITY_DATA, index, number++);
    atomic_store_explicit(&seat->sent, number, memory_order_relaxed);
    next += period;
  }
  queue_close(&node_queue);
  pthread_join(sender, NULL);
  shutdown(node_file, SHUT_RDWR);
  pthread_join(receiver, NULL);
  join_runtime(runtime);
  atomic_store(&seat->made, node_queue.made);
  return 0;
}

/* ---- the router ---- */

struct router_link {
  int file;
  unsigned node; /* which seat is at the other end */
  bool waits;    /* is in the row of those with something to send */
  struct queue queue;
};

/* Links by node; and those with something to send, for the thread that sends. */
static struct router_link *router_links[1 + MOST_LINKS];
static struct {
  pthread_mutex_t lock;
  pthread_cond_t filled;
  struct router_link *links[MOST_LINKS];
  size_t count;
} to_send = {.lock = PTHREAD_MUTEX_INITIALIZER, .filled = PTHREAD_COND_INITIALIZER};

static void router_push(struct router_link *link, unsigned priority, unsigned key,
                        uint64_t number) {
  queue_push(&link->queue, priority, key, number);
  pthread_mutex_lock(&to_send.lock);
  bool wake = to_send.count == 0;
  if (!link->waits) {
    link->waits = true;
    to_send.links[to_send.count++] = link;
  }
  pthread_mutex_unlock(&to_send.lock);
  if (wake)
    pthread_cond_signal(&to_send.filled);
}

static void *router_send(void *argument) {
  (void)argument;
  struct router_link *links[MOST_LINKS];
  for (;;) {
    pthread_mutex_lock(&to_send.lock);
    while (to_send.count == 0 && !stopping())
      pthread_cond_wait(&to_send.filled, &to_send.lock);
    size_t count = to_send.count;
    for (size_t i = 0; i < count; i++) {
      links[i] = to_send.links[i];
      links[i]->waits = false;
    }
    to_send.count = 0;
    pthread_mutex_unlock(&to_send.lock);
    if (stopping())
      return NULL;
    bench_sleep_ms(BATCHING_NS / 1000000);
    for (size_t i = 0; i < count; i++) /* a node that has gone is noticed by the reader */
      (void)queue_flush(&links[i]->queue, true, links[i]->file);
  }
}

static void route(struct router_link *from, const uint8_t *bytes, int length) {
  for (const uint8_t *at = bytes + BATCH_HEAD, *end = at + length; at < end;) {
    unsigned priority, key;
    uint64_t number;
    at = get_message(at, end, &priority, &key, &number);
    if (at == NULL || (key != KEY_ALIVE && key != from->node))
      bench_stop(1, "a batch of node %u is not as it was sent", from->node);
    if (key == KEY_ALIVE)
      continue;
    unsigned to = 1 + (unsigned)(plan->publishers + (key - 1) % plan->subscribers);
    atomic_fetch_add_explicit(&seat->received, 1, memory_order_relaxed);
    router_push(router_links[to], priority, key, number);
  }
}

static void accept_one(int listener, int events) {
  struct router_link *link = bench_take(sizeof *link);
  uint16_t who = 0;
  link->file = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
  if (link->file < 0 || read(link->file, &who, sizeof who) != sizeof who || who < 1 ||
      who > plan->publishers + plan->subscribers || router_links[who] != NULL)
    bench_stop(1, "a node does not say who it is");
  link->node = who;
  link->waits = false;
  queue_init(&link->queue, plan->mode);
  router_links[who] = link;
  struct epoll_event event = {.events = EPOLLIN, .data.ptr = link};
  if (epoll_ctl(events, EPOLL_CTL_ADD, link->file, &event) != 0)
    bench_stop(1, "epoll: %s", strerror(errno));
}

static void forward(int events, uint64_t count, uint8_t *bytes) {
  struct epoll_event event[EVENTS];
  for (uint64_t alive = bench_now(), number = 0; !stopping();) {
    if (bench_now() >= alive) {
      for (uint64_t i = 1; i <= count; i++)
        router_push(router_links[i], PRIORITY_CONTROL, KEY_ALIVE, number);
      number++;
      alive += plan->alive_ms * 1000000;
    }
    int ready = epoll_wait(events, event, EVENTS, TICK_MS / 2);
    for (int i = 0; i < ready; i++) {
      struct router_link *link = event[i].data.ptr;
      int length = read_batch(link->file, bytes);
      if (length >= 0)
        route(link, bytes, length);
      else
        epoll_ctl(events, EPOLL_CTL_DEL, link->file, NULL);
    }
  }
}

static int listen_to_all(void) {
  struct sockaddr_un address;
  socklen_t length;
  int listener = open_socket(&address, &length);
  if (bind(listener, (struct sockaddr *)&address, length) != 0 || listen(listener, MOST_LINKS) != 0)
    bench_stop(1, "listen: %s", strerror(errno));
  atomic_store(&plan->listening, 1);
  return listener;
}

static int run_router(void) {
  uint64_t count = plan->publishers + plan->subscribers;
  int listener = listen_to_all();
  int events = epoll_create1(EPOLL_CLOEXEC);
  uint8_t *bytes = bench_take(BATCH_BYTES);
  pthread_t runtime[MOST_THREADS], sender;
  start_runtime(runtime);
  for (uint64_t i = 0; i < count; i++)
    accept_one(listener, events);
  bench_thread(&sender, router_send, NULL);
  atomic_fetch_add(&plan->ready, 1);
  forward(events, count, bytes);
  pthread_mutex_lock(&to_send.lock);
  pthread_mutex_unlock(&to_send.lock);
  pthread_cond_signal(&to_send.filled);
  pthread_join(sender, NULL);
  join_runtime(runtime);
  free(bytes);
  for (uint64_t i = 1; i <= count; i++)
    atomic_fetch_add(&seat->made, router_links[i]->queue.made);
  return 0;
}

/* ---- processes ---- */

pid_t start_process(const char *role, unsigned index, int file, uint64_t limit) {
  char number[16], passed[16];
  snprintf(number, sizeof number, "%u", index);
  snprintf(passed, sizeof passed, "%d", file);
  pid_t parent = getpid(), child = fork();
  if (child < 0)
    bench_stop(1, "fork: %s", strerror(errno));
  if (child > 0)
    return child;
  /* The alarm outlives exec, too. */
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  alarm((unsigned)limit);
  if (getppid() != parent || fcntl(file, F_SETFD, 0) != 0)
    _exit(1);
  execl("/proc/self/exe", bench_program, "--process", role, number, passed, (char *)NULL);
  _exit(127);
}

static void map_plan(int file) {
  plan = mmap(NULL, sizeof *plan, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (plan == MAP_FAILED)
    bench_stop(1, "mmap: %s", strerror(errno));
}

/* --process ROLE INDEX FILE, which only this program itself passes. */
static int run_process(char **words) {
  unsigned index = (unsigned)strtoul(words[1], NULL, 10);
  int file = (int)strtoul(words[2], NULL, 10);
  bench_program = "fleet";
  signal(SIGPIPE, SIG_IGN);
  if (strcmp(words[0], "receiver") == 0)
    return throughput_receiver(file);
  map_plan(file);
  close(file);
  if (index > plan->publishers + plan->subscribers)
    bench_stop(2, "there is no process %u", index);
  seat = &plan->seats[index];
  node_publishes = index <= plan->publishers;
  return index == 0 ? run_router() : run_node(index);
}

static pid_t children[1 + MOST_LINKS];
static size_t child_count;
static uint64_t deadline;

/* At every exit of the process that started the others, however it comes to it. */
static void end_all(void) {
  for (size_t i = 0; i < child_count; i++)
    if (children[i] > 0)
      kill(children[i], SIGKILL);
  for (size_t i = 0; i < child_count; i++)
    if (children[i] > 0)
      waitpid(children[i], NULL, 0);
}

/* Wait a moment; a child that has ended, or an end of the time, ends the run. */
static void wait_a_moment(const char *what) {
  bench_sleep_ms(POLL_MS);
  int status;
  pid_t ended = waitpid(-1, &status, WNOHANG);
  for (size_t i = 0; ended > 0 && i < child_count; i++) {
    if (children[i] == ended) {
      children[i] = 0;
      bench_stop(1, "process %zu ended early, with status 0x%x", i, (unsigned)status);
    }
  }
  if (bench_now() > deadline)
    bench_stop(1, "%s took more than %" PRIu64 " s", what, limit_s);
}

static void start_fleet(int file) {
  uint64_t count = publishers + subscribers;
  atexit(end_all);
  children[child_count++] = start_process("router", 0, file, limit_s + 1);
  while (atomic_load(&plan->listening) == 0)
    wait_a_moment("to start the router");
  for (unsigned i = 1; i <= count; i++)
    children[child_count++] = start_process("node", i, file, limit_s + 1);
  while (atomic_load(&plan->ready) <= count)
    wait_a_moment("to start the processes");
}

static void stop_fleet(void) {
  atomic_store(&plan->stopping, 1);
  for (size_t i = 0; i < child_count; i++) {
    int status = 0;
    pid_t ended;
    while ((ended = waitpid(children[i], &status, WNOHANG)) == 0 && bench_now() < deadline)
      bench_sleep_ms(POLL_MS);
    if (ended == 0)
      bench_stop(1, "process %zu does not end", i);
    children[i] = 0;
    if (status != 0)
      bench_stop(1, "process %zu ended with status 0x%x", i, (unsigned)status);
  }
}

static uint64_t memory_of(size_t child, const char *key) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/smaps_rollup", (int)children[child]);
  uint64_t kib = bench_proc_kib(path, key);
  if (kib == 0)
    bench_stop(1, "%s has no %s", path, key);
  return kib;
}

static void make_plan(int file) {
  if (ftruncate(file, sizeof *plan) != 0)
    bench_stop(1, "no memory to share: %s", strerror(errno));
  map_plan(file);
  plan->publishers = publishers;
  plan->subscribers = subscribers;
  plan->mode = mode;
  plan->hz = hz;
  plan->threads = threads;
  plan->alive_ms = alive_ms;
  snprintf(plan->address, sizeof plan->address, "weir-fleet-%d", (int)getpid());
}

static int run_fleet(void) {
  static const char *const words[] = {"start", "lazy", "demand"};
  static uint64_t pss[1 + MOST_LINKS];
  int file = (int)syscall(SYS_memfd_create, "fleet", 1u); /* 1: closed by exec */
  if (file < 0)
    bench_stop(1, "no memory to share: %s", strerror(errno));
  make_plan(file);
  start_fleet(file);
  for (uint64_t end = bench_now() + run_ms * 1000000; bench_now() < end;)
    wait_a_moment("the traffic");
  uint64_t total = 0, anonymous = 0, sent = 0, received = 0, made = 0;
  for (size_t i = 0; i < child_count; i++) {
    pss[i] = memory_of(i, "Pss:");
    total += pss[i];
    anonymous += memory_of(i, "Pss_Anon:");
  }
  stop_fleet();
  for (size_t i = 0; i < child_count; i++) {
    const struct seat *of = &plan->seats[i];
    sent += of->sent;
    received += i > publishers ? of->received : 0;
    made += of->made;
    if (of->received == 0 && (i == 0 || (i > publishers && publishers >= subscribers)))
      bench_stop(1, "process %zu received nothing", i);
  }
  bench_sort(pss + 1, child_count - 1);
  printf("{\"bench\":\"fleet\",\"mode\":\"%s\",\"publishers\":%" PRIu64 ",\"subscribers\":%" PRIu64
         ",\"threads\":%" PRIu64 ",\"run_ms\":%" PRIu64 ",\"pss_total_kib\":%" PRIu64
         ",\"pss_router_kib\":%" PRIu64 ",\"pss_node_kib\":%" PRIu64
         ",\"pss_anonymous_kib\":%" PRIu64 ",\"sent\":%" PRIu64 ",\"forwarded\":%" PRIu64
         ",\"received\":%" PRIu64 ",\"batches_made\":%" PRIu64 "}\n",
         words[mode], publishers, subscribers, threads, run_ms, total, pss[0],
         bench_percentile(pss + 1, child_count - 1, 50), anonymous, sent, plan->seats[0].received,
         received, made);
  return 0;
}

int main(int argc, char **argv) {
  if (argc == 5 && strcmp(argv[1], "--process") == 0)
    return run_process(argv + 2);
  bench_parse(argc, argv, "fleet",
              "Start a router, publishers and subscribers, each a process of its own, and sum up\n"
              "the memory of all; or measure what fresh batches cost.",
              options, sizeof options / sizeof *options, NULL);
  /* Nobody waits for what hangs all the same. */
  alarm((unsigned)limit_s + 2);
  deadline = bench_now() + limit_s * 1000000000u;
  return measure_throughput ? throughput(rounds, messages, limit_s) : run_fleet();
}
