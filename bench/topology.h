/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A topology: which nodes there are, what they publish, how often, and who subscribes to it. Read
 * from the JSON format of iRobot's ros2-performance, so that the graphs that people publish and
 * those of their own robots can be run as they are.
 *
 * Reading takes nothing from malloc: what is read lies in the structure, and Jansson's own objects
 * in pages that are unmapped before topology_read returns. So the allocator under test first sees
 * the messages.
 */
#ifndef WEIR_TOPOLOGY_H
#define WEIR_TOPOLOGY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
  TOPOLOGY_NAME = 64,
  TOPOLOGY_NODES = 256,
  TOPOLOGY_ENDS = 1024, /* publishers, and as many subscriptions */
  TOPOLOGY_MESSAGE = 1 << 30
};

struct topology_node {
  char name[TOPOLOGY_NAME];
  unsigned thread; /* nodes with the same number are run by the same thread */
};

struct topology_publisher {
  unsigned node;
  char topic[TOPOLOGY_NAME];
  char type[TOPOLOGY_NAME];
  bool vector; /* a sequence, whose size is of the publisher; others are arrays or numbers */
  uint64_t size;
  uint64_t period_ns;
};

struct topology_subscription {
  unsigned node;
  char topic[TOPOLOGY_NAME];
  char type[TOPOLOGY_NAME];
};

struct topology {
  struct topology_node nodes[TOPOLOGY_NODES];
  struct topology_publisher publishers[TOPOLOGY_ENDS];
  struct topology_subscription subscriptions[TOPOLOGY_ENDS];
  size_t node_count, publisher_count, subscription_count;
  unsigned threads;
  size_t left_out; /* services, clients and actions, servers' and clients' */
};

/**
 * Read the file into `*topology`, which is all zero.
 *
 * returns  NULL, or what is wrong with the file in one line, good until the next call
 */
const char *topology_read(const char *path, struct topology *topology);

/**
 * Set the size of what is published on a topic, which is of a type that has none of its own.
 *
 * setting  "topic=BYTES"
 * returns  NULL, or what is wrong
 */
const char *topology_set(struct topology *topology, const char *setting);

#endif
