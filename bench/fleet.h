/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the processes of fleet have in common: the queue of batches that stands before each link,
 * and the format of what goes over it. Modelled on zenoh's transport: a message is written into the
 * batch of its priority that is being filled; a thread of its own sends batches, those of the
 * highest priority first, and a batch that was sent is kept for its priority or freed.
 *
 * A batch on the link is its length in two bytes, little-endian, and that many bytes of messages.
 */
#ifndef WEIR_FLEET_H
#define WEIR_FLEET_H

#include "bench.h"

enum { MODE_START, MODE_LAZY, MODE_DEMAND };
enum { PRIORITIES = 8, PRIORITY_CONTROL = 0, PRIORITY_DATA = 5, MOST_BATCHES = 4 };
enum { BATCH_BYTES = 65535, BATCH_HEAD = 2, MESSAGE_MOST = 24, PAYLOAD = 8 };
enum { KEY_ALIVE = 0x7fff };

/* How many batches each priority may have at once, in zenoh's order: control, real time,
   interactive high and low, data high, data, data low, background. */
static const uint8_t batches_of[PRIORITIES] = {1, 1, 1, 1, 2, 4, 4, 4};

struct batch {
  uint8_t *bytes; /* NULL while there is none */
  uint32_t length;
  bool full; /* waits to be sent, or is being sent */
};

/* The batches of one priority: a ring, of which `filling` is written next and `sending` sent next.
 */
struct stage {
  struct batch batches[MOST_BATCHES];
  unsigned filling, sending;
};

struct queue {
  pthread_mutex_t lock;
  pthread_cond_t pushed, freed;
  struct stage stages[PRIORITIES];
  uint64_t mode, made;
  unsigned wanted; /* what the sender sleeps for: a batch with something in it, or a full one */
  bool hurried, closed;
};

enum { READY_NOTHING, READY_PART, READY_FULL };
enum { BATCHING_NS = 1000000 }; /* how long a batch that is not full waits for more */

static inline uint8_t *batch_take(struct queue *queue) {
  queue->made++;
  return bench_take(BATCH_BYTES);
}

static inline void queue_init(struct queue *queue, uint64_t mode) {
  memset(queue, 0, sizeof *queue);
  pthread_condattr_t monotonic;
  pthread_condattr_init(&monotonic);
  pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  pthread_mutex_init(&queue->lock, NULL);
  pthread_cond_init(&queue->pushed, &monotonic);
  pthread_cond_init(&queue->freed, NULL);
  queue->mode = mode;
  for (unsigned p = 0; mode == MODE_START && p < PRIORITIES; p++) {
    for (unsigned i = 0; i < batches_of[p]; i++) {
      queue->stages[p].batches[i].bytes = batch_take(queue);
      memset(queue->stages[p].batches[i].bytes, 1, BATCH_BYTES);
    }
  }
}

/* ---- messages ---- */

static inline uint8_t *put_number(uint8_t *at, uint64_t number) {
  for (; number >= 0x80; number >>= 7)
    *at++ = (uint8_t)(number | 0x80);
  *at++ = (uint8_t)number;
  return at;
}

static inline const uint8_t *get_number(const uint8_t *at, const uint8_t *end, uint64_t *number) {
  *number = 0;
  for (unsigned shift = 0; at < end && shift < 64; shift += 7) {
    *number |= (uint64_t)(*at & 0x7f) << shift;
    if ((*at++ & 0x80) == 0)
      return at;
  }
  return NULL;
}

/* Kind and priority, key, length, and the payload, whose eight bytes are the message's number. */
static inline uint8_t *put_message(uint8_t *at, unsigned priority, unsigned key, uint64_t number) {
  *at++ = (uint8_t)(0xd0 | priority);
  at = put_number(at, key);
  at = put_number(at, PAYLOAD);
  memcpy(at, &number, PAYLOAD);
  return at + PAYLOAD;
}

