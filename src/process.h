/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What happens at load, at fork and at exit of the process. The functions are called by the
 * library's constructor and destructor and by pthread_atfork; in a static program that has weir as
 * its malloc, by libc's fork itself.
 */
#ifndef WR_PROCESS_H
#define WR_PROCESS_H

/* Before fork, and after it in the parent and in the child. */
void wr_process_before_fork(void);
void wr_process_after_fork(void);
void wr_process_forked(void);

/* Defined where libc's fork calls the three functions without being asked to. */
extern const char wr_process_hooked __attribute__((weak));

#endif
