/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A whole graph of nodes in one process. The graph is read from a topology file; each node, or each
 * group of nodes with the same executor_id, has a thread that fires its timers and takes what
 * its subscriptions received, as an executor of rclcpp does.
 *
 * What is modelled is how an rmw passes a message inside one process, serialised:
 *   publish  the message is taken from malloc (a sequence in a block of its own) and filled; here
 *            its latency begins. A buffer is taken, the message written into it in CDR, and each
 *            subscription's queue gets a small block with a reference to it. Then the publisher
 *            frees the message. A full queue loses its oldest entry.
 *   take     the buffer is copied into one that the subscription takes, and the reference dropped,
 *            the last one with the buffer. From the copy a message is made, of fresh memory as
 *            before, and the copy is freed; here the latency ends. The callback reads the message,
 *            every byte checked, and it is freed.
 * Buffers come from malloc or from a pool of weir's (weir_pool_*), as the serialisation buffers of
 * rmw_zenoh do; here the copies of the take too. The pool is looked up when the program runs, so
 * that it is the one of the weir that is preloaded, and the process has one weir and not two. Under
 * another allocator it is libweir's, and without the pool there is no weir in the process at all.
 */
#include "graph.h"

#include <dlfcn.h>
#include <weir/pool.h>

enum { STACK_USED = 64 << 10, RUN_AHEAD = 64 };

static uint64_t run_ms = 10000, warmup_ms = 2000, depth = 10, buffers = BUFFERS_MALLOC;
static uint64_t pool_bytes = 8u << 20, rehearse = 1, table;
static uint64_t topology_file, focus_name; /* addresses of texts */
static struct bench_texts settings;

static const struct bench_option options[] = {
    {"topology", BENCH_TEXT, &topology_file, 0, 0, "FILE", "the graph (needed)"},
    {"set", BENCH_TEXTS, &settings.count, 0, 0, "TOPIC=BYTES", "size of a topic, for vectors"},
    {"focus", BENCH_TEXT, &focus_name, 0, 0, "TOPIC", "topic to report (the largest)"},
    {"run-ms", BENCH_COUNT, &run_ms, 1, 86400000, NULL, "length of the steady part"},
    {"warmup-ms", BENCH_COUNT, &warmup_ms, 0, 86400000, NULL, "and of what comes before"},
    {"rehearse", BENCH_COUNT, &rehearse, 0, 1000, NULL,
     "times that all queues are filled before the warm-up"},
    {"depth", BENCH_COUNT, &depth, 1, MOST_DEPTH, NULL, "messages a subscription's queue holds"},
    {"buffers", BENCH_WORD, &buffers, 0, 0, "malloc|pool|turns",
     "where buffers are from; a topic's messages by turns (default malloc)"},
    {"pool-bytes", BENCH_BYTES, &pool_bytes, 0, UINT64_MAX >> 1, NULL, "what the pool may keep"},
    {"table", BENCH_SWITCH, &table, 0, 0, NULL, "print a table for people, not JSON"},
};

/* ---- what passes between nodes ---- */

/* The header of ros2-performance's messages. */
struct header {
  uint64_t stamp; /* of CLOCK_MONOTONIC, in the eight bytes of a ROS time */
  uint32_t number;
  float frequency;
  uint32_t size;
};

struct message {
  struct header header;
  uint8_t *data; /* a block of its own, or inside */
  uint8_t inside[];
};

/* A serialised message, which all queues share. */
struct sample {
  _Atomic uint32_t references;
  unsigned kind; /* BUFFERS_MALLOC or BUFFERS_POOL */
  size_t size;
  uint8_t *buffer;
};

enum { CDR_HEAD = 4 + 20, CDR_LENGTH = 4 }; /* encapsulation and header; a sequence's length */

/* ---- buffers, and the pool if there is one ---- */

static weir_pool_t *pool;
static void *(*pool_acquire)(weir_pool_t *, size_t);
static void (*pool_release)(weir_pool_t *, void *);

