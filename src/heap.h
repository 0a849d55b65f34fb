/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The heap of one thread: the current slab of each size class. Taking and giving a block here is
 * the fast path of the whole library and takes no lock; everything else a heap does takes its lock,
 * which other threads take only to fork, to trim, and to read statistics.
 *
 * A heap outlives its thread, and waits without one ("unattended") until a new thread adopts it.
 * Then whoever frees one of its blocks does the owner's work, under the lock.
 *
 * A slab with a free block stands in the list of its class. Giving a block back makes its slab the
 * current one with a single store and edits no list; so a slab that has run dry may still be
 * listed, until the slow path of its class has met it there twice, or has met too many of them, and
 * tags it as full.
 *
 * Most threads have few small blocks, of many sizes: a page for each class would hold one or two.
 * So a class that never had a slab here is a guest where a block up to twice as large is free: the
 * slab of that class, its host, becomes the current one of the guest as well. Its blocks go back to
 * the host. A guest gets a slab of its own as soon as hosts have no block for it.
 */
#ifndef WR_HEAP_H
#define WR_HEAP_H

#include "arena.h"
#include "remote.h"

/* Touched bytes of empty slabs a heap keeps for its next block, outside the mark; none when the
 * mark is below. */
#define WR_HEAP_PIN_MAX ((size_t)1 << 20)

/* How many slabs of a class may be listed though they were seen to be without a free block: the
 * slow path may have to look at all of them. */
#define WR_HEAP_DRY_MAX 32

struct wr_heap {
  /* The slab that serves each class next: one of the class, or a listed one of a host's; or a
   * static empty one, never NULL. Written by the owner, for guests under the lock; release, because
   * wr_heap_trim reads it with acquire before it reads the slab. */
  _Atomic(struct wr_span *) current[WR_CLASSES];
  /* The empty slab that is kept, or was when it was empty last; written under the lock. */
  _Atomic(struct wr_span *) pinned[WR_CLASSES];
  uint32_t pinned_size[WR_CLASSES]; /* touched bytes of that slab, when it was pinned */
  struct wr_list listed[WR_CLASSES];
  uint8_t dry[WR_CLASSES]; /* how many of those were seen to be without a free block */
  uint64_t served; /* a bit for each class that had a slab of its own; guarded by the lock */
  /* Slabs tagged as full that other threads' frees have filled again, without the owner's help. */
  struct wr_list refilled[WR_CLASSES];
  struct wr_block *incoming; /* taken from `remote`, not yet put on their slabs */
  struct wr_block *deferred; /* those that only the owner can put back */
  size_t deferred_amount;    /* how much that is, in wr_remote's units */
  size_t deferred_limit;     /* at which it is looked for slabs that can go all the same */
  struct wr_arena *arena;
  struct wr_heap *next;      /* in wr_arena.heaps; constant */
  struct wr_heap *next_idle; /* in the pool of unattended heaps; guarded by its lock */
  struct wr_lock lock;
  size_t pinned_bytes; /* the sum of pinned_size */
  wr_counter remote_frees;
  /* What a thread that frees a block of this heap reads and writes: a line that the heap's own
   * thread leaves alone but to take what is there. */
  WR_ALIGNED(128) struct wr_remote remote;
  _Atomic(bool) attended; /* a thread has this heap; written under the lock */
  /* How much other threads may free before one of them puts it back itself, in wr_remote's units:
   * a mebibyte, or the mark if that is less. Else a thread that allocates once and then waits would
   * keep all that others free of it, whatever the mark. */
  wr_counter patience;
};

/* Has no blocks: pop finds none, and nothing else is done with it. */
extern struct wr_span wr_heap_no_slab;

/* The thread's heap: a static one without slabs before its first use, and again after its end. */
extern WR_TLS struct wr_heap *wr_heap_self;
extern struct wr_heap wr_heap_unborn;
extern struct wr_heap wr_heap_dead;

/*
 * The heaps that a thread has of other arenas than the default one, by the arena's slot; the
 * unborn one where it has none. Read by its thread; written under the lock of the list of arenas,
 * by its thread or by that which ends an arena.
 */
struct wr_heap_table {
  size_t end;                 /* bytes from the start of this to behind the last entry */
  struct wr_heap_table *next; /* in a list of thread.c */
  _Atomic(struct wr_heap *) heap[];
};

/* The thread's table: a static one of no heaps before it is needed, and after the thread's end. */
extern WR_TLS struct wr_heap_table *wr_heap_table;
extern struct wr_heap_table wr_heap_no_table;

/* Whether it is a heap with slabs, and so the thread's own. */
WR_INLINE bool wr_heap_is_alive(const struct wr_heap *heap) {
  return WR_LIKELY(heap != &wr_heap_unborn && heap != &wr_heap_dead);
}

/* The entry of an arena whose slot is below the table's end. */
WR_INLINE _Atomic(struct wr_heap *) *wr_heap_slot(struct wr_heap_table *table, size_t slot) {
  return (_Atomic(struct wr_heap *) *)(void *)((char *)table + slot);
}

/* The thread's heap of an arena that is not the default one; the unborn one if it has none. */
WR_INLINE struct wr_heap *wr_heap_in(const struct wr_arena *arena) {
  struct wr_heap_table *table = wr_heap_table;
  if (WR_UNLIKELY(arena->slot >= table->end))
    return &wr_heap_unborn;
  return atomic_load_explicit(wr_heap_slot(table, arena->slot), memory_order_relaxed);
}

