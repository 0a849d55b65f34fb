/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of weir_glibc_pin that does not depend on which malloc there is. The rest is weir/pin.h.
 */
#ifndef WR_PIN_H
#define WR_PIN_H

#include <weir/pin.h>

#include "os.h"

/* Sets both thresholds by `tune`, or neither: WEIR_PIN_SET or WEIR_PIN_FAILED. */
weir_pin_t wr_pin_set(wr_os_mallopt tune, size_t bytes);

#endif
