/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The C++ operators new and delete, in C, so that no process has to load libstdc++ for them. When
 * memory is out they hand over to the next definition in line, libstdc++'s, which calls malloc in
 * turn, then the program's new-handler, and throws std::bad_alloc: all of that stays its business.
 *
 * Only in shared libraries. In a static program libstdc++'s own operators call malloc, which is
 * weir, and there is no next definition to hand over to.
 */
/* Outside of the condition, because libtool compiles the file twice and keeps the list of what it
 * depends on of the second time, without PIC. */
#include <dlfcn.h>
#include <stddef.h>
#include <stdlib.h>

#include "../misuse.h"
#include "../weir.h"

#ifdef PIC

#if UINTPTR_MAX > UINT32_MAX
#define SIZE "m" /* size_t is unsigned long */
#else
#define SIZE "j" /* size_t is unsigned int */
#endif

#define NEW "_Znw" SIZE
#define NEW_ARRAY "_Zna" SIZE
#define NOTHROW "RKSt9nothrow_t"
#define ALIGNED "St11align_val_t"

/* libstdc++'s operator. A plugin's libstdc++ may be out of the global scope, but it is loaded, or
 * nobody would call this. */
static WR_COLD void *find_next(const char *name) {
  void *function = dlsym(RTLD_NEXT, name);
  void *library;
  if (function == NULL && (library = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_NOLOAD)) != NULL)
    function = dlsym(library, name);
  return function;
}

/* libstdc++ 12 rounds the size up to a multiple of the alignment without looking, and would have 0
 * from the largest sizes. */
static size_t no_wrap(size_t size, size_t alignment) {
  return size > SIZE_MAX - alignment ? SIZE_MAX - alignment + 1 : size;
}

/* For the operators that may not return NULL. */
static WR_COLD void *next(const char *name) {
  void *function = find_next(name);
  if (function == NULL) {
    wr_misuse_say("weir: out of memory in operator new, and there is no C++ library to throw");
    abort();
  }
  return function;
}

/* For those that may, in a program without a C++ library. */
static void *none(void) {
  return NULL;
}

static WR_COLD void *next_or_none(const char *name) {
  void *function = find_next(name);
  return function != NULL ? function : (void *)none;
}

typedef void *(*plain_new)(size_t);
typedef void *(*nothrow_new)(size_t, const void *);
typedef void *(*aligned_new)(size_t, size_t);
typedef void *(*aligned_nothrow_new)(size_t, size_t, const void *);

#define OPERATORS_NEW(id, symbol) \
  WR_EXPORT void *id(size_t size) __asm__(symbol); \
  void *id(size_t size) { \
    void *block = wr_alloc_take(size); \
    return WR_LIKELY(block != NULL) ? block : ((plain_new)next(symbol))(size); \
  } \
  WR_EXPORT void *id##_nothrow(size_t size, const void *tag) __asm__(symbol NOTHROW); \
  void *id##_nothrow(size_t size, const void *tag) { \
    void *block = wr_alloc_take(size); \
    return WR_LIKELY(block != NULL) ? block \
                                    : ((nothrow_new)next_or_none(symbol NOTHROW))(size, tag); \
  } \
  WR_EXPORT void *id##_aligned(size_t size, size_t alignment) __asm__(symbol ALIGNED); \
  void *id##_aligned(size_t size, size_t alignment) { \
    void *block = weir_aligned_alloc(alignment, size); \
    return WR_LIKELY(block != NULL) \
               ? block \
               : ((aligned_new)next(symbol ALIGNED))(no_wrap(size, alignment), alignment); \
  } \
  WR_EXPORT void *id##_aligned_nothrow(size_t size, size_t alignment, \
                                       const void *tag) __asm__(symbol ALIGNED NOTHROW); \
  void *id##_aligned_nothrow(size_t size, size_t alignment, const void *tag) { \
    void *block = weir_aligned_alloc(alignment, size); \
    return WR_LIKELY(block != NULL) ? block \
                                    : ((aligned_nothrow_new)next_or_none(symbol ALIGNED NOTHROW))( \
                                          no_wrap(size, alignment), alignment, tag); \
  }

OPERATORS_NEW(new_one, NEW)
OPERATORS_NEW(new_array, NEW_ARRAY)

/* Sizes and alignments that a delete expression passes may be wrong (a base class without a virtual
 * destructor; an allocator adapter that passes 1), and weir knows them. */
#define OPERATORS_DELETE(id, symbol) \
  WR_EXPORT void id(void *block) __asm__(symbol "Pv"); \
  void id(void *block) { \
    wr_free_give(block); \
  } \
  WR_EXPORT void id##_sized(void *block, size_t size) __asm__(symbol "Pv" SIZE); \
  void id##_sized(void *block, size_t size) { \
    (void)size; \
    wr_free_give(block); \
  } \
  WR_EXPORT void id##_nothrow(void *block, const void *tag) __asm__(symbol "Pv" NOTHROW); \
  void id##_nothrow(void *block, const void *tag) { \
    (void)tag; \
    wr_free_give(block); \
  } \
  WR_EXPORT void id##_aligned(void *block, size_t alignment) __asm__(symbol "Pv" ALIGNED); \
  void id##_aligned(void *block, size_t alignment) { \
    (void)alignment; \
    wr_free_give(block); \
  } \
  WR_EXPORT void id##_sized_aligned(void *block, size_t size, \
                                    size_t alignment) __asm__(symbol "Pv" SIZE ALIGNED); \
  void id##_sized_aligned(void *block, size_t size, size_t alignment) { \
    (void)size; \
    (void)alignment; \
    wr_free_give(block); \
  } \
  WR_EXPORT void id##_aligned_nothrow(void *block, size_t alignment, \
                                      const void *tag) __asm__(symbol "Pv" ALIGNED NOTHROW); \
  void id##_aligned_nothrow(void *block, size_t alignment, const void *tag) { \
    (void)alignment; \
    (void)tag; \
    wr_free_give(block); \
  }

OPERATORS_DELETE(delete_one, "_Zdl")
OPERATORS_DELETE(delete_array, "_Zda")

#endif