/* The same for any arena. */
WR_INLINE struct wr_heap *wr_heap_own(const struct wr_arena *arena) {
  return arena == &wr_arena_default ? wr_heap_self : wr_heap_in(arena);
}

/* Whether a heap of whatever arena is the thread's. */
WR_INLINE bool wr_heap_is_own(const struct wr_heap *heap) {
  return heap == wr_heap_self ||
         (heap->arena != &wr_arena_default && heap == wr_heap_in(heap->arena));
}

WR_INLINE struct wr_heap *wr_heap_of(uintptr_t owner) {
  return (struct wr_heap *)(owner & ~WR_OWNER_FULL);
}

WR_INLINE struct wr_span *wr_heap_current(struct wr_heap *heap, unsigned class) {
  return atomic_load_explicit(&heap->current[class], memory_order_relaxed);
}

WR_INLINE struct wr_span *wr_heap_pinned(struct wr_heap *heap, unsigned class) {
  return atomic_load_explicit(&heap->pinned[class], memory_order_relaxed);
}

WR_INLINE void wr_heap_set_current(struct wr_heap *heap, unsigned class, struct wr_span *slab) {
  /* Release: pairs with the acquire in wr_heap_trim. */
  atomic_store_explicit(&heap->current[class], slab, memory_order_release);
}

/* A block of `class` from the thread's current slab, or NULL. No lock. */
WR_INLINE void *wr_heap_take(struct wr_heap *heap, unsigned class) {
  return wr_slab_pop(wr_heap_current(heap, class));
}

/* Takes a block of `class` by the slow path. NULL when memory is out. *stale is how many of its
 * first bytes may be other than 0: fewer than all if it was carved of memory never used before.
 * Takes the heap's lock. */
void *wr_heap_refill(struct wr_heap *heap, unsigned class, size_t *stale);

/* The owner's slow path for a slab that has become empty. Takes the heap's lock. */
void wr_heap_emptied(struct wr_heap *heap, struct wr_span *slab);

/* Gives a block back to a listed slab of the thread's own heap. No lock, but when the slab becomes
 * empty that was not the last to do so. */
WR_INLINE void wr_heap_give(struct wr_heap *heap, struct wr_span *slab, void *block) {
  unsigned class = slab->class;
  /* Before the block is given, because wr_heap_trim gives back slabs that are empty and not
   * current. To store it only when it is another one was tried: that branch is mispredicted. */
  wr_heap_set_current(heap, class, slab);
  if (WR_UNLIKELY(wr_slab_push(slab, block) == 0) &&
      WR_UNLIKELY(wr_heap_pinned(heap, class) != slab))
    wr_heap_emptied(heap, slab);
}

/* Gives a block of the thread's own heap back, whatever the state of its slab. Takes the lock. */
void wr_heap_give_slow(struct wr_heap *heap, struct wr_span *slab, void *block);

/* Whether a thread has the heap; for others than that it may have changed by now. */
WR_INLINE bool wr_heap_is_attended(const struct wr_heap *heap) {
  return atomic_load_explicit(&heap->attended, memory_order_relaxed);
}

/* Gives a block back for a heap that has no thread. False when it has one. Takes its lock. */
bool wr_heap_give_unattended(struct wr_heap *heap, struct wr_span *slab, void *block);

/* The slab of a block that was freed and is on its way back to the heap; stops the program when the
 * link that led to it was overwritten. Under the lock. */
struct wr_span *wr_heap_slab_of(const struct wr_heap *heap, const struct wr_block *block);

/* Whether a marked block is free indeed: on its slab's list or on its way back. For the owner. */
bool wr_heap_is_free(struct wr_heap *heap, struct wr_span *slab, const void *block);

/* Puts back what other threads have freed of the heap's full slabs, and gives back the slabs that
 * become empty by that. Takes the heap's lock, for at most 64 blocks at a time. */
void wr_heap_help(struct wr_heap *heap);

/* A heap without a thread, or NULL when memory is out. */
struct wr_heap *wr_heap_make(struct wr_arena *arena);

/* Gives it a thread, or none: then its empty slabs are given back. */
void wr_heap_attend(struct wr_heap *heap, bool attended);

/* Forgets all slabs, and what others have freed. Nobody may use the heap meanwhile. */
void wr_heap_reset(struct wr_heap *heap);

/*
 * Gives back every empty slab of the heap, without the help of its thread, and puts back what other
 * threads have freed of its full slabs (of all its slabs, if it has no thread or its thread calls).
 * Where the system has no barrier for other threads, the empty slabs that are current stay. Takes
 * the heap's lock; purges outside it. Slabs that its thread cannot be using go to the arena, to be
 * retained there as far as the mark allows.
 */
void wr_heap_trim(struct wr_heap *heap);

/* Trims every heap of the arena, then the retained spans down to `keep` bytes. Returns how many
 * bytes went back to the kernel meanwhile. */
size_t wr_heap_trim_all(struct wr_arena *arena, size_t keep);

/* Reads the arena's mark for wr_heap.patience. */
void wr_heap_set_patience(struct wr_heap *heap);

/* Sets the arena's mark and gives the excess back; empty slabs too, when the mark is too low for
 * any heap to keep one. */
void wr_heap_set_mark(struct wr_arena *arena, size_t mark);

/* Calls `visit` for each block on its way back to the heap, while the lock is held. */
void wr_heap_each_pending(struct wr_heap *heap,
                          void (*visit)(void *context, const struct wr_span *slab), void *context);

/* Walks every list of the heap and traps on the first that is inconsistent. For tests; the heap's
 * thread must be the caller, or be still. Takes the lock. */
void wr_heap_check(struct wr_heap *heap);

#endif