/* What is called `name` in this process; where no weir is preloaded, in the libweir beside this
 * program, whose pool then serves the buffers while all else is the other allocator's. */
static void *pool_function(const char *name) {
  static void *library = RTLD_DEFAULT;
  void *function = dlsym(library, name);
  if (function == NULL && library == RTLD_DEFAULT) {
    static const char beside[] = "../.libs/libweir.so";
    char path[4096];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - sizeof beside);
    while (length > 0 && path[length - 1] != '/')
      length--;
    memcpy(path + (length > 0 ? length : 0), beside, sizeof beside);
    library = dlopen(path, RTLD_NOW);
    if (library == NULL)
      bench_stop(1, "there is no pool in this process, and no libweir: %s", dlerror());
    function = dlsym(library, name);
  }
  if (function == NULL)
    bench_stop(1, "there is no %s", name);
  return function;
}

static void open_pool(void) {
  weir_pool_t *(*create)(weir_arena_t *, size_t);
  *(void **)&create = pool_function("weir_pool_create");
  *(void **)&pool_acquire = pool_function("weir_pool_acquire");
  *(void **)&pool_release = pool_function("weir_pool_release");
  pool = create(NULL, (size_t)pool_bytes);
  if (pool == NULL)
    bench_stop(1, "no memory for a pool");
}

static void close_pool(void) {
  void (*destroy)(weir_pool_t *);
  *(void **)&destroy = pool_function("weir_pool_destroy");
  destroy(pool);
}

static uint8_t *take_buffer(unsigned kind, size_t size) {
  uint8_t *buffer = kind == BUFFERS_POOL ? pool_acquire(pool, size) : bench_take(size);
  if (buffer == NULL)
    bench_stop(1, "no memory for a buffer of %zu bytes", size);
  return buffer;
}

static void give_buffer(unsigned kind, uint8_t *buffer) {
  if (kind == BUFFERS_POOL)
    pool_release(pool, buffer);
  else
    free(buffer);
}

static void drop(struct sample *sample) {
  if (atomic_fetch_sub_explicit(&sample->references, 1, memory_order_acq_rel) != 1)
    return;
  give_buffer(sample->kind, sample->buffer);
  free(sample);
}

/* ---- the graph while it runs ---- */

static struct topology topology;
static struct publisher *publishers;
static struct link *links, **of_publishers, **of_executors;
static struct publisher **timers;
static struct executor *executors;
static size_t link_count, samples_max;
static const char *focus;
static _Atomic bool steady, stopping;
static pthread_barrier_t rehearsed, started;

static void note(struct figures *figures, uint64_t value) {
  if (figures->count++ == 0 || value < figures->least)
    figures->least = value;
  if (value > figures->most)
    figures->most = value;
  figures->sum += value;
}

/* ---- messages ---- */

static struct message *make_message(const struct header *header, bool vector) {
  struct message *message = bench_take(sizeof *message + (vector ? 0 : header->size));
  message->header = *header;
  message->data = vector ? bench_take(header->size) : message->inside;
  return message;
}

static void free_message(struct message *message) {
  if (message->data != message->inside)
    free(message->data);
  free(message);
}

static size_t encode(uint8_t *out, const struct message *message, bool vector) {
  static const uint8_t little_endian[4] = {0, 1, 0, 0};
  uint8_t *at = out;
  memcpy(at, little_endian, 4);
  memcpy(at + 4, &message->header.stamp, 8);
  memcpy(at + 12, &message->header.number, 4);
  memcpy(at + 16, &message->header.frequency, 4);
  memcpy(at + 20, &message->header.size, 4);
  at += CDR_HEAD;
  if (vector) {
    memcpy(at, &message->header.size, CDR_LENGTH);
    at += CDR_LENGTH;
  }
  memcpy(at, message->data, message->header.size);
  return (size_t)(at - out) + message->header.size;
}

