/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations for bomb.c: rcutils' logging, and what it asks the system for. No lock: see bomb.h.
 */
#include <rcutils/cmdline_parser.h>
#include <rcutils/env.h>
#include <rcutils/error_handling.h>
#include <rcutils/filesystem.h>
#include <rcutils/logging.h>
#include <rcutils/logging_macros.h>
#include <rcutils/process.h>
#include <rcutils/shared_library.h>
#include <rcutils/time.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bomb.h"

/* ---- logging ---- */

static unsigned logged;
static char last[200];

static void keep_line(const rcutils_log_location_t *location, int severity, const char *name,
                      rcutils_time_point_value_t timestamp, const char *format,
                      va_list *arguments) {
  (void)location, (void)severity, (void)name, (void)timestamp;
  vsnprintf(last, sizeof last, format, *arguments);
  logged++;
}

/* Whether the level could be found out; then it is `want`. */
static bool is_level(int level, int want) {
  BOMB_CHECK(level == want || level == -1);
  rcutils_reset_error();
  return level == want;
}

/* Levels of loggers are kept in a map, names in the allocator's memory. */
static bool use_levels(void) {
  return bomb_ok(rcutils_logging_set_logger_level("robot", RCUTILS_LOG_SEVERITY_WARN)) &&
         bomb_ok(rcutils_logging_set_logger_level("robot.arm", RCUTILS_LOG_SEVERITY_DEBUG)) &&
         is_level(rcutils_logging_get_logger_level("robot"), RCUTILS_LOG_SEVERITY_WARN) &&
         is_level(rcutils_logging_get_logger_level("robot.arm"), RCUTILS_LOG_SEVERITY_DEBUG);
}

static bool logging(rcutils_allocator_t allocator) {
  bool done;
  if (!bomb_ok(rcutils_logging_initialize_with_allocator(allocator)))
    return false;
  done = use_levels();
  return bomb_ok(rcutils_logging_shutdown()) && done;
}

static bool logging_by_default(rcutils_allocator_t allocator) {
  bool done;
  (void)allocator;
  if (!bomb_ok(rcutils_logging_initialize()))
    return false;
  done = use_levels();
  return bomb_ok(rcutils_logging_shutdown()) && done;
}

/* The level that a logger has from the loggers above it is worked out in the allocator's memory. */
static bool logging_effective(rcutils_allocator_t allocator) {
  bool done;
  if (!bomb_ok(rcutils_logging_initialize_with_allocator(allocator)))
    return false;
  done =
      use_levels() &&
      is_level(rcutils_logging_get_logger_effective_level("robot.arm.joint.motor"),
               RCUTILS_LOG_SEVERITY_DEBUG) &&
      is_level(rcutils_logging_get_logger_effective_level("robot.leg"), RCUTILS_LOG_SEVERITY_WARN);
  return bomb_ok(rcutils_logging_shutdown()) && done;
}

/* The program's own handler gets every line that its logger lets pass. */
static bool logging_handler(rcutils_allocator_t allocator) {
  static const rcutils_log_location_t here = {"function", "file", 1};
  if (!bomb_ok(rcutils_logging_initialize_with_allocator(allocator)))
    return false;
  rcutils_logging_set_output_handler(keep_line);
  rcutils_log(&here, RCUTILS_LOG_SEVERITY_WARN, "robot", "battery at %d %%", 12);
  BOMB_CHECK(logged == 1 && strcmp(last, "battery at 12 %") == 0);
  rcutils_log(&here, RCUTILS_LOG_SEVERITY_DEBUG, "robot", "not shown");
  BOMB_CHECK(logged == 1);
  return bomb_ok(rcutils_logging_shutdown());
}

static void log_line(const char *format, ...) {
  static const rcutils_log_location_t here = {"function", "file", 1};
  va_list arguments;
  va_start(arguments, format);
  rcutils_logging_console_output_handler(&here, RCUTILS_LOG_SEVERITY_INFO, "robot", 0, format,
                                         &arguments);
  va_end(arguments);
}

/* rcutils' own handler: lines that fit its buffers, and lines that do not. They go to standard
 * error; whether one was lost is not told. */
static bool logging_console(rcutils_allocator_t allocator) {
  static char word[3000];
  if (!bomb_ok(rcutils_logging_initialize_with_allocator(allocator)))
    return false;
  memset(word, 'w', sizeof word - 1);
  log_line("%s", "short");
  log_line("%s", word);
  return bomb_ok(rcutils_logging_shutdown());
}

