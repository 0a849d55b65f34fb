/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reader of topologies. It is strict: a graph that is read other than its author meant it would
 * give figures that nobody notices to be wrong. Keys that do not bear on memory (how a message is
 * passed inside a process, qualities of service) are skipped, because here every message is
 * serialised.
 */
#include "topology.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_MAX = 1 << 20, ROOM = 64 << 20 };

/* ---- complaints: the first one is kept ---- */

static char complaint[512];

__attribute__((format(printf, 1, 2))) static bool complain(const char *format, ...) {
  if (complaint[0] != '\0')
    return false;
  va_list list;
  va_start(list, format);
  vsnprintf(complaint, sizeof complaint, format, list);
  va_end(list);
  return false;
}

static const char *verdict(void) {
  return complaint[0] != '\0' ? complaint : NULL;
}

/* ---- memory for Jansson: taken in order, and given back all at once ---- */

static unsigned char *room;
static size_t room_used;

static void *room_take(size_t size) {
  size = (size + 15) & ~(size_t)15;
  if (size > ROOM - room_used)
    return NULL;
  void *block = room + room_used;
  room_used += size;
  return block;
}

static void room_give(void *block) {
  (void)block;
}

/* ---- types ---- */

/*
 * The payload of a type, by its name: stampedN_float32 and the like are N numbers, stampedNb,
 * stampedNkb and stampedNmb arrays of bytes (K and M of 1024), stamped_vector a sequence.
 */
static bool type_size(const char *type, uint64_t *size, bool *vector) {
  static const char stem[] = "stamped";
  static const struct {
    const char *ending;
    uint64_t bytes;
    bool alone; /* may stand without a number, for one of it */
  } endings[] = {{"_float32", 4, true}, {"_int32", 4, true}, {"_float64", 8, true},
                 {"_int64", 8, true},   {"b", 1, false},     {"kb", 1024, false},
                 {"mb", 1 << 20, false}};
  *vector = strcmp(type, "stamped_vector") == 0;
  *size = 0;
  if (*vector)
    return true;
  if (strncmp(type, stem, sizeof stem - 1) != 0)
    return false;
  const char *digits = type + sizeof stem - 1;
  const char *at = digits + strspn(digits, "0123456789");
  uint64_t count = at > digits ? strtoull(digits, NULL, 10) : 1;
  for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
    if (strcmp(at, endings[i].ending) == 0 && (at > digits || endings[i].alone)) {
      *size = count <= TOPOLOGY_MESSAGE ? count * endings[i].bytes : 0;
      return *size > 0 && *size <= TOPOLOGY_MESSAGE;
    }
  }
  return false;
}

/* ---- the parts of the file; `where` names the part for a complaint ---- */

static bool read_text(const json_t *object, const char *key, char *out, const char *where) {
  const json_t *value = json_object_get(object, key);
  const char *text = json_string_value(value);
  if (text == NULL)
    return complain("%s: %s %s", where, key, value == NULL ? "is missing" : "is not a string");
  if (text[0] == '\0' || strlen(text) >= TOPOLOGY_NAME)
    return complain("%s: %s is empty or too long", where, key);
  strcpy(out, text);
  return true;
}

/* A number above 0, up to `most`; 0 where the key is missing. */
static bool read_number(const json_t *object, const char *key, double most, double *out,
                        const char *where) {
  const json_t *value = json_object_get(object, key);
  *out = 0;
  if (value == NULL)
    return true;
  *out = json_number_value(value);
  if (!json_is_number(value) || !(*out > 0 && *out <= most))
    return complain("%s: %s is not a number above 0 and up to %.0f", where, key, most);
  return true;
}

static bool read_period(const json_t *object, uint64_t *period_ns, const char *where) {
  double period_ms, hz;
  if (!read_number(object, "period_ms", 3600000, &period_ms, where) ||
      !read_number(object, "freq_hz", 100000, &hz, where))
    return false;
  if ((period_ms > 0) == (hz > 0))
    return complain("%s: it needs either period_ms or freq_hz", where);
  *period_ns = (uint64_t)(period_ms > 0 ? period_ms * 1e6 : 1e9 / hz);
  return *period_ns >= 1000 || complain("%s: its period is under a microsecond", where);
}