static struct message *decode(const uint8_t *in, size_t size, bool vector) {
  struct header header;
  memcpy(&header.stamp, in + 4, 8);
  memcpy(&header.number, in + 12, 4);
  memcpy(&header.frequency, in + 16, 4);
  memcpy(&header.size, in + 20, 4);
  size_t head = CDR_HEAD + (vector ? CDR_LENGTH : 0);
  if (size != head + header.size)
    bench_stop(1, "a message of %" PRIu32 " bytes came as %zu", header.size, size);
  struct message *message = make_message(&header, vector);
  memcpy(message->data, in + head, header.size);
  return message;
}

/* The callback: all bytes are as the publisher made them. */
static void read_message(const struct message *message) {
  uint8_t wanted = (uint8_t)message->header.number;
  const uint8_t *data = message->data;
  if (data[0] != wanted || memcmp(data, data + 1, message->header.size - 1) != 0)
    bench_stop(1, "message %" PRIu32 " is not as it was sent", message->header.number);
}

/* ---- publishing ---- */

static void enqueue(struct link *link, struct sample *sample) {
  struct delivery *delivery = bench_take(sizeof *delivery), *oldest = NULL;
  delivery->sample = sample;
  struct executor *executor = link->executor;
  pthread_mutex_lock(&executor->lock);
  if (link->queued == depth) {
    oldest = link->queue[link->first];
    link->first = (link->first + 1) % depth;
    link->queued--;
  }
  link->queue[(link->first + link->queued++) % depth] = delivery;
  pthread_mutex_unlock(&executor->lock);
  pthread_cond_signal(&executor->woken);
  if (oldest != NULL) {
    drop(oldest->sample);
    free(oldest);
  }
}

static void publish(struct publisher *publisher) {
  const struct topology_publisher *about = publisher->about;
  struct header header = {.number = publisher->number++,
                          .frequency = 1e9f / (float)about->period_ns,
                          .size = (uint32_t)about->size};
  struct message *message = make_message(&header, about->vector);
  memset(message->data, (int)(header.number & 0xff), header.size);
  bench_keep(message->data);
  bool noted = atomic_load_explicit(&steady, memory_order_relaxed);
  uint64_t start = bench_now();
  message->header.stamp = start;

  struct sample *sample = bench_take(sizeof *sample);
  atomic_init(&sample->references, (uint32_t)publisher->link_count + 1);
  sample->kind = buffers == BUFFERS_TURNS ? header.number % KINDS : (unsigned)buffers;
  sample->size = CDR_HEAD + (about->vector ? CDR_LENGTH : 0) + header.size;
  sample->buffer = take_buffer(sample->kind, sample->size);
  (void)encode(sample->buffer, message, about->vector);
  for (size_t i = 0; i < publisher->link_count; i++)
    enqueue(publisher->links[i], sample);
  drop(sample);
  if (noted)
    note(&publisher->duration, bench_now() - start);
  free_message(message);
}

/* ---- taking ---- */

/*
 * As ros2-performance defines them. Lost: its number was passed over. Late: its latency is over 20
 * % of the period, or 5 ms if that is less. Too late: over the whole period, or 50 ms if that is
 * less; such a message is not also late.
 */
static void judge(struct link *link, const struct header *header, unsigned kind, uint64_t latency) {
  bool noted = atomic_load_explicit(&steady, memory_order_relaxed);
  if (noted) {
    uint64_t period = link->from->about->period_ns;
    uint64_t late = period / 5 < 5000000 ? period / 5 : 5000000;
    uint64_t too_late = period < 50000000 ? period : 50000000;
    link->too_late += latency > too_late;
    link->late += latency > late && latency <= too_late;
    link->lost += link->any ? header->number - link->expected : 0;
    note(&link->latency[kind], latency);
    if (link->samples != NULL && link->sampled < samples_max)
      link->samples[link->sampled++] = latency * KINDS + kind;
  }
  link->any = true;
  link->expected = header->number + 1;
}

