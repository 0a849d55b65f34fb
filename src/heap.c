/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The slow half of heaps: see heap.h. "The lock" here is the heap's. Where a function says "owner",
 * the caller is the heap's thread, or the heap has none, and the lock is held.
 */
#include "heap.h"

/* How many blocks freed by others the owner puts back each time it is slow anyway. */
#define DRAIN_LIMIT 64
/* How many listed slabs without a free block the slow path passes by before it makes a new one. */
#define DRY_TURNS 64
/* A class can have guests among the four below it: no smaller ones have half its block size. */
#define GUESTS 4

struct wr_span wr_heap_no_slab;

#define NO_SLABS \
  { [0 ... WR_CLASSES - 1] = &wr_heap_no_slab }
struct wr_heap wr_heap_unborn = {.current = NO_SLABS};
struct wr_heap wr_heap_dead = {.current = NO_SLABS};

WR_TLS struct wr_heap *wr_heap_self = &wr_heap_unborn;

struct wr_heap_table wr_heap_no_table;
WR_TLS struct wr_heap_table *wr_heap_table = &wr_heap_no_table;

/* Only the lock's holder changes the tag. */
static bool is_full(const struct wr_span *slab) {
  return (atomic_load_explicit(&slab->owner, memory_order_relaxed) & WR_OWNER_FULL) != 0;
}

/* Lists a slab. Release: pairs with the acquire in wr_free_give, because after this the owner
 * gives blocks to the slab without the lock. */
static void enlist(struct wr_heap *heap, struct wr_span *slab) {
  atomic_store_explicit(&slab->owner, (uintptr_t)heap, memory_order_release);
  wr_list_add_front(&heap->listed[slab->class], &slab->listed);
}

static void set_dry(struct wr_heap *heap, struct wr_span *slab, bool dry) {
  if (slab->dry != dry)
    heap->dry[slab->class] = (uint8_t)(heap->dry[slab->class] + (dry ? 1 : -1));
  slab->dry = dry;
}

static void unlist(struct wr_heap *heap, struct wr_span *slab) {
  set_dry(heap, slab, false);
  wr_list_remove(&heap->listed[slab->class], &slab->listed);
}

/* The smallest class that may be a guest of slabs of `class`, or that itself. */
static unsigned first_guest(unsigned class) {
  return class > GUESTS ? class - GUESTS : 0;
}

/* Lets no class have the slab as its current one. Owner. */
static void withdraw(struct wr_heap *heap, const struct wr_span *slab) {
  for (unsigned guest = first_guest(slab->class); guest <= slab->class; guest++)
    if (wr_heap_current(heap, guest) == slab)
      wr_heap_set_current(heap, guest, &wr_heap_no_slab);
}

/* Tags a slab that is current for no class. */
static void tag_full(struct wr_heap *heap, struct wr_span *slab) {
  unlist(heap, slab);
  atomic_store_explicit(&slab->owner, (uintptr_t)heap | WR_OWNER_FULL, memory_order_relaxed);
}

static size_t pin_limit(const struct wr_heap *heap) {
  const struct wr_spans *spans = &heap->arena->spans;
  if (wr_counter_read(&spans->retain.mark) < WR_HEAP_PIN_MAX)
    return 0;
  /* In a buffer, what another thread's heap keeps is lost to the others. */
  return spans->range == NULL ? WR_HEAP_PIN_MAX
                              : wr_bits_min(spans->range->length / 16, WR_HEAP_PIN_MAX);
}

static void set_pinned(struct wr_heap *heap, unsigned class, struct wr_span *slab) {
  size_t size = slab != NULL ? wr_extent_touched(slab) : 0;
  heap->pinned_bytes = heap->pinned_bytes - heap->pinned_size[class] + size;
  heap->pinned_size[class] = (uint32_t)size;
  atomic_store_explicit(&heap->pinned[class], slab, memory_order_relaxed);
}

/* Gives back an empty slab that is in no list, nor current. */
static void retire(struct wr_heap *heap, struct wr_span *slab) {
  if (wr_heap_pinned(heap, slab->class) == slab)
    set_pinned(heap, slab->class, NULL);
  wr_slab_retire(slab);
}

