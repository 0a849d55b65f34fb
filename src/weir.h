/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The public functions as weir itself calls them: the inline fast paths for the libraries that
 * replace malloc, and what those need beyond weir/weir.h.
 */
#ifndef WR_WEIR_H
#define WR_WEIR_H

#include <weir/weir.h>

#include "alloc.h"
#include "free.h"
#include "process.h"
#include "realloc.h"
#include "report.h"

#endif
