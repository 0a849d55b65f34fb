/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A ROS node's mixture. The workload is this project's own, made from what rclcpp and a DDS do for
 * each message: many more threads than cores (executors, the middleware's receivers and its event
 * threads), of which few run at once; short strings for names and frames, control blocks of shared
 * pointers, a buffer in CDR for the message, arrays that grow while it is read, and now and then a
 * parameter or a node of a map that stays. Each thread publishes to the next one, through a bounded
 * queue, and what was published is freed by who received it.
 *
 * An operation is one message: made, handed over, checked and freed. Its time is the whole run's
 * divided by all messages; cpu_ns_per_op is the processors' time, which other programs disturb
 * less.
 */
#include "bench.h"

enum { MOST_THREADS = 1024, DEPTH = 64, NAMES = 32, NAMES_A_MESSAGE = 4, MAP_NODES = 64 };
enum { CONTROL_SIZE = 48, MAP_NODE_SIZE = 88, MAP_TURN = 16, VECTOR_FIRST = 64 };

static uint64_t threads = 20, messages = 8000, least = 64, most = 65536, big = 1u << 20;
static uint64_t big_every = 256, seed = 1;

static const struct bench_option options[] = {
    {"threads", BENCH_COUNT, &threads, 1, MOST_THREADS, NULL, "threads in a ring"},
    {"messages", BENCH_COUNT, &messages, 1, (uint64_t)1 << 32, NULL, "messages each publishes"},
    {"min", BENCH_BYTES, &least, 16, 1u << 30, NULL, "smallest message"},
    {"max", BENCH_BYTES, &most, 16, 1u << 30, NULL, "largest, each doubling equally likely"},
    {"big", BENCH_BYTES, &big, 16, 1u << 30, NULL, "size of the rare big message"},
    {"big-every", BENCH_COUNT, &big_every, 0, 1u << 30, NULL, "one message in so many is; 0: none"},
    {"seed", BENCH_COUNT, &seed, 0, UINT64_MAX, NULL, "seed of the sizes and choices"},
};

/* What a shared pointer's control block with the message in it looks like: 64 bytes. */
struct message {
  struct bench_header header;
  struct bench_header *cdr;
  struct bench_header *frame;
  uint64_t sequence;
  uint64_t unused[3]; /* take marks its last byte */
};

/*
 * A thread, and the queue of what it receives. The lock guards the queue and the two reasons to
 * wake: the sender stands before a full queue, or this thread's own receiver has made room. A
 * thread whose receiver has no room empties its own queue and then sleeps; so a switch of threads
 * comes only once a queue is full, and in a ring of full queues nobody waits for himself.
 */
struct node {
  _Alignas(64) pthread_mutex_t lock;
  pthread_cond_t woken;
  struct message *queue[DEPTH];
  size_t queued;
  bool sender_waits, room_made, closed;

  _Alignas(64) pthread_t thread;
  struct node *previous, *next;
  uint64_t state;
  uint64_t received;
  struct bench_header *names[NAMES];
  struct bench_header *map[MAP_NODES];
};

static struct node nodes[MOST_THREADS];
static pthread_barrier_t ready, started;

/* ---- blocks ---- */

static struct bench_header *take_name(uint64_t *state) {
  return bench_take_marked(bench_size(state, 16, 200, false));
}

static struct bench_header *take_cdr(uint64_t *state) {
  size_t size = bench_size(state, (size_t)least, (size_t)most, true);
  if (big_every != 0 && bench_random(state) % big_every == 0)
    size = (size_t)big;
  struct bench_header *cdr = bench_take_marked(size);
  for (size_t at = BENCH_PAGE; at < size - 1; at += BENCH_PAGE)
    ((unsigned char *)cdr)[at] = (unsigned char)at;
  return cdr;
}

/* ---- what a message costs its publisher ---- */

static void renew(struct bench_header **slot, struct bench_header *block) {
  bench_free_marked(*slot);
  *slot = block;
}

static void renew_names(struct node *node) {
  for (int i = 0; i < NAMES_A_MESSAGE; i++)
    renew(&node->names[bench_random(&node->state) % NAMES], take_name(&node->state));
}

/* An array that is read element by element: realloc whenever it is full, up to 4 KiB. */
static void grow_vector(uint64_t *state) {
  size_t final = bench_size(state, 2 * VECTOR_FIRST, 4095, true);
  uint64_t *vector = bench_take(VECTOR_FIRST);
  vector[0] = final;
  for (size_t size = 2 * VECTOR_FIRST; size <= final; size *= 2) {
    vector[size / 16 - 1] = size;
    vector = realloc(vector, size);
    if (vector == NULL)
      bench_stop(1, "realloc(%zu) failed: %s", size, strerror(errno));
    if (vector[0] != final || vector[size / 16 - 1] != size)
      bench_stop(1, "realloc lost the contents of the block at %p", (void *)vector);
  }
  bench_keep(vector);
  free(vector);
}

static struct message *make_message(struct node *node, uint64_t sequence) {
  struct message *message = (struct message *)bench_take_marked(sizeof(struct message));
  message->cdr = take_cdr(&node->state);
  message->frame = take_name(&node->state);
  message->sequence = sequence;
  return message;
}

static void free_message(struct node *node, struct message *message) {
  if (message->sequence != node->received++)
    bench_stop(1, "message %" PRIu64 " came out of turn", message->sequence);
  bench_free_marked(message->frame);
  bench_free_marked(message->cdr);
  bench_free_marked(&message->header);
}

/* ---- the queue between a thread and the next ---- */