/* Gives back a listed slab that is empty. Owner. */
static void release(struct wr_heap *heap, struct wr_span *slab) {
  unlist(heap, slab);
  withdraw(heap, slab);
  retire(heap, slab);
}

/* Makes room in the allowance of pinned slabs: one that is in use again does not count. */
static void unpin_used(struct wr_heap *heap) {
  for (unsigned class = 0; class < WR_CLASSES; class ++) {
    struct wr_span *slab = wr_heap_pinned(heap, class);
    if (slab != NULL && wr_slab_used(slab) != 0)
      set_pinned(heap, class, NULL);
  }
}

/* A listed slab has become empty: it is kept in the place of the one that was so last. Owner. */
static void settle_empty(struct wr_heap *heap, struct wr_span *slab) {
  unsigned class = slab->class;
  struct wr_span *former = wr_heap_pinned(heap, class);
  if (former == slab && pin_limit(heap) > 0)
    return;
  set_pinned(heap, class, NULL);
  if (former != NULL && former != slab && wr_slab_used(former) == 0)
    release(heap, former);
  if (heap->pinned_bytes + wr_extent_touched(slab) > pin_limit(heap))
    unpin_used(heap);
  if (heap->pinned_bytes + wr_extent_touched(slab) > pin_limit(heap)) {
    release(heap, slab);
    return;
  }
  set_pinned(heap, class, slab);
}

/* Whether the slab stands in `refilled`. */
static bool is_refilled(const struct wr_span *slab) {
  return is_full(slab) && wr_slab_free(slab) != NULL;
}

/* Puts a block on its slab, whatever the slab's state. Owner. */
static void put_back(struct wr_heap *heap, struct wr_span *slab, void *block) {
  size_t used;
  if (is_refilled(slab))
    wr_list_remove(&heap->refilled[slab->class], &slab->listed);
  used = wr_slab_push(slab, block);
  if (is_full(slab))
    enlist(heap, slab);
  if (used == 0)
    settle_empty(heap, slab);
}

struct wr_span *wr_heap_slab_of(const struct wr_heap *heap, const struct wr_block *block) {
  struct wr_span *slab = wr_extent_at(&heap->arena->spans, block);
  /* A link that was overwritten after its block was freed leads elsewhere. */
  if (slab == NULL ||
      wr_heap_of(atomic_load_explicit(&slab->owner, memory_order_relaxed)) != heap ||
      !wr_slab_holds(slab, block))
    wr_misuse_stop(WR_MISUSE_FREE_LIST, block);
  return slab;
}

/* Takes the first block off a list of blocks that others have freed. *slab is its slab. */
static struct wr_block *pop_block(const struct wr_heap *heap, struct wr_block **list,
                                  struct wr_span **slab) {
  struct wr_block *block = *list;
  if (block != NULL) {
    *slab = wr_heap_slab_of(heap, block);
    *list = block->next;
    /* The line of the next is in the cache of the thread that freed it. */
    __builtin_prefetch(block->next);
  }
  return block;
}

/* The next block that others have freed, or NULL. */
static struct wr_block *next_incoming(struct wr_heap *heap, struct wr_span **slab) {
  struct wr_block *block;
  if (heap->incoming == NULL && !wr_remote_is_empty(&heap->remote))
    heap->incoming = wr_remote_take_all(&heap->remote);
  block = pop_block(heap, &heap->incoming, slab);
  if (block != NULL)
    wr_counter_bump(&heap->remote_frees, 1);
  return block;
}

/* How much it counts that a block waits for the owner, in wr_remote's units: as much as it holds of
 * its slab, if it is one of sixteen that wait. */
static size_t deferred_weight(const struct wr_span *slab) {
  return wr_bits_max(slab->block, wr_extent_length(slab) / 16) >> WR_REMOTE_UNIT_SHIFT;
}

/* Puts at most `limit` blocks back that could not be before. Returns how many more may be. Owner.
 */