static bool read_size(const json_t *object, struct topology_publisher *publisher,
                      const char *where) {
  double size;
  if (!read_number(object, "msg_size", TOPOLOGY_MESSAGE, &size, where))
    return false;
  if (!type_size(publisher->type, &publisher->size, &publisher->vector))
    return complain("%s: there is no msg_type %s", where, publisher->type);
  if (publisher->vector && size < 1)
    return complain("%s: %s needs a msg_size", where, publisher->type);
  if (publisher->vector)
    publisher->size = (uint64_t)size;
  return true;
}

static bool read_publisher(struct topology *topology, const json_t *object, unsigned node,
                           const char *where) {
  if (topology->publisher_count == TOPOLOGY_ENDS)
    return complain("there are more than %d publishers", TOPOLOGY_ENDS);
  struct topology_publisher *publisher = &topology->publishers[topology->publisher_count++];
  publisher->node = node;
  return read_text(object, "topic_name", publisher->topic, where) &&
         read_text(object, "msg_type", publisher->type, where) &&
         read_size(object, publisher, where) && read_period(object, &publisher->period_ns, where);
}

static bool read_subscription(struct topology *topology, const json_t *object, unsigned node,
                              const char *where) {
  if (topology->subscription_count == TOPOLOGY_ENDS)
    return complain("there are more than %d subscribers", TOPOLOGY_ENDS);
  struct topology_subscription *subscription =
      &topology->subscriptions[topology->subscription_count++];
  subscription->node = node;
  return read_text(object, "topic_name", subscription->topic, where) &&
         read_text(object, "msg_type", subscription->type, where);
}

/* The array of a node under `key`, each of its objects by `read`. */
static bool read_list(struct topology *topology, const json_t *node, const char *key,
                      unsigned index,
                      bool (*read)(struct topology *, const json_t *, unsigned, const char *)) {
  const json_t *list = json_object_get(node, key), *object;
  const char *name = topology->nodes[index].name;
  if (list != NULL && !json_is_array(list))
    return complain("node %s: %s is not an array", name, key);
  size_t at;
  json_array_foreach(list, at, object) {
    char where[TOPOLOGY_NAME + 64];
    snprintf(where, sizeof where, "node %s, %s %zu", name, key, at + 1);
    if (!json_is_object(object))
      return complain("%s: it is not an object", where);
    if (!read(topology, object, index, where))
      return false;
  }
  return true;
}

static void count_left_out(struct topology *topology, const json_t *node) {
  static const char *const kinds[] = {"servers",        "clients",        "services",
                                      "action_servers", "action_clients", "actions"};
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    topology->left_out += json_array_size(json_object_get(node, kinds[i]));
}

/* Which thread runs the node: that of the nodes before it with the same executor_id, else one more.
 * `executors` has the id of each node, or 0. */
static bool read_thread(struct topology *topology, const json_t *node, unsigned index,
                        json_int_t *executors) {
  const json_t *id = json_object_get(node, "executor_id");
  executors[index] = json_integer_value(id);
  if (id != NULL && executors[index] < 1)
    return complain("node %s: executor_id is not a whole number above 0",
                    topology->nodes[index].name);
  for (unsigned i = 0; id != NULL && i < index; i++) {
    if (executors[i] == executors[index]) {
      topology->nodes[index].thread = topology->nodes[i].thread;
      return true;
    }
  }
  topology->nodes[index].thread = topology->threads++;
  return true;
}

