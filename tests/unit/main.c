/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs every unit test: the suites that suites.def lists, which the Makefile writes from its own
 * list. An argument runs the suite of that name only. CK_VERBOSITY=verbose names each test.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#define SUITE(name) Suite *suite_##name(void);
#include "suites.def"
#undef SUITE

int main(int argc, char **argv) {
  const char *only = argc > 1 ? argv[1] : NULL;
  SRunner *runner = srunner_create(NULL);
#define SUITE(name) \
  if (only == NULL || strcmp(only, #name) == 0) \
    srunner_add_suite(runner, suite_##name());
#include "suites.def"
#undef SUITE

  srunner_run_all(runner, CK_ENV);
  int failed = srunner_ntests_failed(runner);
  int ran = srunner_ntests_run(runner);
  srunner_free(runner);
  return failed == 0 && ran > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