static size_t drain_deferred(struct wr_heap *heap, size_t limit) {
  struct wr_span *slab;
  struct wr_block *block;
  for (; limit > 0 && (block = pop_block(heap, &heap->deferred, &slab)) != NULL; limit--) {
    slab->deferred--;
    heap->deferred_amount -= deferred_weight(slab);
    put_back(heap, slab, block);
  }
  if (heap->deferred == NULL)
    heap->deferred_limit = wr_counter_read(&heap->patience);
  return limit;
}

/* Puts at most `limit` blocks that others have freed back. Owner. */
static void drain(struct wr_heap *heap, size_t limit) {
  struct wr_span *slab;
  struct wr_block *block;
  if (heap->deferred != NULL)
    limit = drain_deferred(heap, limit);
  for (; limit > 0 && (block = next_incoming(heap, &slab)) != NULL; limit--)
    put_back(heap, slab, block);
}

/* Carves a slab without a free block. *stale is set when that gives one block. False when all is
 * carved, or the limit reached. Owner. */
static bool carve(struct wr_span *slab, size_t *stale) {
  const void *first = slab->bump;
  size_t dirty = wr_slab_stale(slab, first);
  if (!wr_slab_carve(slab))
    return false;
  if (((const struct wr_block *)first)->next == NULL)
    *stale = wr_bits_max(dirty, sizeof(struct wr_block));
  return true;
}

/* Whether the slab has a free block now, carved if need be. Owner. */
static bool has_block(struct wr_span *slab, size_t *stale) {
  wr_slab_reopen(slab);
  if (wr_slab_free(slab) == NULL)
    return !wr_slab_is_carved(slab) && carve(slab, stale);
  wr_slab_verify(slab);
  return true;
}

/* Whether nothing was taken from the slab since this was asked last. Owner. */
static bool is_idle(struct wr_span *slab) {
  uint16_t use = (uint16_t)(wr_slab_use(slab) >> 16);
  bool idle = slab->seen == use;
  slab->seen = use;
  return idle;
}

/*
 * The first listed slab of the class that has a free block, or NULL; looks at 64. Owner.
 *
 * A listed slab that has run dry is tagged as full only when it is found dry a second time with
 * nothing taken from it in between (the second chance of the clock algorithm: Corbato, 1968).
 * Where all slabs are nearly full, a block that comes back then finds its slab listed and need not
 * take the lock to list it again.
 */
static struct wr_span *find_listed(struct wr_heap *heap, unsigned class, size_t *stale) {
  struct wr_list *listed = &heap->listed[class];
  struct wr_span *first = NULL;
  for (int turns = 0; turns < DRY_TURNS && !wr_list_is_empty(listed); turns++) {
    struct wr_span *slab = WR_SLAB_OF_LINK(listed->front);
    if (has_block(slab, stale)) {
      set_dry(heap, slab, false);
      return slab;
    }
    if (slab == first)
      break;
    /* One that the limit keeps from being carved has blocks left, and stays listed. */
    if (wr_slab_is_carved(slab) &&
        (is_idle(slab) || (!slab->dry && heap->dry[class] >= WR_HEAP_DRY_MAX))) {
      withdraw(heap, slab);
      tag_full(heap, slab);
      continue;
    }
    if (first == NULL)
      first = slab;
    if (wr_slab_is_carved(slab))
      set_dry(heap, slab, true);
    wr_list_remove(listed, &slab->listed);
    wr_list_add_back(listed, &slab->listed);
  }
  return NULL;
}

/* A listed slab with a free block that a class without one may be a guest of, or NULL. Owner. */
static struct wr_span *find_host(struct wr_heap *heap, unsigned guest) {
  for (unsigned host = guest + 1; host <= guest + GUESTS && host < WR_CLASSES; host++) {
    struct wr_span *slab = wr_heap_current(heap, host);
    if (slab->class != host || is_full(slab) || !wr_sizeclass_may_host(host, guest))
      continue;
    wr_slab_reopen(slab);
    wr_slab_verify(slab);
    if (wr_slab_free(slab) != NULL)
      return slab;
  }
  return NULL;
}