static bool read_node(struct topology *topology, const json_t *node, json_int_t *executors) {
  if (topology->node_count == TOPOLOGY_NODES)
    return complain("there are more than %d nodes", TOPOLOGY_NODES);
  unsigned index = (unsigned)topology->node_count++;
  char where[32];
  snprintf(where, sizeof where, "node %u", index + 1);
  if (!json_is_object(node))
    return complain("%s is not an object", where);
  if (!read_text(node, "node_name", topology->nodes[index].name, where))
    return false;
  for (unsigned i = 0; i < index; i++)
    if (strcmp(topology->nodes[i].name, topology->nodes[index].name) == 0)
      return complain("there are two nodes %s", topology->nodes[index].name);
  count_left_out(topology, node);
  return read_thread(topology, node, index, executors) &&
         read_list(topology, node, "publishers", index, read_publisher) &&
         read_list(topology, node, "subscribers", index, read_subscription);
}

/* Both ends of a topic have to mean the same type; sizes of sequences may differ. */
static bool check_types(const struct topology *topology) {
  for (size_t s = 0; s < topology->subscription_count; s++) {
    const struct topology_subscription *subscription = &topology->subscriptions[s];
    for (size_t p = 0; p < topology->publisher_count; p++) {
      const struct topology_publisher *publisher = &topology->publishers[p];
      if (strcmp(publisher->topic, subscription->topic) == 0 &&
          strcmp(publisher->type, subscription->type) != 0)
        return complain("topic %s: %s publishes %s, %s wants %s", publisher->topic,
                        topology->nodes[publisher->node].name, publisher->type,
                        topology->nodes[subscription->node].name, subscription->type);
    }
  }
  return true;
}

static bool read_root(struct topology *topology, const json_t *root) {
  static json_int_t executors[TOPOLOGY_NODES];
  const json_t *nodes = json_object_get(root, "nodes"), *node;
  if (!json_is_array(nodes))
    return complain("there is no array \"nodes\"");
  size_t at;
  json_array_foreach(nodes, at, node) {
    if (!read_node(topology, node, executors))
      return false;
  }
  if (topology->publisher_count == 0)
    return complain("nobody publishes anything");
  return check_types(topology);
}

static bool read_file(struct topology *topology, int file) {
  struct stat status;
  if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode))
    return complain("it is not a file");
  if (status.st_size > FILE_MAX)
    return complain("it is longer than %d bytes", FILE_MAX);
  json_set_alloc_funcs(room_take, room_give);
  json_error_t error;
  const json_t *root = json_loadfd(file, JSON_REJECT_DUPLICATES, &error);
  if (root == NULL)
    return complain("line %d: %s", error.line, error.text);
  return read_root(topology, root);
}

const char *topology_read(const char *path, struct topology *topology) {
  complaint[0] = '\0';
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    complain("%s", strerror(errno));
    return verdict();
  }
  room = mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  room_used = 0;
  if (room == MAP_FAILED) {
    complain("no memory to read it");
  } else {
    (void)read_file(topology, file);
    munmap(room, ROOM);
  }
  close(file);
  return verdict();
}

const char *topology_set(struct topology *topology, const char *setting) {
  complaint[0] = '\0';
  const char *equals = strchr(setting, '=');
  if (equals == NULL || equals == setting) {
    complain("'%s' is not TOPIC=BYTES", setting);
    return verdict();
  }
  char *end;
  errno = 0;
  unsigned long long size = strtoull(equals + 1, &end, 10);
  if (equals[1] < '0' || equals[1] > '9' || *end != '\0' || errno != 0 || size < 1 ||
      size > TOPOLOGY_MESSAGE) {
    complain("'%s' is not a number of bytes up to %d", equals + 1, TOPOLOGY_MESSAGE);
    return verdict();
  }
  size_t length = (size_t)(equals - setting), found = 0;
  for (size_t i = 0; i < topology->publisher_count; i++) {
    struct topology_publisher *publisher = &topology->publishers[i];
    if (strlen(publisher->topic) != length || memcmp(publisher->topic, setting, length) != 0)
      continue;
    found++;
    if (!publisher->vector) {
      complain("the size of %s follows from its type, %s", publisher->topic, publisher->type);
      return verdict();
    }
    publisher->size = size;
  }
  if (found == 0)
    complain("nobody publishes %.*s", (int)length, setting);
  return verdict();
}
