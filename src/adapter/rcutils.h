/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of weir/rcutils.h for who builds without rcutils: they need nothing of it. A test
 * has the compiler compare these declarations with those. Contracts: weir/rcutils.h.
 */
#ifndef WR_ADAPTER_RCUTILS_H
#define WR_ADAPTER_RCUTILS_H

#include <stddef.h>
#include <weir/arena.h>

void *weir_rcutils_allocate(size_t size, void *state);
void weir_rcutils_deallocate(void *pointer, void *state);
void *weir_rcutils_reallocate(void *pointer, size_t size, void *state);
void *weir_rcutils_zero_allocate(size_t number_of_elements, size_t size_of_element, void *state);
weir_arena_t *weir_rcutils_arena(void);

#endif