/* A listed slab with a free block, of the class or of a host's; NULL when memory is out. Owner. */
static struct wr_span *find_slab(struct wr_heap *heap, unsigned class, size_t *stale) {
  struct wr_span *slab = wr_heap_current(heap, class);
  bool served = (heap->served >> class & 1) != 0;
  if (slab->class == class && slab != &wr_heap_no_slab && has_block(slab, stale))
    return slab;
  slab = served ? NULL : find_host(heap, class);
  if (slab != NULL)
    return slab;
  slab = find_listed(heap, class, stale);
  if (slab != NULL)
    return slab;
  if (!wr_list_is_empty(&heap->refilled[class])) {
    slab = WR_SLAB_OF_LINK(heap->refilled[class].front);
    wr_list_remove(&heap->refilled[class], &slab->listed);
    enlist(heap, slab);
    return slab;
  }
  slab = wr_slab_make(&heap->arena->spans, class, heap);
  if (slab != NULL && carve(slab, stale)) {
    heap->served |= (uint64_t)1 << class;
    wr_list_add_front(&heap->listed[class], &slab->listed);
    return slab;
  }
  if (slab != NULL)
    wr_slab_retire(slab);
  /* Rather than none, a block of a larger class. */
  return served ? find_host(heap, class) : NULL;
}

WR_HOT WR_NOINLINE void *wr_heap_refill(struct wr_heap *heap, unsigned class, size_t *stale) {
  struct wr_span *slab;
  void *block = NULL;
  *stale = SIZE_MAX;
  wr_lock_take(&heap->lock);
  if (heap->deferred != NULL || heap->incoming != NULL || !wr_remote_is_empty(&heap->remote))
    drain(heap, DRAIN_LIMIT);
  slab = find_slab(heap, class, stale);
  if (slab != NULL) {
    wr_heap_set_current(heap, class, slab);
    block = wr_slab_pop(slab);
  } else {
    wr_heap_set_current(heap, class, &wr_heap_no_slab);
  }
  wr_lock_give(&heap->lock);
  wr_settle(&heap->arena->spans);
  return block;
}

WR_NOINLINE void wr_heap_emptied(struct wr_heap *heap, struct wr_span *slab) {
  wr_lock_take(&heap->lock);
  /* wr_heap_trim may have given the slab back, or another thread's drain refilled it, meanwhile. */
  if (wr_heap_of(atomic_load_explicit(&slab->owner, memory_order_relaxed)) == heap &&
      wr_slab_used(slab) == 0 && !is_full(slab))
    settle_empty(heap, slab);
  wr_lock_give(&heap->lock);
  wr_settle(&heap->arena->spans);
}

WR_NOINLINE void wr_heap_give_slow(struct wr_heap *heap, struct wr_span *slab, void *block) {
  unsigned class = slab->class;
  wr_lock_take(&heap->lock);
  /* First, so that the slab is not taken for an empty one that is not in use. */
  wr_heap_set_current(heap, class, slab);
  put_back(heap, slab, block);
  wr_lock_give(&heap->lock);
  wr_settle(&heap->arena->spans);
}

bool wr_heap_give_unattended(struct wr_heap *heap, struct wr_span *slab, void *block) {
  bool given = false;
  wr_lock_take(&heap->lock);
  if (!wr_heap_is_attended(heap)) {
    /* What was pushed while its thread was leaving. */
    drain(heap, SIZE_MAX);
    put_back(heap, slab, block);
    given = true;
  }
  wr_lock_give(&heap->lock);
  wr_settle(&heap->arena->spans);
  return given;
}

/* Whether the slab is the current one of its class or of a guest's. */
static bool is_current(struct wr_heap *heap, const struct wr_span *slab) {
  for (unsigned guest = first_guest(slab->class); guest <= slab->class; guest++)
    /* Acquire: pairs with the release of wr_heap_set_current. */
    if (atomic_load_explicit(&heap->current[guest], memory_order_acquire) == slab)
      return true;
  return false;
}

/*
 * Whether the thread cannot be using a slab of which `ours` blocks are used and all of them are in
 * our hands (none, if it is empty): because it is not current. The thread cannot take from the slab
 * then, nor make it current without the lock, because it has no block of it to give; that of a
 * guest it never makes it without. That both held at one and the same moment follows from the same
 * number before and after: no block was taken between, so none was given, so the slab did not
 * become current.
 */
