/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames of a camera, in an arena that is theirs alone.
 */
#ifndef WEIR_EXAMPLE_FRAMES_H
#define WEIR_EXAMPLE_FRAMES_H

#include <stddef.h>

#include <rcutils/allocator.h>

/** What rcl and rcutils are to allocate with for this camera; an arena of 16 MiB at most. */
rcutils_allocator_t frames_allocator(void);

/** A frame of `size` bytes from that allocator's arena; NULL past the limit. Goes to free(), as any
 * block may where weir is the process's malloc. */
void *frames_take(size_t size);

/** Bytes of frames, and of what else the allocator gave, that are in use. */
size_t frames_live(void);

#endif
