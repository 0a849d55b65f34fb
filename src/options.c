/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parsing and printing of the options; their table is options.def. No lock: bring-up calls it
 * once. Strings are kept as pointers into the environment, which outlives the process's use of it
 * unless the program frees what it passed to putenv; the sink's path is the only one kept.
 */
#include "options.h"

#include <stdint.h>
#include <string.h>

static const struct wr_options defaults = {
#define WR_OPTION(field, variable, type, value, shown, takes, help) .field = value,
#include "options.def"
#undef WR_OPTION
};

static bool parse_size(const char *string, size_t *value) {
  return wr_text_parse_size(string, value);
}

static bool parse_mark(const char *string, size_t *value) {
  if (strcmp(string, "default") != 0)
    return wr_text_parse_size(string, value);
  *value = WEIR_RETAIN_DEFAULT;
  return true;
}

static bool parse_thp(const char *string, enum wr_thp *value) {
  static const char *const name[] = {"default", "never", "always"};
  for (unsigned i = 0; i < sizeof name / sizeof name[0]; i++) {
    if (strcmp(string, name[i]) == 0) {
      *value = (enum wr_thp)i;
      return true;
    }
  }
  return false;
}

static bool parse_flag(const char *string, bool *value) {
  if (strcmp(string, "0") != 0 && strcmp(string, "1") != 0)
    return false;
  *value = *string == '1';
  return true;
}

static bool parse_sink(const char *string, struct wr_sink *value) {
  static const char json[] = "json";
  struct wr_sink sink = {WR_SINK_TEXT, NULL};
  if (*string == '\0' || strcmp(string, "json:") == 0)
    return false;
  if (strcmp(string, "0") == 0)
    sink.kind = WR_SINK_NONE;
  else if (strcmp(string, json) == 0)
    sink.kind = WR_SINK_JSON;
  else if (strncmp(string, "json:", sizeof json) == 0)
    sink = (struct wr_sink){WR_SINK_JSON, string + sizeof json};
  else if (strcmp(string, "1") != 0)
    sink.path = string;
  *value = sink;
  return true;
}

static void print_size(struct wr_text *text, size_t value) {
  wr_text_size(text, value);
}

static void print_mark(struct wr_text *text, size_t value) {
  if (value == WEIR_RETAIN_DEFAULT)
    wr_text_string(text, "default");
  else
    wr_text_size(text, value);
}

static void print_thp(struct wr_text *text, enum wr_thp value) {
  wr_text_string(text, value == WR_THP_NEVER    ? "never"
                       : value == WR_THP_ALWAYS ? "always"
                                                : "default");
}

static void print_flag(struct wr_text *text, bool value) {
  wr_text_string(text, value ? "1" : "0");
}

static void print_sink(struct wr_text *text, struct wr_sink value) {
  if (value.kind == WR_SINK_NONE)
    wr_text_string(text, "0");
  else if (value.path == NULL)
    wr_text_string(text, value.kind == WR_SINK_JSON ? "json" : "1");
  else
    wr_text_string(text, value.kind == WR_SINK_JSON ? "json:" : "");
  if (value.path != NULL)
    wr_text_string(text, value.path);
}

void wr_options_print(const struct wr_options *options, struct wr_text *text) {
  const char *blank = "";
#define WR_OPTION(field, variable, type, value, shown, takes, help) \
  wr_text_string(text, blank); \
  wr_text_string(text, variable "="); \
  print_##type(text, options->field); \
  blank = " ";
#include "options.def"
#undef WR_OPTION
}

/* The value of `entry` when it is "name=value", else NULL. */
static const char *value_of(const char *entry, const char *name) {
  size_t length = strlen(name);
  return strncmp(entry, name, length) == 0 && entry[length] == '=' ? entry + length + 1 : NULL;
}

static const char *find(char **environment, const char *name) {
  const char *value = NULL;
  for (; *environment != NULL && value == NULL; environment++)
    value = value_of(*environment, name);
  return value;
}

static void complain_line(wr_options_complain complain, const char *entry, const char *problem,
                          const char *takes, const char *consequence) {
  struct wr_text text;
  wr_text_begin(&text, NULL, NULL);
  wr_text_string(&text, "weir: ");
  /* A value of any length leaves room for what is said of it. */
  wr_text_bytes(&text, entry, strnlen(entry, 200));
  wr_text_string(&text, problem);
  wr_text_string(&text, takes);
  wr_text_string(&text, consequence);
  text.buffer[text.used < sizeof text.buffer ? text.used : sizeof text.buffer - 1] = '\0';
  complain(text.buffer);
}

