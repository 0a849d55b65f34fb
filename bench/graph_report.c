/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a run of graph came to: the report of ros2-performance, a line for each end of each topic,
 * or a summary in JSON with the topic in focus for itself.
 */
#include "graph.h"

static void add(struct figures *sum, const struct figures *more) {
  if (more->count == 0)
    return;
  if (sum->count == 0 || more->least < sum->least)
    sum->least = more->least;
  if (more->most > sum->most)
    sum->most = more->most;
  sum->count += more->count;
  sum->sum += more->sum;
}

static double mean_us(const struct figures *figures) {
  return figures->count > 0 ? (double)figures->sum / (double)figures->count / 1000 : 0;
}

static struct figures both_kinds(const struct link *link) {
  struct figures sum = {0};
  for (unsigned kind = 0; kind < KINDS; kind++)
    add(&sum, &link->latency[kind]);
  return sum;
}

static void print_row(const struct graph *graph, unsigned node, const struct publisher *from,
                      const char *role, const struct figures *figures, const struct link *link) {
  printf("%-16s %-16s %-4s %9" PRIu64 " %9.1f %9.1f %9.1f %8" PRIu64 " %6" PRIu64 " %8" PRIu64
         " %6" PRIu64 "\n",
         graph->topology->nodes[node].name, from->about->topic, role, from->about->size,
         mean_us(figures), (double)figures->least / 1000, (double)figures->most / 1000,
         figures->count, link != NULL ? link->late : 0, link != NULL ? link->too_late : 0,
         link != NULL ? link->lost : 0);
}

static void print_rows(const struct graph *graph) {
  printf("%-16s %-16s %-4s %9s %9s %9s %9s %8s %6s %8s %6s\n", "node", "topic", "", "size_b",
         "mean_us", "min_us", "max_us", "received", "late", "too_late", "lost");
  for (size_t l = 0; l < graph->link_count; l++) {
    struct figures figures = both_kinds(&graph->links[l]);
    print_row(graph, graph->links[l].about->node, graph->links[l].from, "sub", &figures,
              &graph->links[l]);
  }
  for (size_t p = 0; p < graph->topology->publisher_count; p++)
    print_row(graph, graph->publishers[p].about->node, &graph->publishers[p], "pub",
              &graph->publishers[p].duration, NULL);
}

struct summary {
  struct figures all, focus, focus_kinds[KINDS], focus_published;
  uint64_t sent, late, too_late, lost, focus_p50, focus_p90, focus_p50_kinds[KINDS], focus_size;
};

/* The median of the sorted samples of one kind. */
static uint64_t median_of(const uint64_t *samples, size_t count, unsigned kind) {
  size_t of_kind = 0, seen = 0;
  for (size_t i = 0; i < count; i++)
    of_kind += samples[i] % KINDS == kind;
  for (size_t i = 0; i < count; i++) {
    seen += samples[i] % KINDS == kind;
    if (of_kind > 0 && seen == (of_kind + 1) / 2)
      return samples[i] / KINDS;
  }
  return 0;
}

static struct summary sum_up(const struct graph *graph) {
  struct summary sum = {0};
  size_t sampled = 0;
  uint64_t *samples = bench_array(graph->samples_max * graph->link_count * sizeof *samples);
  for (size_t l = 0; l < graph->link_count; l++) {
    const struct link *link = &graph->links[l];
    sum.late += link->late;
    sum.too_late += link->too_late;
    sum.lost += link->lost;
    for (unsigned kind = 0; kind < KINDS; kind++) {
      add(&sum.all, &link->latency[kind]);
      if (link->samples != NULL)
        add(&sum.focus_kinds[kind], &link->latency[kind]);
    }
    for (size_t i = 0; i < link->sampled; i++)
      samples[sampled++] = link->samples[i];
  }
  for (unsigned kind = 0; kind < KINDS; kind++)
    add(&sum.focus, &sum.focus_kinds[kind]);
  for (size_t p = 0; p < graph->topology->publisher_count; p++) {
    sum.sent += graph->publishers[p].duration.count;
    if (strcmp(graph->publishers[p].about->topic, graph->focus) == 0) {
      add(&sum.focus_published, &graph->publishers[p].duration);
      sum.focus_size = graph->publishers[p].about->size;
    }
  }
  bench_sort(samples, sampled);
  sum.focus_p50 = bench_percentile(samples, sampled, 50) / KINDS;
  sum.focus_p90 = bench_percentile(samples, sampled, 90) / KINDS;
  for (unsigned kind = 0; kind < KINDS; kind++)
    sum.focus_p50_kinds[kind] = median_of(samples, sampled, kind);
  return sum;
}

