/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Making, emptying and ending arenas: over the kernel, and inside a buffer. Contracts of the
 * arguments: weir/arena.h.
 */
#ifndef WR_LIFETIME_H
#define WR_LIFETIME_H

#include <weir/arena.h>

#include "arena.h"

/* Each returns 0 or the errno value that weir/arena.h names. */
int wr_lifetime_make(const weir_arena_options_t *options, struct wr_arena **arena);
int wr_lifetime_make_in(void *buffer, size_t size, const weir_arena_options_t *options,
                        struct wr_arena **arena);

size_t wr_lifetime_buffer_min(void);

void wr_lifetime_reset(struct wr_arena *arena);
void wr_lifetime_end(struct wr_arena *arena);

#endif