/* Deals with one entry whose name begins with WEIR_. */
static void read_entry(struct wr_options *options, const char *entry,
                       wr_options_complain complain) {
  const char *string;
#define WR_OPTION(field, variable, type, value, shown, takes, help) \
  string = value_of(entry, variable); \
  if (string != NULL) { \
    if (!parse_##type(string, &options->field)) \
      complain_line(complain, entry, " is not ", takes, "; keeping " shown); \
    return; \
  }
#include "options.def"
#undef WR_OPTION
  char name[64] = "";
  strncpy(name, entry, sizeof name - 1);
  name[strcspn(name, "=")] = '\0';
  complain_line(complain, name, " is not an option of weir", "", "; ignored");
}

/* A number as glibc reads it: decimal, octal or hexadecimal, and -1 for no limit. */
static bool parse_glibc_number(const char *string, size_t length, size_t *value) {
  size_t number = 0;
  unsigned base = 10;
  size_t at = 0;
  if (length == 2 && strncmp(string, "-1", 2) == 0) {
    *value = SIZE_MAX;
    return true;
  }
  if (length > 2 && string[0] == '0' && (string[1] == 'x' || string[1] == 'X')) {
    base = 16;
    at = 2;
  } else if (length > 1 && string[0] == '0') {
    base = 8;
    at = 1;
  }
  if (at == length)
    return false;
  for (; at < length; at++) {
    char lower = (char)(string[at] | 0x20);
    unsigned digit = lower >= 'a' ? (unsigned)(lower - 'a' + 10) : (unsigned)string[at] - '0';
    if (digit >= base || __builtin_mul_overflow(number, (size_t)base, &number) ||
        __builtin_add_overflow(number, (size_t)digit, &number))
      return false;
  }
  *value = number;
  return true;
}

/* The entry of a list with colons between that begins with `name`; NULL when there is none, or no
 * list. */
static const char *find_tunable(const char *list, const char *name) {
  while (list != NULL && strncmp(list, name, strlen(name)) != 0) {
    list = strchr(list, ':');
    if (list != NULL)
      list++;
  }
  return list;
}

/* What glibc takes for its thresholds, each as a variable and as an entry of GLIBC_TUNABLES. */
#define TRIM_VARIABLE "MALLOC_TRIM_THRESHOLD_"
#define TRIM_TUNABLE "glibc.malloc.trim_threshold="
static const char *const thresholds[][2] = {
    {TRIM_VARIABLE, TRIM_TUNABLE},
    {"MALLOC_MMAP_THRESHOLD_", "glibc.malloc.mmap_threshold="},
    {"MALLOC_TOP_PAD_", "glibc.malloc.top_pad="},
    {"MALLOC_MMAP_MAX_", "glibc.malloc.mmap_max="},
};

bool wr_options_sets_glibc(char **environment) {
  const char *tunables;
  if (environment == NULL)
    return false;
  tunables = find(environment, "GLIBC_TUNABLES");
  for (size_t i = 0; i < sizeof thresholds / sizeof thresholds[0]; i++)
    if (find(environment, thresholds[i][0]) != NULL ||
        find_tunable(tunables, thresholds[i][1]) != NULL)
      return true;
  return false;
}

static void read_glibc(struct wr_options *options, char **environment,
                       wr_options_complain complain) {
  const char *string = find(environment, TRIM_VARIABLE);
  const char *what = TRIM_VARIABLE;
  size_t length;
  if (string != NULL) {
    length = strlen(string);
  } else {
    string = find_tunable(find(environment, "GLIBC_TUNABLES"), TRIM_TUNABLE);
    if (string == NULL)
      return;
    what = "glibc.malloc.trim_threshold in GLIBC_TUNABLES";
    string += sizeof TRIM_TUNABLE - 1;
    length = strcspn(string, ":");
  }
  if (!parse_glibc_number(string, length, &options->retain))
    complain_line(complain, what, " is not ", "a number of bytes", "; keeping the default mark");
}

void wr_options_read(struct wr_options *options, char **environment, wr_options_complain complain) {
  *options = defaults;
  if (environment == NULL)
    return;
  for (char **entry = environment; *entry != NULL; entry++)
    if (strncmp(*entry, "WEIR_", 5) == 0)
      read_entry(options, *entry, complain);
  if (find(environment, "WEIR_RETAIN") == NULL)
    read_glibc(options, environment, complain);
}