static bool is_still(struct wr_heap *heap, struct wr_span *slab, size_t ours) {
  /* Acquire: pairs with the release of wr_slab_push. */
  size_t use = atomic_load_explicit(&slab->use, memory_order_acquire);
  return (use & WR_SLAB_USED) == ours && !is_current(heap, slab) && wr_slab_use(slab) == use;
}

/*
 * Gives back the empty slab of a class. When the thread may be about to take a block of it, only
 * its memory can go, and the slab stays the heap's: it joins `stolen`, out of every list.
 */
static void release_empty(struct wr_heap *heap, unsigned class, bool theirs,
                          struct wr_list *stolen) {
  struct wr_span *slab = wr_heap_pinned(heap, class);
  if (slab == NULL || wr_slab_used(slab) != 0)
    return;
  if (!theirs || is_still(heap, slab, 0)) {
    release(heap, slab);
    return;
  }
  if (!wr_slab_steal(slab))
    return;
  /* The thread has no block of it to give, so it cannot make it current again. */
  for (unsigned guest = first_guest(class); guest <= class; guest++) {
    struct wr_span *expected = slab;
    atomic_compare_exchange_strong_explicit(&heap->current[guest], &expected, &wr_heap_no_slab,
                                            memory_order_relaxed, memory_order_relaxed);
  }
  /* Not pinned any more: is_still must not be asked about it before the thread has moved on. */
  set_pinned(heap, class, NULL);
  tag_full(heap, slab);
  wr_list_add_front(stolen, &slab->listed);
}

/* Puts a block of a full slab back for the heap's thread. The slab stays tagged as full, so that
 * the thread goes on not to touch it without the lock. */
static void put_back_for(struct wr_heap *heap, struct wr_span *slab, struct wr_block *block) {
  struct wr_list *refilled = &heap->refilled[slab->class];
  if (!is_refilled(slab))
    wr_list_add_front(refilled, &slab->listed);
  if (wr_slab_push(slab, block) == 0) {
    wr_list_remove(refilled, &slab->listed);
    retire(heap, slab);
  }
}

static void defer(struct wr_heap *heap, const struct wr_span *slab, struct wr_block *block) {
  block->next = heap->deferred;
  heap->deferred = block;
  heap->deferred_amount += deferred_weight(slab);
}

/*
 * Puts at most `limit` blocks that others have freed back for the heap's thread: those of full
 * slabs, which it does not touch without the lock. The others wait for it. Whether there is more.
 */
static bool drain_for(struct wr_heap *heap, size_t limit) {
  struct wr_block *block = NULL;
  struct wr_span *slab;
  for (; limit > 0 && (block = next_incoming(heap, &slab)) != NULL; limit--) {
    if (is_full(slab)) {
      put_back_for(heap, slab, block);
    } else {
      slab->deferred++;
      defer(heap, slab, block);
    }
  }
  return block != NULL;
}

/* Takes the blocks of dying slabs off those that wait: while a slab's blocks were looked at one by
 * one, its thread may have left it alone, and only the later ones told. */
static void forget_dying(struct wr_heap *heap) {
  struct wr_block *list = heap->deferred, *block;
  struct wr_span *slab;
  heap->deferred = NULL;
  heap->deferred_amount = 0;
  while ((block = pop_block(heap, &list, &slab)) != NULL)
    if (!slab->dying)
      defer(heap, slab, block);
}

/*
 * Gives back the slabs all of whose used blocks wait for the heap's thread, if it cannot be using
 * them: or a thread that has freed one block of each slab and then sleeps would keep all that
 * others free. Time in proportion to what waits; so it is done when that has doubled.
 */
static void sweep_deferred(struct wr_heap *heap) {
  struct wr_list dying = {NULL, NULL};
  struct wr_block *list = heap->deferred, *block;
  struct wr_span *slab;
  heap->deferred = NULL;
  heap->deferred_amount = 0;
  while ((block = pop_block(heap, &list, &slab)) != NULL) {
    if (slab->dying)
      continue;
    if (is_full(slab)) {
      slab->deferred--;
      put_back_for(heap, slab, block);
    } else if (is_still(heap, slab, slab->deferred)) {
      slab->dying = true;
      unlist(heap, slab);
      wr_list_add_front(&dying, &slab->listed);
    } else {
      defer(heap, slab, block);
    }
  }
  if (!wr_list_is_empty(&dying))
    forget_dying(heap);
  while (!wr_list_is_empty(&dying)) {
    slab = WR_SLAB_OF_LINK(dying.front);
    wr_list_remove(&dying, &slab->listed);
    wr_slab_forget(slab);
    retire(heap, slab);
  }
  heap->deferred_limit = 2 * heap->deferred_amount + wr_counter_read(&heap->patience);
}