static inline const uint8_t *get_message(const uint8_t *at, const uint8_t *end, unsigned *priority,
                                         unsigned *key, uint64_t *number) {
  uint64_t word = 0, length = 0;
  if (at == end || (*at & 0xf0) != 0xd0)
    return NULL;
  *priority = *at++ & 0x0f;
  at = get_number(at, end, &word);
  if (at == NULL || (at = get_number(at, end, &length)) == NULL || length != PAYLOAD ||
      end - at < PAYLOAD)
    return NULL;
  *key = (unsigned)word;
  memcpy(number, at, PAYLOAD);
  return at + PAYLOAD;
}

/* ---- pushing and sending ---- */

/** Write a message into the batch of its priority; waits while all of its batches are full. */
static inline void queue_push(struct queue *queue, unsigned priority, unsigned key,
                              uint64_t number) {
  struct stage *stage = &queue->stages[priority];
  pthread_mutex_lock(&queue->lock);
  struct batch *batch = &stage->batches[stage->filling];
  while (batch->full && !queue->closed)
    pthread_cond_wait(&queue->freed, &queue->lock);
  if (!queue->closed) {
    if (batch->bytes == NULL)
      batch->bytes = batch_take(queue);
    if (batch->length == 0)
      batch->length = BATCH_HEAD;
    batch->length =
        (uint32_t)(put_message(batch->bytes + batch->length, priority, key, number) - batch->bytes);
    if (batch->length > BATCH_BYTES - MESSAGE_MOST) {
      batch->full = true;
      stage->filling = (stage->filling + 1) % batches_of[priority];
    }
  }
  bool wake = queue->wanted != READY_NOTHING &&
              (queue->wanted == READY_PART || batch->full || queue->closed);
  if (wake)
    queue->wanted = READY_NOTHING;
  pthread_mutex_unlock(&queue->lock);
  if (wake)
    pthread_cond_signal(&queue->pushed);
}

/* The next batch to send, with its length in front; NULL when there is none, or none that is full
 * and no others are asked for. With the lock. */
static inline struct batch *queue_next(struct queue *queue, bool parts, unsigned *priority) {
  for (unsigned p = 0; p < PRIORITIES; p++) {
    struct stage *stage = &queue->stages[p];
    struct batch *batch = &stage->batches[stage->sending];
    if (batch->length == 0 || (!batch->full && !parts))
      continue;
    if (!batch->full) { /* as far as it is */
      batch->full = true;
      stage->filling = (stage->filling + 1) % batches_of[p];
    }
    uint16_t length = (uint16_t)(batch->length - BATCH_HEAD);
    memcpy(batch->bytes, &length, BATCH_HEAD);
    *priority = p;
    return batch;
  }
  return NULL;
}

/* The batch was sent: keep it, or free it. */
static inline void queue_sent(struct queue *queue, struct batch *batch, unsigned priority) {
  uint8_t *gone = NULL;
  if (queue->mode == MODE_DEMAND)
    gone = batch->bytes; /* freed by the sender, before anybody can write into the next one */
  bench_keep(gone);
  free(gone);
  pthread_mutex_lock(&queue->lock);
  if (queue->mode == MODE_DEMAND)
    batch->bytes = NULL;
  batch->length = 0;
  batch->full = false;
  queue->stages[priority].sending = (queue->stages[priority].sending + 1) % batches_of[priority];
  pthread_mutex_unlock(&queue->lock);
  pthread_cond_signal(&queue->freed);
}

static inline bool write_all(int file, const uint8_t *bytes, size_t length) {
  while (length > 0) {
    ssize_t put = write(file, bytes, length);
    if (put < 0 && errno == EINTR)
      continue;
    if (put <= 0)
      return false;
    bytes += put;
    length -= (size_t)put;
  }
  return true;
}