static bool logging_format(rcutils_allocator_t allocator) {
  static const rcutils_log_location_t here = {"function", "file", 1};
  rcutils_char_array_t line = rcutils_get_zero_initialized_char_array();
  bool done;
  if (setenv("RCUTILS_CONSOLE_OUTPUT_FORMAT", "[{severity}] [{name}] {message} {line_number} x",
             1) ||
      !bomb_ok(rcutils_logging_initialize_with_allocator(allocator)))
    return false;
  done = bomb_ok(rcutils_char_array_init(&line, 8, &allocator)) &&
         bomb_ok(rcutils_logging_format_message(&here, RCUTILS_LOG_SEVERITY_INFO, "robot", 0,
                                                "a message of some length", &line));
  if (done)
    BOMB_CHECK(strcmp(line.buffer, "[INFO] [robot] a message of some length 1 x") == 0);
  BOMB_CHECK(bomb_ok(rcutils_char_array_fini(&line)));
  return bomb_ok(rcutils_logging_shutdown()) && done;
}

static bool severity_of_text(rcutils_allocator_t allocator) {
  rcutils_ret_t ret;
  int severity = -1;
  if (!bomb_ok(rcutils_logging_severity_level_from_string("Error", allocator, &severity)))
    return false;
  BOMB_CHECK(severity == RCUTILS_LOG_SEVERITY_ERROR);
  ret = rcutils_logging_severity_level_from_string("loud", allocator, &severity);
  BOMB_CHECK(ret == RCUTILS_RET_BAD_ALLOC || ret == RCUTILS_RET_LOGGING_SEVERITY_STRING_INVALID);
  rcutils_reset_error();
  return ret != RCUTILS_RET_BAD_ALLOC;
}

static bool errors_of_thread(rcutils_allocator_t allocator) {
  if (!bomb_ok(rcutils_initialize_error_handling_thread_local_storage(allocator)))
    return false;
  RCUTILS_SET_ERROR_MSG("as it should");
  BOMB_CHECK(rcutils_error_is_set() && strstr(rcutils_get_error_string().str, "as it should"));
  rcutils_reset_error();
  return true;
}

/* ---- paths and files ---- */

static bool is_string(char *string, const char *want, rcutils_allocator_t allocator) {
  if (string == NULL)
    return false;
  BOMB_CHECK(want == NULL || strcmp(string, want) == 0);
  allocator.deallocate(string, allocator.state);
  return true;
}

static bool paths(rcutils_allocator_t allocator) {
  BOMB_CHECK(setenv("HOME", "/h", 1) == 0);
  return is_string(rcutils_join_path("log", "robot", allocator), "log/robot", allocator) &&
         is_string(rcutils_to_native_path("a/b/c", allocator), "a/b/c", allocator) &&
         is_string(rcutils_expand_user("~/.ros", allocator), "/h/.ros", allocator) &&
         is_string(rcutils_expand_user("/var", allocator), "/var", allocator);
}

static bool environment(rcutils_allocator_t allocator) {
  const char *value = NULL;
  (void)allocator;
  BOMB_CHECK(rcutils_set_env("WR_BOMB", "value"));
  BOMB_CHECK(rcutils_get_env("WR_BOMB", &value) == NULL && strcmp(value, "value") == 0);
  BOMB_CHECK(rcutils_set_env("WR_BOMB", NULL));
  BOMB_CHECK(rcutils_get_env("WR_BOMB", &value) == NULL && strcmp(value, "") == 0);
  BOMB_CHECK(setenv("HOME", "/h", 1) == 0 && strcmp(rcutils_get_home_dir(), "/h") == 0);
  return true;
}

static char folder[200], file[300], below[300], file_below[400];

static void write_file(const char *path, size_t bytes) {
  FILE *stream = fopen(path, "w");
  BOMB_CHECK(stream != NULL);
  for (size_t i = 0; i < bytes; i++)
    fputc('x', stream);
  BOMB_CHECK(fclose(stream) == 0);
}

