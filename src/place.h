/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the address space of arenas that come and go lies: in the last part of the gibibyte in
 * which that of the default arena begins, so that the same leaf of the page map finds the blocks of
 * both, and at addresses that are used again, so that the page map does not grow. What does not fit
 * there lies where the system puts it. Has a lock of its own, whose holder takes no other.
 */
#ifndef WR_PLACE_H
#define WR_PLACE_H

#include <stddef.h>

/* Sets the zone, from where the default arena's address space may begin; NULL: there is none. Once,
 * at bring-up. */
void wr_place_init(void *hint);

/* An address for `length` bytes, a multiple of 64 KiB, that is to be tried and is nobody else's
 * until it is given back; NULL when the zone has no room. If somebody else turns out to be there,
 * it is not given back, so that it is not tried again. */
void *wr_place_take(size_t length);

/* Where else a range that would lie in the zone is to lie, behind it; another range's address
 * as it is. For the default arena, which would use the zone up for good as it grows. */
void *wr_place_around(void *address, size_t length);

/* Gives back what lies in the zone of a range that is mapped no more. */
void wr_place_give(void *address, size_t length);

/* Before fork, and after it in the parent and in the child. */
void wr_place_lock(void);
void wr_place_unlock(void);
void wr_place_forked(void);

#endif
