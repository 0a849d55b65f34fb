/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For processes that have to keep glibc's malloc: its two thresholds, which by default make it hand
 * the memory of a message back to the kernel and take it again, set so that it does not.
 */
#ifndef WEIR_PIN_H
#define WEIR_PIN_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What weir_glibc_pin came to. */
typedef enum {
  WEIR_PIN_SET = 0,   /**< both thresholds are set */
  WEIR_PIN_OPERATOR,  /**< nothing was changed: the environment sets glibc's thresholds already */
  WEIR_PIN_FAILED,    /**< the size is out of bounds, or glibc refused it; nothing was changed */
  WEIR_PIN_NOT_GLIBC, /**< nothing was changed: malloc is not glibc's */
  WEIR_PIN_WEIR       /**< nothing was changed: malloc is weir's, which needs no thresholds */
} weir_pin_t;

/**
 * Set M_MMAP_THRESHOLD and M_TRIM_THRESHOLD of glibc's malloc to `bytes` (mallopt(3)), both or
 * none: one alone makes matters worse. Blocks below `bytes` come from the heap then, and the heap
 * keeps up to `bytes` free at its top.
 *
 * bytes    1 to 32 MiB (512 KiB on 32-bit systems): the largest threshold of mallopt(3), and half
 *          of what the heap of a thread can hold; anything else is WEIR_PIN_FAILED.
 * returns  what was done. WEIR_PIN_OPERATOR when MALLOC_MMAP_THRESHOLD_, MALLOC_TRIM_THRESHOLD_,
 *          MALLOC_TOP_PAD_ or MALLOC_MMAP_MAX_ is in the environment, or GLIBC_TUNABLES names
 *          glibc.malloc.mmap_threshold, trim_threshold, top_pad or mmap_max: each of them is the
 *          operator's own choice of the same. Not in a process with more rights than its user,
 *          where glibc does not read them either.
 *
 * Prints nothing; see weir_pin_text. errno is not touched. Thread-safe as mallopt is; call it once,
 * early in main.
 */
weir_pin_t weir_glibc_pin(size_t bytes);

/** One line about a result, for a log: a string that lives as long as the process. Never NULL. */
const char *weir_pin_text(weir_pin_t result);

#ifdef __cplusplus
}
#endif
#endif