static void take(struct link *link, struct delivery *delivery) {
  struct sample *sample = delivery->sample;
  free(delivery);
  unsigned kind = sample->kind;
  size_t size = sample->size;
  uint8_t *copy = take_buffer(kind, size);
  memcpy(copy, sample->buffer, size);
  bench_keep(copy);
  drop(sample);
  struct message *message = decode(copy, size, link->from->about->vector);
  give_buffer(kind, copy);
  judge(link, &message->header, kind, bench_now() - message->header.stamp);
  read_message(message);
  free_message(message);
}

/* ---- executors ---- */

/* Fire what is due, and say when the next timer is. A timer that is late by whole periods leaves
 * those out, as rclcpp's do. */
static uint64_t fire(struct executor *executor) {
  uint64_t earliest = UINT64_MAX;
  for (size_t i = 0; i < executor->publisher_count; i++) {
    struct publisher *publisher = executor->publishers[i];
    uint64_t now = bench_now(), period = publisher->about->period_ns;
    if (publisher->next <= now) {
      publish(publisher);
      now = bench_now();
      publisher->next +=
          ((now > publisher->next ? now - publisher->next : 0) / period + 1) * period;
    }
    if (publisher->next < earliest)
      earliest = publisher->next;
  }
  return earliest;
}

/* One message of each subscription that has some. */
static bool take_round(struct executor *executor) {
  bool any = false;
  for (size_t i = 0; i < executor->link_count; i++) {
    struct link *link = executor->links[i];
    struct delivery *delivery = NULL;
    pthread_mutex_lock(&executor->lock);
    if (link->queued > 0) {
      delivery = link->queue[link->first];
      link->first = (link->first + 1) % depth;
      link->queued--;
    }
    pthread_mutex_unlock(&executor->lock);
    if (delivery != NULL) {
      take(link, delivery);
      any = true;
    }
  }
  return any;
}

static bool is_idle(const struct executor *executor) {
  for (size_t i = 0; i < executor->link_count; i++)
    if (executor->links[i]->queued > 0)
      return false;
  return !atomic_load_explicit(&stopping, memory_order_relaxed);
}

static void rest(struct executor *executor, uint64_t until) {
  if (until == UINT64_MAX) /* no timers: a long time, for a wait needs some */
    until = bench_now() + 3600u * (uint64_t)1000000000;
  struct timespec end = bench_timespec(until);
  pthread_mutex_lock(&executor->lock);
  while (is_idle(executor) &&
         pthread_cond_timedwait(&executor->woken, &executor->lock, &end) == 0) {
  }
  pthread_mutex_unlock(&executor->lock);
}

/* The pages that the stack may come to need are there before anything is counted. */
__attribute__((noinline)) static void touch_stack(void) {
  unsigned char pages[STACK_USED];
  bench_touch(pages, sizeof pages);
  bench_keep(pages);
}

/*
 * What a graph can come to in a bad moment, brought about at once: publishers run, takers do not
 * yet, and all queues fill; then every thread is in the middle of its largest message. How many
 * buffers are live at once in an ordinary second is a matter of chance, and without this an
 * allocator would get the memory of each new coincidence in the steady part.
 */
static void rehearse_once(struct executor *executor) {
  for (size_t i = 0; i < executor->publisher_count; i++)
    for (uint64_t turn = 0; turn < depth; turn++)
      publish(executor->publishers[i]);
  pthread_barrier_wait(&rehearsed);
  struct header header = {0};
  bool vector = false;
  for (size_t i = 0; i < executor->link_count + executor->publisher_count; i++) {
    const struct topology_publisher *about =
        i < executor->link_count ? executor->links[i]->from->about
                                 : executor->publishers[i - executor->link_count]->about;
    if (about->size >= header.size) {
      header.size = (uint32_t)about->size;
      vector = about->vector;
    }
  }
  struct message *message = make_message(&header, vector);
  memset(message->data, 1, header.size);
  size_t size = CDR_HEAD + (vector ? CDR_LENGTH : 0) + header.size;
  uint8_t *buffers_of[KINDS] = {NULL};
  for (unsigned kind = 0; kind < KINDS; kind++) {
    if (buffers != BUFFERS_TURNS && kind != buffers)
      continue;
    buffers_of[kind] = take_buffer(kind, size);
    (void)encode(buffers_of[kind], message, vector);
  }
  pthread_barrier_wait(&rehearsed);
  for (unsigned kind = 0; kind < KINDS; kind++)
    if (buffers_of[kind] != NULL)
      give_buffer(kind, buffers_of[kind]);
  free_message(message);
  while (take_round(executor)) {
  }
  pthread_barrier_wait(&rehearsed);
}