/** Send what is full and, if `parts`, what is not; false when the other end has gone. */
static inline bool queue_flush(struct queue *queue, bool parts, int file) {
  for (;;) {
    unsigned priority = 0;
    pthread_mutex_lock(&queue->lock);
    struct batch *batch = queue_next(queue, parts, &priority);
    pthread_mutex_unlock(&queue->lock);
    if (batch == NULL)
      return true;
    if (!write_all(file, batch->bytes, batch->length))
      return false;
    queue_sent(queue, batch, priority);
  }
}

static inline unsigned queue_ready(const struct queue *queue) {
  unsigned ready = READY_NOTHING;
  for (unsigned p = 0; p < PRIORITIES; p++) {
    const struct batch *batch = &queue->stages[p].batches[queue->stages[p].sending];
    if (batch->length > 0 && batch->full)
      return READY_FULL;
    if (batch->length > 0)
      ready = READY_PART;
  }
  return ready;
}

/* Wait for `wanted` until `until`, or until the queue is hurried or closed. With the lock. */
static inline unsigned queue_wait_for(struct queue *queue, unsigned wanted, uint64_t until) {
  struct timespec end = bench_timespec(until);
  unsigned ready;
  while ((ready = queue_ready(queue)) < wanted && !queue->hurried && !queue->closed) {
    queue->wanted = wanted;
    if (pthread_cond_timedwait(&queue->pushed, &queue->lock, &end) != 0)
      break;
  }
  queue->wanted = READY_NOTHING;
  return ready;
}

/**
 * Wait for something to send, at most until `until` of the monotonic clock. A batch that is not
 * full gets a moment to fill up, so that small messages share batches, as zenoh's do.
 *
 * returns whether batches that are not full are to be sent
 */
static inline bool queue_wait(struct queue *queue, uint64_t until) {
  pthread_mutex_lock(&queue->lock);
  unsigned ready = queue_wait_for(queue, READY_PART, until);
  if (ready == READY_PART)
    ready = queue_wait_for(queue, READY_FULL, bench_now() + BATCHING_NS);
  bool parts = ready != READY_FULL || queue->hurried || queue->closed;
  pthread_mutex_unlock(&queue->lock);
  return parts;
}

/** No batch waits to be filled from now on, or may wait again. */
static inline void queue_hurry(struct queue *queue, bool hurried) {
  pthread_mutex_lock(&queue->lock);
  queue->hurried = hurried;
  pthread_mutex_unlock(&queue->lock);
  pthread_cond_signal(&queue->pushed);
}

/** Nothing is taken any more, and nobody waits. */
static inline void queue_close(struct queue *queue) {
  pthread_mutex_lock(&queue->lock);
  queue->closed = true;
  pthread_mutex_unlock(&queue->lock);
  pthread_cond_broadcast(&queue->pushed);
  pthread_cond_broadcast(&queue->freed);
}

/* ---- receiving ---- */

/** Read a batch with its length into BATCH_BYTES at `bytes`. The length of what follows the two
 * bytes of the length; -1 at the end of the link, or where no batch is that long. */
static inline int read_batch(int file, uint8_t *bytes) {
  uint16_t length = 0;
  size_t wanted = BATCH_HEAD;
  for (size_t have = 0; have < wanted;) {
    ssize_t got = read(file, bytes + have, wanted - have);
    if (got < 0 && errno == EINTR)
      continue;
    if (got <= 0)
      return -1;
    have += (size_t)got;
    if (have == BATCH_HEAD && wanted == BATCH_HEAD) {
      memcpy(&length, bytes, BATCH_HEAD);
      wanted += length;
      if (wanted > BATCH_BYTES)
        return -1;
    }
  }
  return length;
}

/* ---- processes; fleet.c ---- */

enum { MOST_LINKS = 400 };

/** The sender of --throughput, and the process that receives from it. */
int throughput(uint64_t rounds, uint64_t messages, uint64_t limit_s);
int throughput_receiver(int file);

/** Start this program again as another process: --process ROLE INDEX FILE. The file stays open in
 * it. It ends with this one, and after limit_s seconds whatever happens. */
pid_t start_process(const char *role, unsigned index, int file, uint64_t limit_s);

#endif
