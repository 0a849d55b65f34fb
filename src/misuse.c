/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines on standard error: see misuse.h.
 */
#include "misuse.h"

#include "attr.h"
#include "os.h"
#include "text.h"

static int standard_error = 2;

WR_COLD _Noreturn void wr_misuse_stop(enum wr_misuse_kind kind, const volatile void *address) {
  static const char *const name[] = {
#define X(id, text) text,
      WR_MISUSE_KINDS(X)
#undef X
  };
  struct wr_text text;
  wr_text_begin(&text, wr_os_sink, &standard_error);
  wr_text_string(&text, "weir: ");
  wr_text_string(&text, name[kind]);
  wr_text_string(&text, ": ");
  wr_text_hex(&text, (uintptr_t)address);
  wr_text_string(&text, "\n");
  (void)wr_text_end(&text);
  wr_os_abort();
}

WR_COLD void wr_misuse_say(const char *line) {
  struct wr_text text;
  wr_text_begin(&text, wr_os_sink, &standard_error);
  wr_text_string(&text, line);
  wr_text_string(&text, "\n");
  (void)wr_text_end(&text);
}
