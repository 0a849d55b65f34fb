/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thresholds of glibc's malloc, for processes that keep it. Contract: weir/pin.h. No lock: it
 * has no state of its own, and glibc guards what mallopt changes.
 */
#include "pin.h"

#include "attr.h"
#include "options.h"

/* glibc's M_TRIM_THRESHOLD and M_MMAP_THRESHOLD, which the malloc.h of other libcs lacks. */
enum { TRIM_THRESHOLD = -1, MMAP_THRESHOLD = -3 };

/* mallopt(3): the largest threshold, half of what a thread's heap can hold. Not every glibc refuses
 * more, as 2.36 does not; but what a thread's heap has no room for is mapped and unmapped each time
 * whatever the threshold says, so that it would be set and not do. */
#if UINTPTR_MAX > UINT32_MAX
#define BYTES_MAX ((size_t)32 << 20)
#else
#define BYTES_MAX ((size_t)512 << 10)
#endif

/* Either threshold ends glibc's own adjustment of both. It refuses one for mmap that it finds too
 * large and none for trimming, so in this order a refusal leaves all as it was. */
weir_pin_t wr_pin_set(wr_os_mallopt tune, size_t bytes) {
  if (bytes == 0 || bytes > BYTES_MAX || tune(MMAP_THRESHOLD, (int)bytes) != 1)
    return WEIR_PIN_FAILED;
  (void)tune(TRIM_THRESHOLD, (int)bytes);
  return WEIR_PIN_SET;
}

WR_EXPORT weir_pin_t weir_glibc_pin(size_t bytes) {
  wr_os_mallopt tune = NULL;
  enum wr_os_malloc whose = wr_os_malloc(&tune);
  if (whose != WR_OS_MALLOC_GLIBC)
    return whose == WR_OS_MALLOC_WEIR ? WEIR_PIN_WEIR : WEIR_PIN_NOT_GLIBC;
  /* Where the environment is not to be trusted, glibc does not take its thresholds from it. */
  if (!wr_os_secure() && wr_options_sets_glibc(wr_os_environment()))
    return WEIR_PIN_OPERATOR;
  return wr_pin_set(tune, bytes);
}

WR_EXPORT const char *weir_pin_text(weir_pin_t result) {
  switch (result) {
  case WEIR_PIN_SET:
    return "both thresholds of glibc's malloc are set";
  case WEIR_PIN_OPERATOR:
    return "the environment sets thresholds of glibc's malloc, which were left as they are";
  case WEIR_PIN_FAILED:
    return "the thresholds of glibc's malloc cannot be set to this size, and were left as they are";
  case WEIR_PIN_NOT_GLIBC:
    return "malloc is not glibc's, so that there are no thresholds to set";
  case WEIR_PIN_WEIR:
    return "malloc is weir's, which needs no thresholds";
  }
  return "no result of weir_glibc_pin";
}