static void *spin(void *argument) {
  struct executor *executor = argument;
  touch_stack();
  for (uint64_t i = 0; i < rehearse; i++)
    rehearse_once(executor);
  pthread_barrier_wait(&started);
  uint64_t start = bench_now();
  for (size_t i = 0; i < executor->publisher_count; i++)
    executor->publishers[i]->next = start + executor->publishers[i]->about->period_ns;
  while (!atomic_load_explicit(&stopping, memory_order_relaxed)) {
    uint64_t next = fire(executor);
    if (!take_round(executor))
      rest(executor, next);
  }
  return NULL;
}

/* ---- building the graph ---- */

static bool same_topic(const struct topology_publisher *a, const struct topology_subscription *b) {
  return strcmp(a->topic, b->topic) == 0;
}

static const char *text_of(uint64_t option) {
  return (const char *)(uintptr_t)option;
}

/* Without --focus, the topic with the largest message that somebody subscribes to. */
static void choose_focus(void) {
  uint64_t largest = 0;
  for (size_t p = 0; p < topology.publisher_count; p++) {
    const struct topology_publisher *publisher = &topology.publishers[p];
    bool wanted = focus_name == 0 ? publisher->size > largest
                                  : strcmp(publisher->topic, text_of(focus_name)) == 0;
    for (size_t s = 0; wanted && s < topology.subscription_count; s++) {
      if (same_topic(publisher, &topology.subscriptions[s])) {
        focus = publisher->topic;
        largest = publisher->size;
        break;
      }
    }
  }
  if (focus == NULL)
    bench_stop(2, "--focus: nobody publishes and subscribes to %s",
               focus_name != 0 ? text_of(focus_name) : "anything");
}

static void connect_all(void) {
  size_t most = topology.publisher_count * topology.subscription_count;
  links = bench_array(most * sizeof *links);
  of_publishers = bench_array(most * sizeof *of_publishers);
  of_executors = bench_array(most * sizeof *of_executors);
  publishers = bench_array(topology.publisher_count * sizeof *publishers);
  timers = bench_array(topology.publisher_count * sizeof *timers);
  executors = bench_array(topology.threads * sizeof *executors);
  for (size_t p = 0; p < topology.publisher_count; p++) {
    struct publisher *publisher = &publishers[p];
    publisher->about = &topology.publishers[p];
    publisher->links = of_publishers + link_count;
    for (size_t s = 0; s < topology.subscription_count; s++) {
      if (!same_topic(publisher->about, &topology.subscriptions[s]))
        continue;
      struct link *link = &links[link_count];
      link->about = &topology.subscriptions[s];
      link->from = publisher;
      link->executor = &executors[topology.nodes[link->about->node].thread];
      of_publishers[link_count++] = link;
      publisher->link_count++;
      if (strcmp(link->about->topic, focus) == 0) {
        size_t count = (size_t)(run_ms * 1000000 / publisher->about->period_ns) + RUN_AHEAD;
        samples_max = count > samples_max ? count : samples_max;
      }
    }
  }
  for (size_t l = 0; l < link_count; l++)
    if (strcmp(links[l].about->topic, focus) == 0)
      links[l].samples = bench_array(samples_max * sizeof *links[l].samples);
}

