/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The graph while it runs: who publishes to whom, through which queue, and what was seen of it.
 * graph.c runs it; graph_report.c prints what came of it.
 */
#ifndef WEIR_GRAPH_H
#define WEIR_GRAPH_H

#include "bench.h"
#include "topology.h"

enum { BUFFERS_MALLOC, BUFFERS_POOL, BUFFERS_TURNS, KINDS = 2 };
enum { MOST_DEPTH = 64 };

struct figures {
  uint64_t count, sum, least, most;
};

/* An entry of a queue. */
struct delivery {
  struct sample *sample;
};

/* One publisher of the topic of a subscription; each has a queue of its own, as its numbers run. */
struct link {
  const struct topology_subscription *about;
  struct publisher *from;
  struct executor *executor;
  struct delivery *queue[MOST_DEPTH];
  size_t first, queued;
  uint32_t expected;
  bool any;
  uint64_t late, too_late, lost;
  struct figures latency[KINDS];
  uint64_t *samples; /* of the topic in focus: latency * KINDS + kind */
  size_t sampled;
};

struct publisher {
  const struct topology_publisher *about;
  struct link **links;
  size_t link_count;
  uint64_t next; /* when its timer fires */
  uint32_t number;
  struct figures duration; /* of publishing */
};

struct executor {
  pthread_t thread;
  pthread_mutex_t lock; /* the queues of its links, and `stop` */
  pthread_cond_t woken;
  struct publisher **publishers;
  struct link **links;
  size_t publisher_count, link_count;
};

/* What there is to report on. */
struct graph {
  const struct topology *topology;
  const struct publisher *publishers;
  const struct link *links;
  size_t link_count, samples_max;
  const char *focus; /* the topic that is reported for itself */
  uint64_t run_ms, buffers;
};

/* What the process did in the steady part, and its memory at the end of it. */
struct costs {
  uint64_t faults, cpu_ns, rss_kib, peak_kib;
};

/** Print a line for each end of each topic and a summary. */
void graph_print_table(const struct graph *graph, const struct costs *costs);

/** Print the summary as one JSON line. */
void graph_print_json(const struct graph *graph, const struct costs *costs);

#endif
