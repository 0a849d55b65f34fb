/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A user's first program, built with what pkg-config says: the header, the library and the file of
 * pkg-config are of one version, and a block is weir's. Its argument is the version of the latter.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/weir.h>

int main(int argc, char **argv) {
  if (argc != 2 || strcmp(argv[1], weir_version()) != 0) {
    fprintf(stderr, "the library is %s\n", weir_version());
    return EXIT_FAILURE;
  }
  weir_stats_t before, after;
  weir_stats(&before, sizeof before);
#ifdef REPLACED
  char *block = malloc(1000000);
#else
  char *block = weir_malloc(1000000);
#endif
  if (block == NULL)
    return EXIT_FAILURE;
  memset(block, 1, 1000000);
  weir_stats(&after, sizeof after);
  if (after.live < before.live + 1000000) {
    fprintf(stderr, "the block is not weir's\n");
    return EXIT_FAILURE;
  }
#ifdef REPLACED
  free(block);
#else
  weir_free(block);
#endif
  return EXIT_SUCCESS;
}
