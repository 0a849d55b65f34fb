/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs the suites of weir's C++ header; each test in a process of its own. An argument runs the
 * suite of that name only.
 */
#include "arenas.h"

#include <cstdlib>
#include <cstring>

int main(int argc, char **argv) {
  static const struct {
    const char *name;
    Suite *(*suite)();
  } all[] = {
      {"allocator", suite_allocator}, {"containers", suite_containers}, {"limits", suite_limits},
      {"random", suite_random},       {"rclcpp", suite_rclcpp},
#ifdef WEIR_HAS_MEMORY_RESOURCE
      {"resource", suite_resource},
#endif
  };
  SRunner *runner = srunner_create(nullptr);

  for (const auto &one : all) {
    if (argc < 2 || std::strcmp(argv[1], one.name) == 0)
      srunner_add_suite(runner, one.suite());
  }
  srunner_run_all(runner, CK_ENV);
  int failed = srunner_ntests_failed(runner);
  int ran = srunner_ntests_run(runner);
  srunner_free(runner);
  return failed == 0 && ran > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