void graph_print_table(const struct graph *graph, const struct costs *costs) {
  print_rows(graph);
  struct summary sums = sum_up(graph), *sum = &sums;
  printf("\n%" PRIu64 " messages sent, %" PRIu64 " received, mean %.1f us; %" PRIu64
         " late, %" PRIu64 " too late, %" PRIu64 " lost; %" PRIu64 " page faults; RSS %" PRIu64
         " KiB, at most %" PRIu64 " KiB\n",
         sum->sent, sum->all.count, mean_us(&sum->all), sum->late, sum->too_late, sum->lost,
         costs->faults, costs->rss_kib, costs->peak_kib);
}

/* In nanoseconds, as the other programs say it. */
static double mean_ns(const struct figures *figures) {
  return mean_us(figures) * 1000;
}

void graph_print_json(const struct graph *graph, const struct costs *costs) {
  static const char *const words[] = {"malloc", "pool", "turns"};
  struct summary sums = sum_up(graph), *sum = &sums;
  double messages = sum->all.count > 0 ? (double)sum->all.count : 1;
  printf("{\"bench\":\"graph\",\"buffers\":\"%s\",\"nodes\":%zu,\"threads\":%u,\"run_ms\":%" PRIu64
         ",\"topic\":\"%s\",\"size\":%" PRIu64 ",\"ns_mean\":%.0f,\"ns_p50\":%" PRIu64
         ",\"ns_p90\":%" PRIu64 ",\"ns_min\":%" PRIu64 ",\"ns_max\":%" PRIu64
         ",\"ns_publish\":%.0f,\"topic_received\":%" PRIu64,
         words[graph->buffers], graph->topology->node_count, graph->topology->threads,
         graph->run_ms, graph->focus, sum->focus_size, mean_ns(&sum->focus), sum->focus_p50,
         sum->focus_p90, sum->focus.least, sum->focus.most, mean_ns(&sum->focus_published),
         sum->focus.count);
  for (size_t l = 0; l < graph->link_count; l++) {
    if (graph->links[l].samples == NULL)
      continue;
    struct figures figures = both_kinds(&graph->links[l]);
    printf(",\"ns_%s\":%.0f", graph->topology->nodes[graph->links[l].about->node].name,
           mean_ns(&figures));
  }
  if (graph->buffers == BUFFERS_TURNS) {
    double of_malloc = mean_ns(&sum->focus_kinds[BUFFERS_MALLOC]);
    double of_pool = mean_ns(&sum->focus_kinds[BUFFERS_POOL]);
    printf(",\"ns_malloc\":%.0f,\"ns_pool\":%.0f,\"malloc_by_pool\":%.4f,\"ns_p50_malloc\":%" PRIu64
           ",\"ns_p50_pool\":%" PRIu64,
           of_malloc, of_pool, of_pool > 0 ? of_malloc / of_pool : 0,
           sum->focus_p50_kinds[BUFFERS_MALLOC], sum->focus_p50_kinds[BUFFERS_POOL]);
  }
  printf(",\"ns_mean_all\":%.0f,\"sent\":%" PRIu64 ",\"received\":%" PRIu64 ",\"late\":%" PRIu64
         ",\"too_late\":%" PRIu64 ",\"lost\":%" PRIu64 ",\"faults\":%" PRIu64
         ",\"faults_per_message\":%.4f,\"cpu_ns_per_message\":%.0f,\"rss_kib\":%" PRIu64
         ",\"rss_peak_kib\":%" PRIu64 "}\n",
         mean_ns(&sum->all), sum->sent, sum->all.count, sum->late, sum->too_late, sum->lost,
         costs->faults, (double)costs->faults / messages, (double)costs->cpu_ns / messages,
         costs->rss_kib, costs->peak_kib);
}
