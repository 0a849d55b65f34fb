/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A library with thread-local data in the static block, for loader.sh: what is left of the
 * loader's surplus after it must still be enough for weir.
 */
__attribute__((tls_model("initial-exec"))) _Thread_local char tlsuser_data[256];

char *tlsuser(void);
char *tlsuser(void) {
  return tlsuser_data;
}
