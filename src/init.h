/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bring-up: the options, the arena, the ends of threads. Once, at the first slow allocation or in
 * the constructor, whichever comes first.
 */
#ifndef WR_INIT_H
#define WR_INIT_H

#include "options.h"

/* The options in force; constant after wr_init_late. */
extern struct wr_options wr_init_options;

/* Returns when bring-up is done, by this thread or another. A load and a compare after that. */
void wr_init(void);

/* In the constructor, when the environment can be read for certain: reads the options now if they
 * could not be read at bring-up, from `environment` or, if that is NULL, from where bring-up looks.
 */
void wr_init_late(char **environment);

#endif