static bool push(struct node *receiver, struct message *message) {
  pthread_mutex_lock(&receiver->lock);
  bool room = receiver->queued < DEPTH;
  if (room) {
    receiver->queue[receiver->queued++] = message;
  } else {
    receiver->sender_waits = true;
    pthread_cond_signal(&receiver->woken);
  }
  pthread_mutex_unlock(&receiver->lock);
  return room;
}

static void tell_room(struct node *sender) {
  pthread_mutex_lock(&sender->lock);
  sender->room_made = true;
  pthread_cond_signal(&sender->woken);
  pthread_mutex_unlock(&sender->lock);
}

/* Take all that is queued and free it; true when nothing more will come. */
static bool receive(struct node *node) {
  struct message *batch[DEPTH];
  pthread_mutex_lock(&node->lock);
  size_t count = node->queued;
  memcpy(batch, node->queue, count * sizeof *batch);
  node->queued = 0;
  bool told = node->sender_waits, closed = node->closed;
  node->sender_waits = false;
  pthread_mutex_unlock(&node->lock);
  if (told)
    tell_room(node->previous);
  for (size_t i = 0; i < count; i++)
    free_message(node, batch[i]);
  return closed;
}

/* Sleep until the own queue has to be emptied, or what this thread waits for has come. */
static void sleep_until(struct node *node, const bool *reason) {
  pthread_mutex_lock(&node->lock);
  while (!*reason && !node->sender_waits)
    pthread_cond_wait(&node->woken, &node->lock);
  node->room_made = false;
  pthread_mutex_unlock(&node->lock);
}

static void publish(struct node *node, struct message *message) {
  while (!push(node->next, message)) {
    receive(node);
    sleep_until(node, &node->room_made);
  }
}

static void close_queue(struct node *receiver) {
  pthread_mutex_lock(&receiver->lock);
  receiver->closed = true;
  pthread_cond_signal(&receiver->woken);
  pthread_mutex_unlock(&receiver->lock);
}

/* ---- a thread ---- */

static void spin_once(struct node *node, uint64_t sequence) {
  struct bench_header *control = bench_take_marked(CONTROL_SIZE);
  renew_names(node);
  grow_vector(&node->state);
  if (sequence % MAP_TURN == 0)
    renew(&node->map[bench_random(&node->state) % MAP_NODES], bench_take_marked(MAP_NODE_SIZE));
  publish(node, make_message(node, sequence));
  receive(node);
  bench_free_marked(control);
}

static void *spin(void *argument) {
  struct node *node = argument;
  for (size_t i = 0; i < MAP_NODES; i++)
    node->map[i] = bench_take_marked(MAP_NODE_SIZE);
  pthread_barrier_wait(&ready);
  pthread_barrier_wait(&started);
  for (uint64_t i = 0; i < messages; i++)
    spin_once(node, i);
  close_queue(node->next);
  while (!receive(node))
    sleep_until(node, &node->closed);
  for (size_t i = 0; i < NAMES; i++)
    bench_free_marked(node->names[i]);
  for (size_t i = 0; i < MAP_NODES; i++)
    bench_free_marked(node->map[i]);
  return NULL;
}

static void start_nodes(void) {
  pthread_barrier_init(&ready, NULL, (unsigned)threads + 1);
  pthread_barrier_init(&started, NULL, (unsigned)threads + 1);
  for (size_t i = 0; i < threads; i++) {
    pthread_mutex_init(&nodes[i].lock, NULL);
    pthread_cond_init(&nodes[i].woken, NULL);
    nodes[i].next = &nodes[(i + 1) % threads];
    nodes[i].previous = &nodes[(i + threads - 1) % threads];
    nodes[i].state = bench_seed(seed + i);
  }
  for (size_t i = 0; i < threads; i++)
    bench_thread(&nodes[i].thread, spin, &nodes[i]);
  pthread_barrier_wait(&ready);
}

static void join_nodes(void) {
  for (size_t i = 0; i < threads; i++) {
    pthread_join(nodes[i].thread, NULL);
    if (nodes[i].received != messages)
      bench_stop(1, "a thread received %" PRIu64 " messages", nodes[i].received);
  }
}

static uint64_t cpu_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

int main(int argc, char **argv) {
  bench_parse(argc, argv, "rosmix", "Do what a node's threads do for each message.", options,
              sizeof options / sizeof *options, NULL);
  if (least > most)
    bench_stop(2, "--min must not exceed --max");
  start_nodes();
  uint64_t faults = bench_faults(RUSAGE_SELF), cpu_ns = cpu_now(), start = bench_now();
  pthread_barrier_wait(&started);
  join_nodes();
  uint64_t elapsed_ns = bench_now() - start;
  cpu_ns = cpu_now() - cpu_ns;
  faults = bench_faults(RUSAGE_SELF) - faults;
  double all = (double)threads * (double)messages;
  printf("{\"bench\":\"rosmix\",\"threads\":%" PRIu64 ",\"messages\":%" PRIu64 ",\"min\":%" PRIu64
         ",\"max\":%" PRIu64 ",\"big\":%" PRIu64 ",\"big_every\":%" PRIu64 ",\"seed\":%" PRIu64
         ",\"ns_per_op\":%.1f,\"cpu_ns_per_op\":%.1f,\"faults\":%" PRIu64
         ",\"faults_per_op\":%.3f,\"rss_peak_kib\":%" PRIu64 ",\"rss_final_kib\":%" PRIu64 "}\n",
         threads, messages, least, most, big, big_every, seed, (double)elapsed_ns / all,
         (double)cpu_ns / all, faults, (double)faults / all, bench_proc_kib(BENCH_STATUS, "VmHWM:"),
         bench_proc_kib(BENCH_STATUS, "VmRSS:"));
  return 0;
}
