/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program that options.sh runs under many environments: prints the retention mark in force
 * and whether the effective user is another than the real one, as in a setuid program. With an
 * argument it leaves 100 blocks of 1000 bytes live for the report at exit, and with "fork" it
 * forks a child that ends by itself. With "replace FILE" it does as a daemon does: closes all
 * descriptors, and has a file of its own in their places.
 */
#include "expect.h"

#include <fcntl.h>
#include <inttypes.h>

static void replace_descriptors(const char *path) {
  int fd;

  for (fd = STDERR_FILENO; fd < 64; fd++)
    close(fd);
  for (fd = STDERR_FILENO; fd < 64; fd++)
    open(path, O_WRONLY | O_CREAT | O_APPEND, 0666);
}

int main(int argc, char **argv) {
  size_t i;

  expect_start();
  if (EXPECT_FN(weir_retain) == NULL)
    return EXPECT_SKIP;
  if (EXPECT_FN(weir_retain)() == WEIR_RETAIN_UNLIMITED) {
    printf("mark unlimited\n");
  } else {
    printf("mark %zu\n", EXPECT_FN(weir_retain)());
  }
  fflush(stdout);
  if (argc > 1) {
    for (i = 0; i < 100; i++) {
      if (expect_hide(malloc(1000)) == NULL)
        return 1;
    }
    if (strcmp(argv[1], "fork") == 0) {
      pid_t child = fork();
      if (child == 0)
        exit(0);
      waitpid(child, NULL, 0);
    }
    if (strcmp(argv[1], "close") == 0)
      close(STDERR_FILENO);
    if (strcmp(argv[1], "replace") == 0)
      replace_descriptors(argv[2]);
  }
  return expect_done();
}
