/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changing the size of a block, in place where its slab block or its span's address range allows.
 */
#ifndef WR_REALLOC_H
#define WR_REALLOC_H

#include <stddef.h>

/* A live block, which stays in its arena. NULL and ENOMEM when memory is out; the block is as it
 * was then. */
void *wr_realloc_resize(void *block, size_t size);

#endif
