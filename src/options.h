/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The options of the environment, listed in options.def. Read once at bring-up, by one thread;
 * constant afterwards, so that no lock is needed.
 */
#ifndef WR_OPTIONS_H
#define WR_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <weir/arena.h>

#include "text.h"

enum wr_thp { WR_THP_DEFAULT, WR_THP_NEVER, WR_THP_ALWAYS };

enum wr_sink_kind { WR_SINK_NONE, WR_SINK_TEXT, WR_SINK_JSON };

struct wr_sink {
  enum wr_sink_kind kind;
  const char *path; /* NULL: standard error. Points into the environment. */
};

#define WR_TYPE_size size_t
#define WR_TYPE_mark size_t /* WEIR_RETAIN_DEFAULT: that of the default arena */
#define WR_TYPE_thp enum wr_thp
#define WR_TYPE_flag bool
#define WR_TYPE_sink struct wr_sink

struct wr_options {
#define WR_OPTION(field, variable, type, value, shown, takes, help) WR_TYPE_##type field;
#include "options.def"
#undef WR_OPTION
};

/* Receives one whole line about a bad value or an unknown name, without its line end. */
typedef void (*wr_options_complain)(const char *line);

/*
 * Sets every option: from `environment` (as environ; NULL is empty) where it names one well, else
 * to its default. Each bad value and each unknown WEIR_ name is one call of `complain`. When
 * WEIR_RETAIN is not set, MALLOC_TRIM_THRESHOLD_ and then glibc.malloc.trim_threshold in
 * GLIBC_TUNABLES are the mark: the operator's choice stays in force (mallopt(3), ld.so(8)).
 */
void wr_options_read(struct wr_options *options, char **environment, wr_options_complain complain);

/* Whether the environment sets one of glibc's thresholds for what malloc keeps, or of the two
 * numbers that work on the same memory: MALLOC_MMAP_THRESHOLD_, MALLOC_TRIM_THRESHOLD_,
 * MALLOC_TOP_PAD_, MALLOC_MMAP_MAX_, or their tunables. NULL is empty. */
bool wr_options_sets_glibc(char **environment);

/* Writes every option as NAME=value, blanks between. */
void wr_options_print(const struct wr_options *options, struct wr_text *text);

#endif