/* Each executor's part of the two arrays, in the order of the file. */
static void hand_out(void) {
  struct publisher **timer = timers;
  struct link **taken = of_executors;
  pthread_condattr_t monotonic;
  pthread_condattr_init(&monotonic);
  pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  for (unsigned t = 0; t < topology.threads; t++) {
    struct executor *executor = &executors[t];
    executor->publishers = timer;
    executor->links = taken;
    for (size_t p = 0; p < topology.publisher_count; p++)
      if (topology.nodes[publishers[p].about->node].thread == t)
        *timer++ = &publishers[p];
    for (size_t l = 0; l < link_count; l++)
      if (links[l].executor == executor)
        *taken++ = &links[l];
    executor->publisher_count = (size_t)(timer - executor->publishers);
    executor->link_count = (size_t)(taken - executor->links);
    pthread_mutex_init(&executor->lock, NULL);
    pthread_cond_init(&executor->woken, &monotonic);
  }
}

/* ---- the run ---- */

static struct costs costs_now(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return (struct costs){(uint64_t)usage.ru_minflt, bench_cpu_ns(&usage),
                        bench_proc_kib(BENCH_STATUS, "VmRSS:"),
                        bench_proc_kib(BENCH_STATUS, "VmHWM:")};
}

static void read_topology(void) {
  if (topology_file == 0)
    bench_stop(2, "it needs one --topology FILE (--help lists the options)");
  const char *problem = topology_read(text_of(topology_file), &topology);
  if (problem != NULL)
    bench_stop(2, "%s: %s", text_of(topology_file), problem);
  for (uint64_t i = 0; i < settings.count && problem == NULL; i++)
    problem = topology_set(&topology, settings.texts[i]);
  if (problem != NULL)
    bench_stop(2, "--set: %s", problem);
  if (topology.left_out > 0)
    fprintf(stderr, "graph: left out: %zu services, clients and actions; topics alone are run\n",
            topology.left_out);
}

static void stop_all(void) {
  for (unsigned t = 0; t < topology.threads; t++) {
    pthread_mutex_lock(&executors[t].lock);
    atomic_store(&stopping, true);
    pthread_mutex_unlock(&executors[t].lock);
    pthread_cond_signal(&executors[t].woken);
  }
  for (unsigned t = 0; t < topology.threads; t++)
    pthread_join(executors[t].thread, NULL);
  for (size_t l = 0; l < link_count; l++) {
    for (; links[l].queued > 0; links[l].queued--) {
      struct delivery *delivery = links[l].queue[links[l].first];
      links[l].first = (links[l].first + 1) % depth;
      drop(delivery->sample);
      free(delivery);
    }
  }
}

int main(int argc, char **argv) {
  bench_parse(argc, argv, "graph",
              "Run a graph of nodes in one process: each message serialised, queued, copied and\n"
              "deserialised for each subscriber.",
              options, sizeof options / sizeof *options, NULL);
  read_topology();
  choose_focus();
  connect_all();
  hand_out();
  if (buffers != BUFFERS_MALLOC)
    open_pool();
  pthread_barrier_init(&rehearsed, NULL, topology.threads);
  pthread_barrier_init(&started, NULL, topology.threads + 1);
  for (unsigned t = 0; t < topology.threads; t++)
    bench_thread(&executors[t].thread, spin, &executors[t]);
  pthread_barrier_wait(&started);

  bench_sleep_ms(warmup_ms);
  (void)costs_now();
  bench_mark(BENCH_MARK_BEGIN);
  struct costs before = costs_now();
  atomic_store(&steady, true);
  bench_sleep_ms(run_ms);
  atomic_store(&steady, false);
  struct costs costs = costs_now();
  bench_mark(BENCH_MARK_END);
  costs.faults -= before.faults;
  costs.cpu_ns -= before.cpu_ns;

  stop_all();
  if (buffers != BUFFERS_MALLOC)
    close_pool();
  const struct graph graph = {&topology,   publishers, links,  link_count,
                              samples_max, focus,      run_ms, buffers};
  if (table)
    graph_print_table(&graph, &costs);
  else
    graph_print_json(&graph, &costs);
  return 0;
}