/* A folder with a file of 100 bytes, and one below it with a file of 50. */
static void make_folder(void) {
  const char *parent = getenv("TMPDIR");
  snprintf(folder, sizeof folder, "%s/weir-bomb-XXXXXX", parent != NULL ? parent : "/tmp");
  BOMB_CHECK(mkdtemp(folder) != NULL);
  snprintf(file, sizeof file, "%s/file", folder);
  snprintf(below, sizeof below, "%s/below", folder);
  snprintf(file_below, sizeof file_below, "%s/file", below);
  BOMB_CHECK(rcutils_mkdir(below));
  write_file(file, 100);
  write_file(file_below, 50);
}

static void remove_folder(void) {
  BOMB_CHECK(unlink(file_below) == 0 && rmdir(below) == 0 && unlink(file) == 0 &&
             rmdir(folder) == 0);
}

static bool directory_size(rcutils_allocator_t allocator) {
  uint64_t size = 0;
  bool done;
  make_folder();
  done = bomb_ok(rcutils_calculate_directory_size(folder, &size, allocator));
  remove_folder();
  if (done)
    BOMB_CHECK(size == 100);
  return done;
}

static bool directory_size_below(rcutils_allocator_t allocator) {
  uint64_t size = 0;
  bool done;
  make_folder();
  done = bomb_ok(rcutils_calculate_directory_size_with_recursion(folder, 0, &size, allocator));
  remove_folder();
  if (done)
    BOMB_CHECK(size == 150);
  return done;
}

static bool directory_list(rcutils_allocator_t allocator) {
  rcutils_dir_iter_t *entries;
  size_t count = 0;
  make_folder();
  entries = rcutils_dir_iter_start(folder, allocator);
  if (entries != NULL) {
    do
      count += entries->entry_name[0] != '.';
    while (rcutils_dir_iter_next(entries));
    rcutils_dir_iter_end(entries);
    BOMB_CHECK(count == 2);
  }
  rcutils_reset_error();
  remove_folder();
  return entries != NULL;
}

/* ---- the process ---- */

static bool executable_name(rcutils_allocator_t allocator) {
  BOMB_CHECK(rcutils_get_pid() == getpid());
  return is_string(rcutils_get_executable_name(allocator), NULL, allocator);
}

static bool shared_library(rcutils_allocator_t allocator) {
  rcutils_shared_library_t library = rcutils_get_zero_initialized_shared_library();
  char name[100];
  BOMB_CHECK(bomb_ok(rcutils_get_platform_library_name("m", name, sizeof name, false)));
  BOMB_CHECK(strcmp(name, "libm.so") == 0);
  if (!bomb_ok(rcutils_load_shared_library(&library, "libm.so.6", allocator))) {
    BOMB_CHECK(!rcutils_is_shared_library_loaded(&library));
    return false;
  }
  BOMB_CHECK(rcutils_has_symbol(&library, "cos") && rcutils_get_symbol(&library, "sin") != NULL);
  return bomb_ok(rcutils_unload_shared_library(&library));
}

static bool command_line(rcutils_allocator_t allocator) {
  static char program[] = "node", option[] = "--rate", value[] = "30";
  char *arguments[] = {program, option, value, NULL};
  (void)allocator;
  BOMB_CHECK(rcutils_cli_option_exist(arguments, arguments + 3, "--rate"));
  BOMB_CHECK(strcmp(rcutils_cli_get_option(arguments, arguments + 3, "--rate"), "30") == 0);
  return true;
}

static bool times(rcutils_allocator_t allocator) {
  rcutils_time_point_value_t point = RCUTILS_S_TO_NS(12);
  char text[100];
  (void)allocator;
  BOMB_CHECK(bomb_ok(rcutils_time_point_value_as_seconds_string(&point, text, sizeof text)));
  BOMB_CHECK(strcmp(text, "0000000012.000000000") == 0);
  return bomb_ok(rcutils_steady_time_now(&point));
}

const struct bomb_op bomb_system[] = {
    {"logging", logging},
    {"logging_by_default", logging_by_default},
    {"logging_effective", logging_effective},
    {"logging_handler", logging_handler},
    {"logging_console", logging_console},
    {"logging_format", logging_format},
    {"severity_of_text", severity_of_text},
    {"errors_of_thread", errors_of_thread},
    {"paths", paths},
    {"environment", environment},
    {"directory_size", directory_size},
    {"directory_size_below", directory_size_below},
    {"directory_list", directory_list},
    {"executable_name", executable_name},
    {"shared_library", shared_library},
    {"command_line", command_line},
    {"times", times},
    {NULL, NULL},
};