/* Gives back the slabs that are empty and not pinned: those whose memory was taken. Owner. */
static void release_rest(struct wr_heap *heap) {
  for (unsigned class = 0; class < WR_CLASSES; class ++) {
    struct wr_link *link = heap->listed[class].front;
    while (link != NULL) {
      struct wr_span *slab = WR_SLAB_OF_LINK(link);
      link = link->older;
      if (wr_slab_used(slab) == 0)
        release(heap, slab);
    }
  }
}

/* Whether the heap's thread is another than the caller, and may be taking and giving. */
static bool is_anothers(const struct wr_heap *heap) {
  return wr_heap_is_attended(heap) && !wr_heap_is_own(heap);
}

void wr_heap_help(struct wr_heap *heap) {
  bool more = true;
  while (more) {
    wr_lock_take(&heap->lock);
    if (is_anothers(heap)) {
      more = drain_for(heap, DRAIN_LIMIT);
      if (!more && heap->deferred_amount > heap->deferred_limit)
        sweep_deferred(heap);
    } else {
      drain(heap, SIZE_MAX);
      more = false;
    }
    wr_lock_give(&heap->lock);
    wr_settle(&heap->arena->spans);
  }
}

void wr_heap_trim(struct wr_heap *heap) {
  struct wr_spans *spans = &heap->arena->spans;
  struct wr_list stolen = {NULL, NULL};
  bool theirs, ask = true;
  wr_heap_help(heap);
  wr_lock_take(&heap->lock);
  theirs = is_anothers(heap);
  if (theirs)
    sweep_deferred(heap);
  for (unsigned class = 0; class < WR_CLASSES; class ++)
    release_empty(heap, class, theirs, &stolen);
  if (!theirs)
    release_rest(heap);
  /* From here on nobody finds the stolen slabs, so who needs their memory has to wait for it. */
  if (!wr_list_is_empty(&stolen))
    wr_settle_begin_giving(spans);
  wr_lock_give(&heap->lock);

  if (!wr_list_is_empty(&stolen)) {
    /* Where the kernel refuses one, the others are as good as refused. */
    for (struct wr_link *link = stolen.front; link != NULL; link = link->older)
      ask = wr_slab_purge(WR_SLAB_OF_LINK(link), ask) && ask;
    wr_settle_end_giving(spans);
  }
  wr_settle(spans);
  wr_lock_take(&heap->lock);
  while (!wr_list_is_empty(&stolen)) {
    struct wr_span *slab = WR_SLAB_OF_LINK(stolen.front);
    wr_list_remove(&stolen, &slab->listed);
    enlist(heap, slab);
  }
  wr_lock_give(&heap->lock);
}

void wr_heap_attend(struct wr_heap *heap, bool attended) {
  wr_lock_take(&heap->lock);
  atomic_store_explicit(&heap->attended, attended, memory_order_relaxed);
  wr_lock_give(&heap->lock);
  if (!attended)
    wr_heap_trim(heap);
}

void wr_heap_reset(struct wr_heap *heap) {
  wr_lock_take(&heap->lock);
  for (unsigned class = 0; class < WR_CLASSES; class ++) {
    wr_heap_set_current(heap, class, &wr_heap_no_slab);
    set_pinned(heap, class, NULL);
    heap->listed[class] = heap->refilled[class] = (struct wr_list){NULL, NULL};
    heap->dry[class] = 0;
  }
  heap->served = 0;
  heap->incoming = heap->deferred = NULL;
  heap->deferred_amount = 0;
  (void)wr_remote_take_all(&heap->remote);
  wr_lock_give(&heap->lock);
}
